#!/usr/bin/env python3
"""Checks on the objects of the static library that CUDA is called through the table umemCudaRt alone:
cuda/cuda_rt.c refers to functions of CUDA, and no other file to one of them. No other file but
base/system.c, which opens libraries, cuda/cuda_driver.c, which looks for the driver and for cuFile, and url/url_curl.c, which
looks for libcurl, refers to the dynamic linker, which could find them. None of them is one of a default stream per thread. That the sources name none, include_rules.py checks.

Usage: cuda_symbols.py LIBUMEM_A [with|without]     whether the build is one with CUDA, if it is known
"""
import re
import subprocess
import sys

from report import Report

TABLE = "cuda_rt.c.o"
OPENERS = {"cuda_driver.c.o", "system.c.o", "url_curl.c.o"}
CUDA = r"_*cuda\w+|_*cu[A-Z]\w+"
LINKER = r"dlm?open|dlv?sym"
PER_THREAD = r"\w+_pt(?:sz|ds)" # as CUDA names what takes stream 0 for that of the thread


def references(library):
    """What each object of the library refers to without defining it: {object: names}."""
    out = subprocess.run(
        ["nm", "--undefined-only", "--format=posix", str(library)],
        check=True, capture_output=True, text=True,
    ).stdout
    found, names = {}, set()
    for line in out.splitlines():
        member = re.fullmatch(r".*\[(.+)\]:", line)
        if member:
            names = found.setdefault(member[1], set())
        elif line:
            names.add(line.split()[0].split("@")[0])
    return found


def past_the_table(found):
    """Who but the table refers to CUDA: ["OBJECT refers to NAME"]."""
    return [
        f"{member} refers to {name}"
        for member in sorted(found.keys() - {TABLE})
        for name in sorted(found[member])
        if re.fullmatch(CUDA if member in OPENERS else f"{CUDA}|{LINKER}", name)
    ]


def of_the_table(found):
    """The functions of CUDA that the table refers to."""
    return [name for name in sorted(found.get(TABLE, ())) if re.fullmatch(CUDA, name)]


def check(report, library, build):
    found = references(library)
    report.check(f"the library holds {TABLE} and others",
                 [] if TABLE in found and len(found) > 1 else [f"found {sorted(found)}"])
    report.check(f"no object but {TABLE} refers to CUDA", past_the_table(found))
    report.check(f"{TABLE} means the legacy stream by stream 0",
                 [name for name in of_the_table(found) if re.fullmatch(PER_THREAD, name)])
    if build == "with":
        report.check(f"{TABLE} refers to CUDA", [] if of_the_table(found) else ["to no function of it"])
    if build == "without":
        report.check(f"without CUDA not even {TABLE} refers to it", of_the_table(found))


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["with"], ["without"]):
        sys.exit(__doc__)
    report = Report()
    check(report, sys.argv[1], (sys.argv[2:] or [None])[0])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
