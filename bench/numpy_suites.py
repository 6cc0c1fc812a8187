#!/usr/bin/env python3
"""Runs test suites of NumPy and SciPy over a pool of RAM as NumPy's allocator, in turns with NumPy's own.

Usage: numpy_suites.py [--rounds N] [--json FILE] [SUITE...]

A suite is a package such as numpy.ma; without any, those of SUITES. Prints, for each, the tests that passed and the
processor seconds of both sides: the median of all rounds. Each run is a process of its own, which another one of the same
kind precedes that does not count, with one thread of OpenBLAS: threads that wait take processor time. Exit status 1 if a suite fails over umem and not without it.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

SUITES = ["numpy.ma", "numpy.linalg", "numpy.fft", "numpy._core", "scipy.sparse", "scipy.ndimage"]
SIDES = ["umem", "NumPy"]
PROGRAM = """
import sys, pytest
if sys.argv[1] == "umem":
    import umem
    use = umem.use_in_numpy(umem.Pool(umem.Host()))
sys.exit(pytest.main(["--pyargs", sys.argv[2], "-q", "-p", "no:cacheprovider", "-m", "not slow"]))
"""


def run(side, suite):
    """The processor seconds, the tests that passed, and whether none failed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROGRAM, side, suite]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        before = os.times()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
        after = os.times()
    passed = re.search(r"(\d+) passed", done.stdout)
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    if done.returncode:
        print(f"{suite} over {side}:", *done.stdout.splitlines()[-5:], *done.stderr.splitlines()[-5:], sep="\n  ")
    return seconds, int(passed[1]) if passed else 0, done.returncode == 0


def measure(suite, rounds):
    runs = {side: [] for side in SIDES}
    for i in range(rounds + 1):
        for side in SIDES[::-1] if i % 2 else SIDES:
            runs[side].append(run(side, suite))
    seconds = {side: [seconds for seconds, _, _ in runs[side][1:]] for side in SIDES}
    ratio = statistics.median(ours / theirs for ours, theirs in zip(*(seconds[side] for side in SIDES)))
    return {"passed": runs["umem"][0][1], "ratio": ratio, "seconds": seconds,
            "good": all(good for _, _, good in runs["umem"]) or not all(good for _, _, good in runs["NumPy"])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    arguments = parser.parse_args()
    results = {}
    print(f"{'suite':<40}{'passed':>8}{'umem s':>9}{'NumPy s':>9}{'ratio':>8}")
    for suite in arguments.suites or SUITES:
        result = results[suite] = measure(suite, arguments.rounds)
        umem, numpy = (statistics.median(result["seconds"][side]) for side in SIDES)
        print(f"{suite:<40}{result['passed']:>8}{umem:>9.2f}{numpy:>9.2f}{result['ratio']:>8.3f}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)
    return not all(result["good"] for result in results.values())


if __name__ == "__main__":
    sys.exit(main())
