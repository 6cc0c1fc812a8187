#!/usr/bin/env python3
"""Checks that a file does not compile, for the reason that it gives.

The first line of the file is `// refused: REGEX`, which the compiler's complaint must match. The
mistake stands under `#ifdef REFUSED`; without that macro the file compiles, so that nothing else is
the reason.

Usage: refused.py FILE COMPILER [OPTION...]
"""
import os
import re
import subprocess
import sys


def compiled(command, file, *options):
    """Whether the compiler takes the file, and what it says."""
    run = subprocess.run(
        [*command, *options, file],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    return run.returncode == 0, run.stdout + run.stderr


def main(file, *command):
    with open(file) as text:
        first = text.readline()
    reason = re.fullmatch(r"// refused: (.+)\n", first)
    if not reason:
        return f"{file}: the first line is not '// refused: REGEX'"
    good, said = compiled(command, file)
    if not good:
        return f"{file} does not compile without the mistake:\n{said}"
    good, said = compiled(command, file, "-DREFUSED")
    if good:
        return f"{file} compiles with the mistake"
    if not re.search(reason[1], said):
        return f"{file}: the compiler does not say '{reason[1]}':\n{said}"
    print(f"{file}: refused, since '{reason[1]}'")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
