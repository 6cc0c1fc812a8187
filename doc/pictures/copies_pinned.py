"""Copies between pinned memory and a GPU, and within it, by size, beside cudaMemcpy."""
import plots

TITLE = "Copies between pinned memory and a GPU, and within a GPU, by size in GB/s: umem is as fast as cudaMemcpy"
RESULTS = "nvidia-h200-ratios.json"
ON_GPU, INCHES = True, 3.9
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
WAYS = {"pinned host to device": ("o-", "pinned RAM to GPU"), "pinned device to host": ("s--", "GPU to pinned RAM"),
        "device to device": ("^", "within the GPU")}


def plot(axes, rows):
    for way, (style, words) in WAYS.items():
        points = []
        for row in rows:
            name, _, size = row["operation"].removeprefix("cuda, ").partition(", ")
            if name == way:
                number, unit = size.split()
                points.append((int(number) * UNITS[unit], row))
        points.sort(key=lambda point: point[0])
        sizes = [size for size, _ in points]
        # The lines are the same: that of CUDA is wider, and below.
        for side, colour, name, wide in (("other", plots.OTHERS[0], "cudaMemcpy", 2), ("umem", plots.UMEM, "umem", 1)):
            speeds = [size / plots.median(row[f"{side}_seconds"]) / 1e9 for size, row in points]
            axes.plot(sizes, speeds, style, color=colour, label=f"{name}, {words}", linewidth=2.5 * wide - 1, markersize=6 * wide)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([2**12, 2**16, 2**20, 2**24, 2**28, 2**30], ["4 KiB", "64", "1 MiB", "16", "256", "1 GiB"])
    axes.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    axes.yaxis.minorticks_off()
    axes.set_ylabel("GB/s (1e9 bytes)")
    axes.legend(fontsize=10)
