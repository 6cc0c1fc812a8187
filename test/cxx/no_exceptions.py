#!/usr/bin/env python3
"""Checks that a header refuses -fno-exceptions, and that the compiler's first error says why and what to do.

Usage: no_exceptions.py HEADER COMPILER [OPTION...]
"""
import os
import subprocess
import sys

TEXT = "umem.hpp reports failures by exceptions: compile without -fno-exceptions, or use umem.h"


def said_by(command):
    """Whether the compiler is content, and its errors."""
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    return run.returncode == 0, errors


def main(header, *command):
    good, errors = said_by([*command, "-x", "c++", header])
    if not good:
        return f"{header} does not compile with exceptions: {errors}"
    good, errors = said_by([*command, "-fno-exceptions", "-x", "c++", header])
    if good:
        return f"{header} compiles without exceptions"
    if TEXT not in errors[0]:
        return f"the first error is not '{TEXT}':\n{errors[0]}"
    print(errors[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
