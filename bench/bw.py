#!/usr/bin/env python3
"""Compares umem bw with plain CUDA, in turns, each a process of its own.

Usage: bw.py UMEM BARE_COPIES [--json FILE]

UMEM is the program umem, BARE_COPIES the program umem_bare_copies, which measures as nvbandwidth does. Prints a table: for
each copy the median and the best of all turns of both, in GB/s, and their ratios. Then each turn. FILE gets the turns.
"""
import json
import statistics
import subprocess
import sys
from pathlib import Path

TURNS = 9
# What umem bw copies between, and what the bare program calls it.
COPIES = (
    ("pinned memory to the GPU", "cuda-host:", "cuda:0", "to"),
    ("the GPU to pinned memory", "cuda:0", "cuda-host:", "from"),
    ("within the GPU", "cuda-async:0", "cuda-async:0", "local"),
)


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return done.stdout


def umem_speed(umem, source, target):
    return json.loads(output(umem, "bw", "--json", source, target))["cells"][0]["bytes_per_second"] / 1e9


def bare_speed(bare, way):
    return statistics.median(map(float, output(bare, way).split())) / 1e9


def measure(umem, bare):
    """Of each copy what umem and the bare program had in each turn. Who comes first alternates."""
    found = {name: {"umem": [], "CUDA": []} for name, *_ in COPIES}
    for turn in range(TURNS):
        for name, source, target, way in COPIES:
            sides = [("umem", lambda: umem_speed(umem, source, target)), ("CUDA", lambda: bare_speed(bare, way))]
            for side, speed in sides[::-1] if turn % 2 else sides:
                found[name][side].append(speed())
    return found


def lines(found):
    yield f"umem bw beside plain CUDA: GB/s of 512 MiB, {TURNS} turns. The ratio is umem over CUDA."
    yield ""
    yield f"{'copy':26}{'median':>10}{'CUDA':>10}{'ratio':>8}{'best':>10}{'CUDA':>10}{'ratio':>8}"
    for name, speeds in found.items():
        ours, bare = speeds["umem"], speeds["CUDA"]
        pairs = [(statistics.median(ours), statistics.median(bare)), (max(ours), max(bare))]
        yield f"{name:26}" + "".join(f"{a:10.2f}{b:10.2f}{a / b:8.3f}" for a, b in pairs)
    for name, speeds in found.items():
        yield from ("", name)
        for side, turns in speeds.items():
            yield f"  {side:6}" + "".join(f"{speed:9.2f}" for speed in turns)


def main():
    if len(sys.argv) not in (3, 5) or sys.argv[3:4] not in ([], ["--json"]):
        sys.exit(__doc__)
    found = measure(*sys.argv[1:3])
    if len(sys.argv) == 5:
        Path(sys.argv[4]).write_text(json.dumps(found))
    print("\n".join(lines(found)))


if __name__ == "__main__":
    main()
