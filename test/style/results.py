#!/usr/bin/env python3
"""Checks bench/results: one result of each benchmark and machine, and none that a page names in vain.

A file is MACHINE-BENCHMARK.txt or .json. Its text says when it was measured, and of which commit; a date or a number in
the name would be a second result. What pages and plots name must be there.
"""
import json
import re
import sys
from pathlib import Path

from report import Report

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\.(txt|json)")
SECOND = re.compile(r"20\d\d-\d\d|-\d+\.")
# The machine in a name, as bench/report.py and test/gpu.sh write it.
MACHINE = r"(?:intel|amd|nvidia)-[a-z0-9-]+-"
NAMED = re.compile(r"[\w*-]*" + MACHINE + r"[a-z0-9-]+\.(?:txt|json)|(?<=bench/results/)[\w.*-]+\.(?:txt|json)")


def names_that_are_wrong(folder):
    for path in sorted(folder.iterdir()):
        if not NAME.fullmatch(path.name) or SECOND.search(path.name) or not re.match(MACHINE, path.name):
            yield f"{path.name} is no MACHINE-BENCHMARK.txt or .json: replace the older result of this benchmark"


def facts_that_lack(folder):
    for path in sorted(folder.iterdir()):
        text = path.read_text(encoding="utf-8")
        facts = json.loads(text)["facts"] if path.suffix == ".json" else dict(re.findall(r"^(\w+): +(.+)", text, re.MULTILINE))
        for fact in ("date", "commit"):
            if not facts.get(fact):
                yield f"{path.name} does not say its {fact}"


def readers(root):
    yield from (root / "doc/pictures").glob("*.py")
    yield from (path for path in (root / "doc").rglob("*.rst") if "build" not in path.relative_to(root / "doc").parts[:1])
    yield from root.glob("*/README.md")


def names_in_vain(root):
    for path in sorted(readers(root)):
        for name in NAMED.findall(path.read_text(encoding="utf-8")):
            if not any((root / "bench/results").glob(name)):
                yield f"{path.relative_to(root)} names {name}, which bench/results lacks"


def main():
    report, folder = Report(), ROOT / "bench/results"
    report.check("bench/results has one result of each benchmark and machine", list(names_that_are_wrong(folder)))
    report.check("each result says its date and commit", list(facts_that_lack(folder)))
    report.check("pages and plots name results that are there", list(names_in_vain(ROOT)))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
