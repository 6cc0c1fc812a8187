#!/usr/bin/env python3
"""Runs clang-tidy, with the checks of .clang-tidy, on the C and C++ files that a build compiles, and on
UNIT, which includes all C++ headers. Of the tests of these, which each take as long as ten other files,
some stand for all.

Usage: tidy.py BUILD_FOLDER UNIT JOBS
"""
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import Report

ROOT = Path(__file__).resolve().parents[2]
CXX_TESTS = ROOT / "test/cxx"
FOR_ALL = {"buffer.cpp", "main.cpp", "view.cpp"}


def units(build, unit):
    """What is looked at: [(name, file, options)]."""
    commands = json.loads((build / "compile_commands.json").read_text())
    files = sorted({Path(c["file"]) for c in commands if c["file"].endswith((".c", ".cpp"))})
    found = [
        (str(file.relative_to(ROOT)), file, ["-p", build])
        for file in files
        if file.parent != CXX_TESTS or file.name in FOR_ALL
    ]

    options = [f"--config-file={ROOT}/.clang-tidy", "--", "-std=c++17"]
    options += [f"-I{ROOT}/cxx/include", f"-I{ROOT}/c/include"]
    return [("the C++ headers", unit, options), *found]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    build, headers, jobs = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])

    def tidy(unit):
        name, file, options = unit
        command = ["clang-tidy", "--quiet", file, *options]
        return name, subprocess.run(command, capture_output=True, text=True)

    report = Report()
    with ThreadPoolExecutor(jobs) as pool:
        for name, run in pool.map(tidy, units(build, headers)):
            problems = run.stdout.splitlines() or run.stderr.splitlines()
            report.check(f"clang-tidy of {name}", problems if run.returncode else [])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
