#!/usr/bin/env python3
"""Checks that the shared library exports the functions that the public headers declare UMEM_EXTERN, and
nothing else, all in the node of c/umem.map. Also that the static library defines no global name outside of the
project's own.

Usage: exported_symbols.py DIRECTORY_OF_THE_LIBRARIES
"""
import re
import subprocess
import sys
from pathlib import Path

import c_source
from report import Report

ROOT = Path(__file__).resolve().parents[2]
NODE = "UMEM_0"
# What compilers add to objects through which exceptions pass: hidden, and the same in all.
PERSONALITY = "DW.ref.__gcc_personality_v0"


def declared():
    """The functions that the public headers declare."""
    names = set()
    for header in sorted((ROOT / "c/include").rglob("*.h")):
        text = c_source.without_directives(c_source.without_comments(header.read_text()))
        names.update(re.findall(r"\bUMEM_EXTERN\b[^;{(]*?(\w+)\s*\(", text))
    return names


def defined(library, *options):
    """The global names that library defines, with their version."""
    out = subprocess.run(
        ["nm", "--defined-only", "--extern-only", "--format=posix", *options, str(library)],
        check=True, capture_output=True, text=True,
    ).stdout
    symbols = [line.split() for line in out.splitlines() if len(line.split()) > 2]
    return {name for name, kind, *_ in symbols if kind != "A"}


def differences(one, one_name, other, other_name):
    return [f"{name}: in {one_name}, not in {other_name}" for name in sorted(one - other)] + [
        f"{name}: in {other_name}, not in {one_name}" for name in sorted(other - one)
    ]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = Path(sys.argv[1])
    headers, exported = declared(), defined(build / "libumem.so", "--dynamic")
    report = Report()
    report.check("the headers declare functions", [] if headers else ["none found"])
    report.check("libumem.so exports what the headers declare",
                 differences({name.split("@")[0] for name in exported}, "libumem.so",
                             headers, "the headers"))
    report.check(f"all of it stands in the node {NODE}",
                 sorted(name for name in exported if not name.endswith(f"@@{NODE}")))
    report.check("libumem.a defines names of umem only",
                 [n for n in sorted(defined(build / "libumem.a"))
                  if not n.startswith("umem") and n != PERSONALITY])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
