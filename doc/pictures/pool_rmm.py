"""A pool over a GPU beside the pool of RMM."""
import plots

TITLE = "Time of an allocation with its free on a GPU: umem's pool and the pool of RMM, in five patterns"
RESULTS = "nvidia-h100-80gb-hbm3-pool.json"
ON_GPU, INCHES = True, 3.6
ROWS = {"256 B, at once": "256 B, freed at once", "256 B-64 KiB, 4096 live": "256 B - 64 KiB,\n4096 live",
        "64 KiB-1 MiB, 4096 live": "64 KiB - 1 MiB,\n4096 live",
        "256 B-64 KiB, freed by another thread": "256 B - 64 KiB,\nby another thread",
        "lifetimes, 256 B-64 MiB, up to 4 GiB": "256 B - 64 MiB,\nrandom lifetimes"}


def plot(axes, rows):
    def seconds(operation, side):
        row = next(row for row in rows if row["operation"] == f"pool(cuda), {operation}" and row["against"].startswith("RMM"))
        return plots.median(row[f"{side}_seconds"])

    series = [("umem pool+cuda", [seconds(row, "umem") for row in ROWS]),
              ("RMM 26.10 pool", [seconds(row, "other") for row in ROWS])]
    plots.bars(axes, list(ROWS.values()), series, "time of a pair (seconds, less is better)", plots.nanoseconds)
