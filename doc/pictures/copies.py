"""Copies between pageable memory and a GPU by size, beside cudaMemcpy."""
import plots

TITLE = "Copies between RAM and a GPU by size in GB/s: umem is as fast as cudaMemcpy at 1 MiB, and about 3 to 6 times as fast from 64 MiB on"
RESULTS = "nvidia-h200-ratios.json"
ON_GPU, INCHES = True, 3.9
UNITS = {"MiB": 2**20, "GiB": 2**30}


def plot(axes, rows):
    styles = {"pageable host to device": ("o-", "RAM to GPU"), "pageable device to host": ("s--", "GPU to RAM")}
    for way, (style, words) in styles.items():
        found = [row for row in rows if row["operation"].startswith(way + ",") and "same memory" in row["against"]]
        points = []
        for row in found:
            number, unit = row["operation"].split(", ")[1].split()
            points.append((int(number) * UNITS[unit], row))
        points.sort(key=lambda point: point[0])
        sizes = [size for size, _ in points]
        for side, colour, name in (("umem", plots.UMEM, "umem"), ("other", plots.OTHERS[0], "cudaMemcpy")):
            speeds = [size / plots.median(row[f"{side}_seconds"]) / 1e9 for size, row in points]
            axes.plot(sizes, speeds, style, color=colour, label=f"{name}, {words}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([2**20, 2**22, 2**24, 2**26, 2**28, 2**30], ["1 MiB", "4", "16", "64", "256", "1 GiB"])
    axes.set_yticks([5, 10, 20, 50], ["5", "10", "20", "50"])
    axes.yaxis.minorticks_off()
    axes.set_ylabel("GB/s (1e9 bytes)")
    axes.legend(fontsize=10)
