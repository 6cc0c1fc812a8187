#!/usr/bin/env python3
"""Checks that doc/why.rst says what this version has: the version by name, and each context of the headers.

A context is a class umemX with a constructor umemX_ctor in a public header of the library or of the component for MPI.
Its page is doc/contexts/X.rst, in small letters. The page of contexts lists it, too.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/style"))
from report import Report  # noqa: E402

HEADERS = ("c/include", "mpi/include", "formats/include")
NO_CONTEXTS = {"Virtual", "Blocks"}  # the base of all contexts, and an iterator
CONSTRUCTOR = re.compile(r"^\w[\w ]*\bumem([A-Z]\w*?)_ctor\(", re.M)
LISTED = re.compile(r":doc:`contexts/([\w-]+)`")


def page_of(name):
    """CudaAsync is on the page cuda-async, and MMap on mmap."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def contexts():
    texts = (path.read_text(encoding="utf-8") for folder in HEADERS for path in (ROOT / folder).rglob("*.h"))
    return {page_of(name) for text in texts for name in CONSTRUCTOR.findall(text) if name not in NO_CONTEXTS}


def section(page, label):
    """What follows a label of a page, up to the next one."""
    return re.split(r"^\.\. _[\w-]+:$", page.split(f".. _{label}:\n")[1], flags=re.M)[0]


def wrong_list(listed, there):
    for name in sorted(there - listed):
        yield f"{name} is missing"
    for name in sorted(listed - there):
        yield f"{name} is no context of the headers"


def main():
    report = Report()
    why = (ROOT / "doc/why.rst").read_text(encoding="utf-8")
    index = (ROOT / "doc/contexts/index.rst").read_text(encoding="utf-8")
    there = contexts()
    report.check("doc/why.rst names the version by |release| alone",
                 [f"{found} is written out" for found in re.findall(r"\b[Vv]ersion \d[\d.]*|umem \d[\d.]*", why)]
                 + ([] if "umem |release|" in why else ["it does not name the version"]))
    listed = set(LISTED.findall(section(why, "what-there-is"))) - {"your-own"}
    report.check("doc/why.rst lists the contexts of the headers", list(wrong_list(listed, there)))
    pages = set(re.findall(r"^   (?:[\w ]+<)?([\w-]+)>?$", index, re.M))
    report.check("doc/contexts/index.rst lists the contexts of the headers", [f"{name} is missing" for name in sorted(there - pages)])
    report.check("each context has a page", [name for name in sorted(there) if not (ROOT / f"doc/contexts/{name}.rst").is_file()])
    sys.exit(report.exit_code())


if __name__ == "__main__":
    main()
