#!/usr/bin/env python3
"""Runs clang-tidy, with the checks of .clang-tidy, on every C file that a build compiles.

Usage: tidy.py BUILD_FOLDER JOBS
"""
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import Report

ROOT = Path(__file__).resolve().parents[2]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, jobs = Path(sys.argv[1]), int(sys.argv[2])
    commands = json.loads((build / "compile_commands.json").read_text())
    files = sorted({c["file"] for c in commands if c["file"].endswith(".c")})

    def tidy(file):
        return file, subprocess.run(
            ["clang-tidy", "--quiet", "-p", str(build), file], capture_output=True, text=True
        )

    report = Report()
    with ThreadPoolExecutor(jobs) as pool:
        for file, run in pool.map(tidy, files):
            report.check(f"clang-tidy of {Path(file).relative_to(ROOT)}",
                         (run.stdout.splitlines() or run.stderr.splitlines()) if run.returncode else [])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
