"""Copies between files, RAM and a GPU beside threads by hand."""
import plots

TITLE = "Copies of 1 GiB between a file, pageable RAM and a GPU, in GB/s, beside loops over pieces in threads by hand or pinned memory"
RESULTS = "2026-11-22-nvidia-h100-80gb-hbm3-file.json"
ON_GPU, INCHES = True, 3.3
ROWS = {"open file, copy it to GPU, 1 GiB": "file to GPU", "open file, copy GPU to it, 1 GiB": "GPU to file",
        "pageable host to GPU, 1 GiB": "pageable RAM to GPU", "pageable GPU to host, 1 GiB": "GPU to pageable RAM"}


def plot(axes, rows):
    def speed(operation, side):
        row = next(row for row in rows if row["operation"] == operation)
        return row["bytes"] / plots.median(row[f"{side}_seconds"]) / 1e9

    series = [("umem", [speed(row, "umem") for row in ROWS]),
              ("by hand: 4 MiB pieces in threads; from and to pinned RAM", [speed(row, "other") for row in ROWS])]
    plots.bars(axes, list(ROWS.values()), series, "GB/s (1e9 bytes, more is better)", lambda value: f"{value:.1f}",
               "linear")
