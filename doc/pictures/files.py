"""Copies between files, RAM and a GPU beside threads by hand and kvikIO."""
import plots

TITLE = "Copies of 1 GiB between a file, pageable RAM and a GPU, in GB/s, beside loops over pieces in threads by hand or pinned memory, and kvikIO"
RESULTS = "nvidia-h100-80gb-hbm3-file.json"
ON_GPU, INCHES = True, 3.9
ROWS = {"open file, copy it to GPU, 1 GiB": "file to GPU", "open file, copy GPU to it, 1 GiB": "GPU to file",
        "pageable host to GPU, 1 GiB": "pageable RAM to GPU", "pageable GPU to host, 1 GiB": "GPU to pageable RAM"}


def plot(axes, rows):
    def speed(operation, side, is_kvikio=False):
        found = [row for row in rows if row["operation"] == operation and row["against"].startswith("kvikIO") == is_kvikio]
        return found[0]["bytes"] / plots.median(found[0][f"{side}_seconds"]) / 1e9 if found else None

    series = [("umem", [speed(row, "umem") for row in ROWS]),
              ("by hand, or pinned RAM", [speed(row, "other") for row in ROWS]),
              ("kvikIO 26.10", [speed(row, "other", True) for row in ROWS])]
    plots.bars(axes, list(ROWS.values()), series, "GB/s (1e9 bytes, more is better)", lambda value: f"{value:.1f}",
               "linear")
