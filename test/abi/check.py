#!/usr/bin/env python3
"""Compares the interface of a library with that of version 0.1.0, which the file libumem-0.1.0.abi describes.

A program that was linked with version 0.1.0 must run with the library. What may change is in the file suppressions. The
check itself is checked with descriptions that were changed by hand: abidiff must find each change.

Usage: check.py LIBRARY      a shared library with -g
Exit status 1 if something has changed. libumem-0.1.0.abi was written by

    abidw --headers-dir c/include --drop-private-types --no-show-locs --no-corpus-path --no-comp-dir-path \\
      --no-elf-needed --type-id-style hash --out-file libumem-0.1.0.abi libumem.so
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "libumem-0.1.0.abi"
CHANGES = {
    "a function that is gone": lambda text: text.replace("umem_copy_to", "umem_copy_past"),
    "a function with an argument more": lambda text: re.sub(
        r"(<function-decl name='umemPool_ctor' mangled-name.*?\n)(<parameter .*?\n)", r"\1\2\2", text, count=1, flags=re.S),
    "another number of a status": lambda text: text.replace("'umemMemoryError' value='1'", "'umemMemoryError' value='77'"),
    "a member that moved": lambda text: re.sub(r"('umemBin' .*?layout-offset-in-bits=')64", r"\g<1>128", text, count=1,
                                               flags=re.S),
}


def differences(before, library):
    """What abidiff prints, or "" if nothing has changed."""
    done = subprocess.run(["abidiff", "--leaf-changes-only", "--impacted-interfaces", "--suppressions",
                           HERE / "suppressions", "--no-added-syms", before, library], stdout=subprocess.PIPE, text=True)
    return done.stdout or f"exit status {done.returncode}" if done.returncode else ""


def main():
    (library,) = sys.argv[1:]
    failed = False

    def report(good, name, said=""):
        nonlocal failed
        failed |= not good
        print(f"{'ok' if good else 'not ok'} - {name}", *said.splitlines(), sep="\n    ")

    said = differences(BASELINE, library)
    report(not said, "programs of version 0.1.0 run with this library", said)
    text = BASELINE.read_text()
    for name, change in CHANGES.items():
        changed = change(text)
        with tempfile.NamedTemporaryFile("w", suffix=".abi") as file:
            file.write(changed)
            file.flush()
            report(changed != text and differences(file.name, library), f"abidiff finds {name}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
