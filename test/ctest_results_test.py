#!/usr/bin/env python3
"""Shows what ctest_results.py makes of the programs of ctest: those that pass, fail, skip and break off."""
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import ctest_results

sys.path.insert(0, str(Path(__file__).parent / "style"))
from report import Report  # noqa: E402: it lies in that folder

BEGIN = "[==========] Running 2 tests from 1 test suite.\n"
PASSED = "[ RUN      ] Set.one\n[       OK ] Set.one (0 ms)\n"
SKIPPED = "[ RUN      ] Set.two\nset.cpp:9: Skipped\nthere is no GPU\n[  SKIPPED ] Set.two (0 ms)\n"
FAILED = "[ RUN      ] Set.six\nset.cpp:8: Failure\n[  FAILED  ] Set.six (0 ms)\n"

# (what the program does, what it prints, how ctest calls that, what is told of it)
CASES = [
    ("passes", BEGIN + PASSED, "run", ["ok p: Set.one"]),
    ("skips one test", BEGIN + PASSED + SKIPPED, "run", ["ok p: Set.one", "skipped p: Set.two"]),
    ("skips all tests", BEGIN + SKIPPED, "run", ["skipped p: Set.two"]),
    ("skips all tests and leaks", BEGIN + SKIPPED, "fail",
     ["skipped p: Set.two", "not ok p: the program as a whole"]),
    ("fails", BEGIN + PASSED + FAILED, "fail", ["ok p: Set.one", "not ok p: Set.six"]),
    ("crashes after a test", BEGIN + PASSED, "fail", ["ok p: Set.one", "not ok p: the program as a whole"]),
    ("runs no test", BEGIN, "run", ["not ok p: no test ran"]),
    ("crashes before its first test", BEGIN, "fail", ["not ok p: no test ran"]),
    ("is no program of tests", "done\n", "run", ["ok p"]),
    ("is no program of tests, and fails", "no\n", "fail", ["not ok p"]),
]


def told(output, status):
    """What is told of a program p that printed this."""
    case = ET.Element("testcase", name="p", status=status)
    ET.SubElement(case, "system-out").text = output
    return [f"{verdict} {name}" for name, verdict, _ in ctest_results.results(case)]


def main():
    report = Report()
    for does, output, status, expected in CASES:
        found = told(output, status)
        report.check(f"ctest results: a program that {does}",
                     [] if found == expected else [f"told: {found}", f"not:  {expected}"])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
