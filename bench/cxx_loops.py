#!/usr/bin/env python3
"""Measures loops over arrays of the C++ headers beside loops over raw pointers, with each compiler and level.

Usage: cxx_loops.py [--once] [--json FILE] ROOT BUILD

Compiles bench/cxx_loops.cpp with g++ and clang++, if they are installed, as users compile: with -O2, and with -O3
-march=native. Links the library of the build folder BUILD. The programs run in turns, three times; of each row the least
time by umem and by hand counts. Prints a table of the ratios, umem over raw, and for rows below a microsecond how many
nanoseconds umem takes more; with --json writes every sample. If valgrind is installed, a second table has the instructions
of one call; valgrind knows no AVX-512, so -O3 is for AVX2 there.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMPILERS = ("g++", "clang++")
LEVELS = (("-O2",), ("-O3", "-march=native"))
COUNTED_LEVELS = (("-O2",), ("-O3", "-march=x86-64-v3"))
# Where a loop begins in memory may double its time: so all begin at cache lines.
PLACED = ("-falign-loops=64", "-falign-functions=64")
SHORT = 1000  # ns: rows below also say what umem takes more


def libraries(build):
    """What a program with the static library of a build links."""
    cache = (build / "CMakeCache.txt").read_text()
    runtime = [line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CUDA_cudart_static_LIBRARY:")]
    cuda = [path for path in runtime if Path(path).exists()]
    return [str(build / "c/libumem.a"), *cuda, "-lpthread", "-ldl", "-lrt", "-lm"]


def compile_all(root, build, folder, levels):
    """[(column, program)]"""
    programs = []
    for compiler in filter(shutil.which, COMPILERS):
        for level in levels:
            program = folder / f"{compiler}{''.join(level)}"
            subprocess.run(
                [compiler, "-std=c++17", "-DNDEBUG", *level, *PLACED, f"-I{root}/c/include", f"-I{root}/cxx/include",
                 str(root / "bench/cxx_loops.cpp"), "-o", str(program), *libraries(build)],
                check=True,
            )  # fmt: skip
            programs.append((f"{compiler} {' '.join(level)}", program))
    return programs


def measure(programs, turns, rounds):
    """{row: {column: (umem, raw) in ns}}, and every sample."""
    least, samples = {}, []
    for turn in range(turns):
        for column, program in programs:
            output = subprocess.run([program, str(rounds)], check=True, capture_output=True, text=True).stdout
            for line in output.splitlines():
                name, ours, raw = line.split("\t")
                samples.append({"turn": turn, "compiler": column, "row": name, "umem_ns": float(ours), "raw_ns": float(raw)})
                before = least.setdefault(name, {}).get(column, (float("inf"), float("inf")))
                least[name][column] = (min(before[0], float(ours)), min(before[1], float(raw)))
    return least, samples


def count(programs, folder):
    """{row: {column: (umem, raw) in instructions of a call}}"""
    counts = {}
    for column, program in programs:
        tool = ["valgrind", "--tool=callgrind", "--toggle-collect=counted_call", "--dump-after=counted_call",
                f"--callgrind-out-file={folder}/counts"]  # fmt: skip
        names = subprocess.run([*tool, program, "0"], check=True, capture_output=True, text=True).stdout.splitlines()
        for i, name in enumerate(names):
            texts = [(folder / f"counts.{2 * i + which}").read_text() for which in (1, 2)]
            sums = [re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)[1] for text in texts]
            counts.setdefault(name, {})[column] = tuple(map(int, sums))
    return counts


def cell(ours, raw):
    more = f" ({ours - raw:+.0f} ns)" if raw < SHORT else ""
    return f"{ours / raw:.2f}{more}"


def print_table(rows, cell):
    columns = list(next(iter(rows.values())))
    print(f"{'loop':45s}" + "".join(f"{column:>29s}" for column in columns))
    for name, cells in rows.items():
        print(f"{name:45s}" + "".join(f"{cell(*cells[column]):>29s}" for column in columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("root", type=Path)
    parser.add_argument("build", type=Path)
    options = parser.parse_args()
    counts = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = compile_all(options.root, options.build, folder, LEVELS)
        if not programs:
            sys.exit("neither g++ nor clang++ is installed")
        least, samples = measure(programs, *((1, 1) if options.once else (3, 60)))
        if shutil.which("valgrind") and not options.once:
            counts = count(compile_all(options.root, options.build, folder, COUNTED_LEVELS), folder)
    columns = [column for column, _ in programs]
    for compiler in dict.fromkeys(column.split()[0] for column in columns):
        print(subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout.splitlines()[0])
    print("\nLoops by umem over the same by hand, the least times of all rounds; below a microsecond also the difference.\n")
    print_table(least, cell)
    if counts:
        print("\nInstructions of one call, umem over by hand, counted by valgrind.\n")
        print_table(counts, lambda ours, raw: f"{ours / raw:.2f} ({ours - raw:+d})")
    if options.json:
        Path(options.json).write_text(json.dumps({"samples": samples, "instructions": counts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
