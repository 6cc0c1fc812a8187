#!/usr/bin/env python3
"""Checks that every C and C++ file is as clang-format writes it.

Usage: format.py CLANG_FORMAT          prints each file
       format.py CLANG_FORMAT --fix    rewrites them
"""
import subprocess
import sys
from pathlib import Path

from report import Report

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["c", "cxx", "tool", "python", "mpi", "formats", "test", "bench", "examples", "doc"]
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
VERSION = "14.0.6"


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--fix"]):
        sys.exit(__doc__)
    clang_format = sys.argv[1]
    version = subprocess.run([clang_format, "--version"], check=True, capture_output=True, text=True)
    if VERSION not in version.stdout:
        sys.exit(f"need clang-format {VERSION}, found {version.stdout}")

    files = [p for f in FOLDERS for p in sorted((ROOT / f).rglob("*")) if p.suffix in SUFFIXES]
    if sys.argv[2:]:
        return subprocess.run([clang_format, "-i", *map(str, files)]).returncode
    run = subprocess.run(
        [clang_format, "--dry-run", "--Werror", *map(str, files)], capture_output=True, text=True
    )
    complaints = [line for line in run.stderr.splitlines() if "error:" in line]
    report = Report()
    for path in files:
        report.check(f"format of {path.relative_to(ROOT)}",
                     [line for line in complaints if line.startswith(f"{path}:")])
    return 1 if run.returncode else report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
