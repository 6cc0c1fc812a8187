#!/usr/bin/env python3
"""Checks that each entry of the newest section of CHANGELOG.md is one line, as figures and reasons belong to the pages, and
that no entry is there twice: Git merges the file line by line (.gitattributes)."""
import collections
import sys
from pathlib import Path

from report import Report

LONGEST = 130


def problems(text):
    newest = text.split("\n## ")[1]
    for line in newest.splitlines()[1:]:
        if line and not line.startswith(("- ", "### ")):
            yield f"is no entry of one line: {line}"
        elif len(line) > LONGEST:
            yield f"is longer than {LONGEST} characters: {line}"


def main():
    report = Report()
    text = (Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    report.check("each entry of CHANGELOG.md is one line", list(problems(text)))
    entries = collections.Counter(line for line in text.split("\n## ")[1].splitlines() if line.startswith("- "))
    report.check("no entry of CHANGELOG.md is there twice", [entry for entry, count in entries.items() if count > 1])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
