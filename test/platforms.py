#!/usr/bin/env python3
"""The table of tested platforms: test/run records what has passed here, and a record can be stored in the repository.

    platforms.py record LOGS RECORD STAGE...   after a run: appends a line for each of these stages, which have passed
    platforms.py store RECORD...               merges records into doc/platforms.tsv, which the page shows

The table begins with the names of its columns. A line has, between tabs: the system, the architecture, the stage, the compilers that CMake has found for it, how many tests
passed, the date, and the commit ("+" for a tree with changes). Of two lines of one system, architecture, stage and
compilers the later one stays.
"""
import datetime
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "doc/platforms.tsv"
COLUMNS = ("System", "Architecture", "Stage", "Compilers", "Tests passed", "Date", "Commit")
COMPILER = re.compile(r"The (?:C|CXX|CUDA) compiler identification is (\S+ \d+\.\d+)")
NAMES = {"GNU": "GCC", "NVIDIA": "CUDA"}


def system():
    """The distribution and its version, as it calls itself."""
    facts = platform.freedesktop_os_release()
    return " ".join(filter(None, (facts.get("NAME"), facts.get("VERSION_ID"))))


def architecture(stage):
    return "aarch64 (qemu)" if stage == "arm64" else platform.machine()


def commit():
    given = os.environ.get("UMEM_COMMIT")
    if given:
        return given
    git = ["git", "-C", str(ROOT)]
    try:
        found = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    if found.returncode:
        return "unknown"
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True).stdout
    return found.stdout.strip() + ("+" if changed else "")


def compilers(log):
    """As in "GCC 12.2, CUDA 13.0"; empty for a stage that configures nothing."""
    found = dict.fromkeys(COMPILER.findall(log))
    return ", ".join(" ".join((NAMES.get(name, name), version)) for name, version in (one.split() for one in found))


def line_of(logs, stage):
    log = (logs / f"{stage}.log").read_text(errors="replace")
    passed = len(re.findall(r"^ok - ", log, re.MULTILINE))
    date = datetime.datetime.fromtimestamp((logs / f"{stage}.log").stat().st_mtime, datetime.timezone.utc)
    return (system(), architecture(stage), stage, compilers(log), str(passed), f"{date:%Y-%m-%d}", commit())


def record(logs, target, stages):
    lines = ["\t".join(line_of(logs, stage)) + "\n" for stage in stages]
    with target.open("a") as file:
        file.writelines(lines)


def read(path):
    """The rows of a file; ValueError for one that is no row."""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        row = tuple(line.split("\t"))
        if number == 1 and row == COLUMNS:
            continue
        if len(row) != len(COLUMNS) or not row[4].isdecimal() or not re.fullmatch(r"\d{4}-\d\d-\d\d", row[5]):
            raise ValueError(f"{path}:{number}: this is no row of the table: {line!r}")
        rows.append(row)
    return rows


def merged(rows):
    """The rows in order, each the latest of its kind."""
    latest = {}
    for row in sorted(rows, key=lambda row: row[5]):
        latest[row[:4]] = row
    return sorted(latest.values())


def store(records, table=TABLE):
    old = read(table) if table.exists() else []
    rows = merged(old + [row for path in records for row in read(path)])
    table.write_text("".join("\t".join(row) + "\n" for row in [COLUMNS, *rows]))


def main():
    words = sys.argv[1:]
    if len(words) > 2 and words[0] == "record":
        record(Path(words[1]), Path(words[2]), words[3:])
    elif len(words) > 1 and words[0] == "store":
        store([Path(word) for word in words[1:]])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
