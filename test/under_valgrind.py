#!/usr/bin/env python3
"""Runs the suites of the contract under valgrind, each context by itself: a wrong access, a use of
undefined bytes or a leak fails the suite.

Usage: under_valgrind.py BUILD_FOLDER JOBS
"""
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

VALGRIND = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=all",
            "--errors-for-leak-kinds=all", f"--suppressions={Path(__file__).with_name('valgrind.supp')}"]


def suites(build):
    """The suites, without their pairs: [(name, command)]."""
    listing = subprocess.run(
        ["ctest", "--test-dir", build, "--label-regex", "^contract$", "--show-only=json-v1"],
        check=True, capture_output=True, text=True,
    ).stdout
    tests = [(test["name"], test["command"]) for test in json.loads(listing)["tests"]]
    return [(name, [program, "single", *rest]) for name, (program, *rest) in tests]


def run(suite):
    name, command = suite
    done = subprocess.run(VALGRIND + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return name, done.returncode, done.stdout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    failed = False
    with ThreadPoolExecutor(int(sys.argv[2])) as pool:
        for name, status, output in pool.map(run, suites(sys.argv[1])):
            good = re.findall(r"^\[       OK \] (.+)$", output, re.MULTILINE)
            for test in good:
                print(f"ok - {name}: {test}")
            if status:
                print(*re.findall(r"^(?!\[ RUN|\[       OK).*$", output, re.MULTILINE), sep="\n")
                print(f"not ok - {name} under valgrind (exit status {status})")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
