#!/usr/bin/env python3
"""Tells what a run of the benchmarks has measured, as lines "ok - NAME" and "not ok - NAME". How fast
it was is no matter of a test.

Usage: bench_results.py CALLS_JSON RATIOS_JSON
"""
import json
import sys
from pathlib import Path

from style.report import Report


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    calls, ratios = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
    report = Report()
    for call in calls["benchmarks"]:
        report.check(f"measures {call['name']}", [call.get("error_message", "")] * call.get("error_occurred", 0))
    for ratio in ratios:
        times = ratio["umem_seconds"] + ratio["other_seconds"]
        good = times and all(seconds > 0 for seconds in times)
        report.check(f"measures the ratio of {ratio['operation']}", [] if good else [f"took {times} s"])
    report.check("there are both", [] if calls["benchmarks"] and ratios else ["one is empty"])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
