#!/usr/bin/env python3
"""Checks on the objects of the static library that long copies are those of the C library: no file that copies arrays has an
instruction `rep movs`. AMD's processors execute it up to thirteen times as slowly as the C library copies where the
destination begins a little after the source, modulo the size of a page (c/src/base/system.h), and compilers make it of
a memcpy whose size they know.

Usage: long_copies.py LIBUMEM_A
"""
import re
import subprocess
import sys

from report import Report

FILES = {"ram.c.o"}


def instructions(library):
    """The text of each object's instructions: {object: text}."""
    out = subprocess.run(["objdump", "--disassemble", "--no-show-raw-insn", str(library)], check=True, capture_output=True,
                         text=True).stdout
    parts = re.split(r"^(\S+\.o):\s+file format .*$", out, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def main(library):
    report = Report()
    found = instructions(library)
    report.check("the library has the files that copy arrays",
                 [f"there is no {name}" for name in sorted(FILES - found.keys())])
    for name in sorted(FILES & found.keys()):
        report.check(f"{name} copies without rep movs",
                     re.findall(r"^.*\brep movs.*$", found[name], flags=re.MULTILINE))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
