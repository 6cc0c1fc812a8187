#!/usr/bin/env python3
"""A case of the contract that crashes fails alone, by its name; all others run.

Usage: crash.py PROGRAM_OF_THE_CONTRACT
"""
import os
import re
import subprocess
import sys

SUITE = "set*"
CASE = "set: fills every size: fake"


def run(program, environment):
    done = subprocess.run([program, "single", SUITE], env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    good = re.findall(r"^\[       OK \] (.+)$", done.stdout, re.MULTILINE)
    bad = re.findall(r"^\[  FAILED  \] ([a-z].*)$", done.stdout, re.MULTILINE)
    return done, good, bad


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    whole, all_good, none_bad = run(sys.argv[1], {"UMEM_TEST_CRASH": ""})
    broken, good, bad = run(sys.argv[1], {"UMEM_TEST_CRASH": CASE})
    right = (whole.returncode == 0 and CASE in all_good and not none_bad and broken.returncode == 1 and
             bad == [CASE] and good == [case for case in all_good if case != CASE])
    if not right:
        print(whole.stdout, broken.stdout, f"exit status {whole.returncode}, then {broken.returncode}; failed: {bad}", sep="\n")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
