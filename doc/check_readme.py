#!/usr/bin/env python3
"""Checks that each block of code in README.md is part of a file that the tests build or run.

The file is named in a comment of HTML on the line before the block. The block's lines must stand in
that file, one after the other; the indentation of the whole may differ. README.md has at most MOST_WORDS words, counted as
wc does, and its links lead to files.
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_WORDS = 900
LINK = re.compile(r"\]\(([^)#:]+)\)")
BLOCK = re.compile(r"^(?:<!-- (?P<file>\S+) -->\n)?```\w*\n(?P<code>.*?)^```$", re.M | re.S)


def contains(text, code):
    """Whether the lines of code are some successive lines of text."""
    wanted = textwrap.dedent(code).splitlines()
    lines = text.splitlines()
    return any(
        textwrap.dedent("\n".join(lines[start : start + len(wanted)])).splitlines() == wanted
        for start in range(len(lines) - len(wanted) + 1)
    )


def complaints(readme):
    for block in BLOCK.finditer(readme):
        line = readme.count("\n", 0, block.start("code"))
        name = block["file"]
        if not name:
            yield f"README.md:{line}: no comment before this block names its file"
        elif not (ROOT / name).is_file():
            yield f"README.md:{line}: there is no file {name}"
        elif not contains((ROOT / name).read_text(encoding="utf-8"), block["code"]):
            yield f"README.md:{line}: this block is not a part of {name}"
    words = len(readme.split())
    if words > MOST_WORDS:
        yield f"README.md has {words} words, and may have {MOST_WORDS}: move something to a page"
    for name in LINK.findall(readme):
        if not (ROOT / name).exists():
            yield f"README.md: a link leads to {name}, which is not there"


def main():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    failures = list(complaints(readme))
    if not BLOCK.search(readme):
        failures.append("README.md: no block of code was found")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
