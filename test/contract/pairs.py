#!/usr/bin/env python3
"""The part of the pairs that the contract takes where time is short holds each row that the whole has, on each
side, and is a part of it, and another one for each test.

Usage: pairs.py PROGRAM_OF_THE_CONTRACT
"""
import os
import re
import subprocess
import sys

TESTS = ["safe: copies within both sizes", "safe: sizes of both sides are checked"]


def pairs(program, small):
    """{test: [(source, destination)]} of the suite safe."""
    environment = {**os.environ, "UMEM_TEST_SMALL": small}
    done = subprocess.run([program, "safe*"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    if done.returncode:
        sys.exit(done.stdout)
    found = {}
    for test, src, dst in re.findall(r"^\[       OK \] (safe: [^:]+): (.+) -> (.+)$", done.stdout, re.MULTILINE):
        found.setdefault(test, []).append((src, dst))
    return found


def check(name, right):
    print(f"{'right' if right else 'WRONG'}: {name}")
    return right


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    whole, part = pairs(sys.argv[1], ""), pairs(sys.argv[1], "1")
    right = check("each test has pairs", whole and whole.keys() == part.keys())
    for test, chosen in part.items():
        for side, word in enumerate(["source", "destination"]):
            rows = {pair[side] for pair in whole[test]}
            right &= check(f"{test}: each row is a {word}", {pair[side] for pair in chosen} == rows)
        right &= check(f"{test}: {len(chosen)} of {len(whole[test])} pairs",
                       set(chosen) <= set(whole[test]) and 2 * len(chosen) < len(whole[test]))
    right &= check("the tests differ", len({frozenset(chosen) for chosen in part.values()}) > 1)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
