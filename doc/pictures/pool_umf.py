"""A pool over RAM beside the disjoint pool of UMF."""
import plots
from pool_ram import ROWS

TITLE = "Time of an allocation with its free in RAM: umem's pool and the disjoint pool of UMF, in six patterns"
RESULTS = "intel-xeon-16-cores-pool-umf.json"
ON_GPU, INCHES = False, 4.2


def plot(axes, rows):
    def seconds(operation, side):
        row = next(row for row in rows if row["operation"] == operation and row["against"].startswith("UMF"))
        return plots.median(row[f"{side}_seconds"])

    series = [("umem pool+host, memory=chunks", [seconds(row, "umem") for row in ROWS]),
              ("UMF 1.2.0 disjoint pool", [seconds(row, "other") for row in ROWS])]
    plots.bars(axes, list(ROWS.values()), series, "time of a pair (seconds, less is better)", plots.nanoseconds)
