#!/usr/bin/env python3
"""Checks that a header compiled in a standard before C++17 gives one error, which says what is needed.

Usage: too_old.py HEADER COMPILER [OPTION...]
"""
import os
import subprocess
import sys

TEXT = "umem's C++ headers need C++17"


def main(header, *command):
    for standard in ["c++11", "c++14", "gnu++14"]:
        run = subprocess.run(
            [*command, f"-std={standard}", "-x", "c++", header],
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        errors = [line for line in run.stderr.splitlines() if "error:" in line]
        if run.returncode == 0 or len(errors) != 1 or TEXT not in errors[0]:
            return f"{header} as {standard}: {len(errors)} errors, not one that says '{TEXT}':\n" + "\n".join(
                errors[:5]
            )
    print(errors[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
