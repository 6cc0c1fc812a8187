#!/usr/bin/env python3
"""Runs the suites of the contract, each context by itself: what is left of them where all pairs take too long.

COMMAND stands before each program: valgrind with its options, for example. --without leaves out a suite.

Usage: contract_single.py [--without SUITE] BUILD_FOLDER JOBS [COMMAND...]
"""
import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def suites(build, before):
    """The suites, without their pairs: [(name, command)]. A cross build has an emulator before the program."""
    listing = subprocess.run(
        ["ctest", "--test-dir", build, "--label-regex", "^contract$", "--show-only=json-v1"],
        check=True, capture_output=True, text=True,
    ).stdout
    tests = [(test["name"], test["command"]) for test in json.loads(listing)["tests"]]
    return [(name, [*before, *program, "single", suite]) for name, (*program, suite) in tests]


def run(suite):
    name, command = suite
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return name, done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--without", default="")
    parser.add_argument("build")
    parser.add_argument("jobs", type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    wishes = parser.parse_args()
    chosen = [suite for suite in suites(wishes.build, wishes.command) if suite[0] != f"contract.{wishes.without}"]
    failed = False
    with ThreadPoolExecutor(wishes.jobs) as pool:
        for name, status, output in pool.map(run, chosen):
            good = re.findall(r"^\[       OK \] (.+)$", output, re.MULTILINE)
            for test in good:
                print(f"ok - {name}: {test}")
            if status:
                print(*re.findall(r"^(?!\[ RUN|\[       OK).*$", output, re.MULTILINE), sep="\n")
                bad = dict.fromkeys(re.findall(r"^\[  FAILED  \] ([a-z].+)$", output, re.MULTILINE))
                for test in bad or [f"the program as a whole (exit status {status})"]:
                    print(f"not ok - {name}: {test}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
