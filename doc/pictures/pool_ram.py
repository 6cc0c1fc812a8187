"""A pool over RAM beside malloc and mimalloc."""
import plots

TITLE = "Time of an allocation with its free in RAM: umem's pool, malloc of glibc and mimalloc, in six patterns"
RESULTS = "intel-xeon-16-cores-pool.json"
ON_GPU, INCHES = False, 4.6
ROWS = {"pool(host) alloc+free, 256 B, at once": "256 B, freed at once",
        "pool(host) alloc+free, 256 B, 1000 live": "256 B, 1000 live",
        "pool(host) alloc+free, 8-4096 B mixed, 4096 live": "8 B - 4 KiB, 4096 live",
        "pool(host) alloc+free, 8-4096 B mixed, 16 threads": "the same, 16 threads",
        "pool(host) 8-4096 B mixed, freed by another thread": "freed by\nanother thread",
        "pool(host) lifetimes, 16 B-1 MiB, up to 64 MiB": "16 B - 1 MiB,\nrandom lifetimes"}


def plot(axes, rows):
    def seconds(operation, against, side):
        found = [row for row in rows if row["operation"] == operation and row["against"].startswith(against)]
        return plots.median(found[0][f"{side}_seconds"]) if found else None

    series = [("umem pool+host", [seconds(row, "malloc", "umem") for row in ROWS]),
              ("malloc (glibc)", [seconds(row, "malloc", "other") for row in ROWS]),
              ("mimalloc 2.0.9", [seconds(row, "mimalloc", "other") for row in ROWS])]
    plots.bars(axes, list(ROWS.values()), series, "time of a pair (seconds, less is better)", plots.nanoseconds)
