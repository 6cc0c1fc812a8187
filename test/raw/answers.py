#!/usr/bin/env python3
"""Raw bytes of files in C, in C++ and by the program umem: the cases of cases.py. Usage: answers.py UMEM PROGRAM..."""
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import CASES

UMEM, *PROGRAMS = sys.argv[1:]


def run(*words):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)


def ask_language(program, case, path, mapped):
    shape = ",".join(map(str, case.shape)) or "-"
    strides = "-" if case.strides is None else ",".join(map(str, case.strides))
    left = "-" if case.left is None else case.left
    done = run(program, "mmap" if mapped else "file", path, case.offset, case.type, shape, strides, left)
    return done.stdout.strip() if (done.returncode, done.stderr) == (0, "") else f"status {done.returncode}, {done.stderr}"


def ask_umem(case, path, mapped):
    """umem cp knows offsets and lengths. What goes beyond the file it refuses, and makes no file."""
    target = path.with_name("y")
    done = run(UMEM, "cp", f"{'mmap:' if mapped else ''}{path}@{case.offset},{case.nbytes()}", target)
    if done.returncode == 0:
        found = target.read_bytes().hex()
        target.unlink()
        return found
    if any(word in done.stderr for word in ("there is no range from", "too large")) and not target.exists():
        return "IndexError"
    return f"status {done.returncode}, {done.stderr}"


def main():
    problems = []
    with tempfile.TemporaryDirectory(prefix="umem-test-") as folder:
        path = Path(folder) / "x"
        for case in CASES:
            for mapped in False, True:
                for program in [*PROGRAMS, *([UMEM] if case.is_range() else [])]:
                    path.write_bytes(case.content())
                    ask, expected = (ask_umem, case.of_range()) if program == UMEM else (
                        lambda *rest: ask_language(program, *rest), case.answer(mapped))
                    found = ask(case, path, mapped)
                    if found != expected:
                        problems.append(f"{case.name}, {'mapped' if mapped else 'file'}, {Path(program).name}: {found}, not {expected}")
    print("\n".join(problems) or f"ok - {len(CASES)} cases")
    return bool(problems)


sys.exit(main())
