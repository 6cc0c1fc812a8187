#!/usr/bin/env python3
"""Units of C++ that stand for many files. Whoever analyses C++ spends most of the time on headers: in one unit that is
once.

Usage: cxx_units.py UNIT_OF_HEADERS UNIT_OF_PROGRAMS PROGRAM...

Writes both units.
"""
import re
import sys
from pathlib import Path

HEADERS = Path(__file__).resolve().parents[2] / "cxx/include"
INCLUDE = re.compile(r'^ *#include ([<"][^>"]+[>"])', re.MULTILINE)


def headers():
    """The text of a unit of all C++ headers, which only become code where something includes them. Those for libraries
    of others, in the folder `with`, need these."""
    paths = sorted(path for path in HEADERS.rglob("*.hpp") if path.parent.name != "with")
    return "".join(f"#include <{path.relative_to(HEADERS)}>\n" for path in paths)


def includes(file):
    """The names that a file includes, those beside it as paths: other folders may have files of
    these names."""
    def path(name):
        beside = file.parent / name[1:-1]
        return f'"{beside}"' if name[0] == '"' and beside.exists() else name

    return {path(name) for name in INCLUDE.findall(file.read_text())}


def programs(files):
    """The text of a unit of these programs. Each has a namespace of its own, behind the headers of all."""
    text = "".join(f"#include {name}\n" for name in sorted(set().union(*map(includes, files))))
    for i, file in enumerate(files):
        text += f'namespace program_{i} {{\n#include "{file}"\n}}\n'
    return text


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    Path(sys.argv[1]).write_text(headers())
    Path(sys.argv[2]).write_text(programs(sorted(Path(name).resolve() for name in sys.argv[3:])))


if __name__ == "__main__":
    main()
