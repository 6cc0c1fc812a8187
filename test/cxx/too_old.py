#!/usr/bin/env python3
"""Checks that a header compiled in a standard before C++17 gives one error, which says what is needed.

Usage: too_old.py HEADER... -- COMPILER [OPTION...]
The first header is compiled in several standards, the others in the newest of them.
"""
import os
import subprocess
import sys

TEXT = "umem's C++ headers need C++17"
STANDARDS = ["c++11", "gnu++14", "c++14"]


def problem_of(header, standard, command):
    """What is wrong with the compiler's words, or nothing."""
    run = subprocess.run(
        [*command, f"-std={standard}", "-x", "c++", header],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    if run.returncode == 0 or len(errors) != 1 or TEXT not in errors[0]:
        return f"{header} as {standard}: {len(errors)} errors, not one that says '{TEXT}':\n" + "\n".join(errors[:5])
    return ""


def main(words):
    border = words.index("--")
    headers, command = words[:border], words[border + 1:]
    looked_at = [(headers[0], standard) for standard in STANDARDS] + [(header, STANDARDS[-1]) for header in headers[1:]]
    problems = [problem for header, standard in looked_at if (problem := problem_of(header, standard, command))]
    return "\n".join(problems) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
