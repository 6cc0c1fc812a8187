"""A pool over a GPU beside the CUDA runtime."""
import plots

TITLE = "Time of an allocation with its free on a GPU: umem's pool, cudaMallocAsync and cudaMalloc, in five patterns"
RESULTS = "nvidia-h100-80gb-hbm3-pool.json"
ON_GPU, INCHES = True, 4.2
ROWS = {"256 B, at once": "256 B, freed at once", "256 B-64 KiB, 4096 live": "256 B - 64 KiB,\n4096 live",
        "64 KiB-1 MiB, 4096 live": "64 KiB - 1 MiB,\n4096 live", "8 B-4 KiB, 1e6 live": "8 B - 4 KiB,\na million live",
        "lifetimes, 256 B-64 MiB, up to 4 GiB": "256 B - 64 MiB,\nrandom lifetimes"}


def plot(axes, rows):
    def seconds(operation, against, side):
        found = [row for row in rows if row["operation"] == f"pool(cuda), {operation}" and row["against"].startswith(against)]
        return plots.median(found[0][f"{side}_seconds"]) if found else None

    series = [("umem pool+cuda", [seconds(row, "cudaMallocAsync", "umem") for row in ROWS]),
              ("cudaMallocAsync", [seconds(row, "cudaMallocAsync", "other") for row in ROWS]),
              ("cudaMalloc", [seconds(row, "cudaMalloc+", "other") for row in ROWS])]
    plots.bars(axes, list(ROWS.values()), series, "time of a pair (seconds, less is better)", plots.nanoseconds)
