#!/usr/bin/env python3
"""Runs clang-tidy, with the checks of .clang-tidy, on the C files that a build compiles, on those of the component for
MPI if mpicc is installed, on a unit of all C++ headers, and on one of all programs in C++ but the tests, of which some stand for all.

One unit for all programs takes a fifth of the time that a unit for each takes, as most of that goes to the headers.
It leaves out a check whose time grows with the square of a unit's size, and the slowest of the others; the headers
have them.

Usage: tidy.py BUILD_FOLDER FOLDER_FOR_UNITS JOBS
"""
import json
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cxx_units
from report import Report

ROOT = Path(__file__).resolve().parents[2]
CXX_TESTS = ROOT / "test/cxx"
FOR_ALL = {"buffer.cpp", "main.cpp", "view.cpp"}
# In the first two each file adds its functions to one namespace; the third replaces operator new.
ALONE = {ROOT / "tool", ROOT / "formats/src", ROOT / "formats/test"}
CONFIG = f"--config-file={ROOT}/.clang-tidy"
# The first cannot know that the unit's inclusions are meant. The others take most of the time; headers and C have them.
NOT_FOR_PROGRAMS = (
    "--checks=-bugprone-suspicious-include,-performance-unnecessary-value-param,-bugprone-stringview-nullptr,"
    "-bugprone-infinite-loop,-bugprone-assert-side-effect,-bugprone-multiple-statement-macro"
)


def flags_of(commands):
    """The options of commands that say how code is read, each once: folders, macros, warnings. Of macros that programs
    define differently the first counts."""
    flags, macros = [], set()
    for command in commands:
        words = shlex.split(command)
        for word, following in zip(words, words[1:]):
            flag = word + following if word == "-isystem" else word
            macro = flag.split("=")[0] if flag.startswith("-D") else flag
            if flag.startswith(("-I", "-isystem/", "-D", "-W")) and macro not in macros:
                flags.append(flag)
                macros.add(macro)
    return flags


def headers_unit(folder):
    """A unit of all C++ headers: (name, file, options)."""
    unit = folder / "headers.cpp"
    unit.write_text(cxx_units.headers())
    options = [CONFIG, "--", "-std=c++17", f"-I{ROOT}/cxx/include", f"-I{ROOT}/c/include"]
    return "the C++ headers", unit, options


def programs_unit(folder, commands):
    """A unit of all programs in C++: (name, file, options). commands: {file: command that compiles it}. Each program
    has a namespace of its own, behind the headers of all."""
    files = sorted(commands)
    unit = folder / "programs.cpp"
    unit.write_text(cxx_units.programs(files))
    options = [CONFIG, NOT_FOR_PROGRAMS, r"--header-filter=/(c|cxx|test|examples|doc)/.*\.(h|hpp|cpp)$", "--"]
    options += ["-std=c++17", *flags_of(commands.values()), *sorted({f"-I{file.parent}" for file in files})]
    return "the programs in C++", unit, options + ["-Wno-return-type"]  # main may end without, but in no namespace


def mpi_units():
    """The files of the component for MPI, and with one of them its C++ headers, as the MPI of the system has them compiled;
    none without one."""
    if not shutil.which("mpicc"):
        return []
    shown = subprocess.run(["mpicc", "-show"], capture_output=True, text=True, check=True).stdout.split()
    names = "--checks=-readability-inconsistent-declaration-parameter-name"  # those of MPI's functions differ between MPIs
    options = [CONFIG, names, "--", "-std=c11", "-D_GNU_SOURCE", f"-I{ROOT}/mpi/include", f"-I{ROOT}/c/include"]
    options += [f"-I{ROOT}/c/src", *(word for word in shown if word.startswith("-I"))]
    files = sorted([*(ROOT / "mpi/src").glob("*.c"), *(ROOT / "mpi/test").glob("*.c"), *(ROOT / "mpi/bench").glob("*.c")])
    in_cpp = ROOT / "mpi/test/blocks.cpp"
    cxx_options = [CONFIG, r"--header-filter=/mpi/include/", "--", "-std=c++17", *options[4:], f"-I{ROOT}/cxx/include"]
    cxx_options += [f"-I{ROOT}/examples", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
    return [(str(file.relative_to(ROOT)), file, options) for file in files] + [(str(in_cpp.relative_to(ROOT)), in_cpp, cxx_options)]


def units(build, folder):
    """What is looked at: [(name, file, options)]."""
    commands = {Path(c["file"]): c["command"] for c in json.loads((build / "compile_commands.json").read_text())}
    in_c = sorted(file for file in commands if file.suffix == ".c")
    programs = {
        file: command
        for file, command in commands.items()
        if file.suffix == ".cpp" and file.is_relative_to(ROOT) and (file.parent != CXX_TESTS or file.name in FOR_ALL)
        and file.parent not in ALONE
        and "#include <umem/with/" not in file.read_text()  # the headers of other libraries take longer than all else
    }
    alone = sorted(file for file in commands if file.parent in ALONE)
    found = [(str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else file.name, file, ["-p", build])
             for file in [*in_c, *alone]]
    return [programs_unit(folder, programs), headers_unit(folder), *found, *mpi_units()]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    build, folder, jobs = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])

    def tidy(unit):
        name, file, options = unit
        command = ["clang-tidy", "--quiet", file, *options]
        return name, subprocess.run(command, capture_output=True, text=True)

    report = Report()
    with ThreadPoolExecutor(jobs) as pool:
        for name, run in pool.map(tidy, units(build, folder)):
            problems = run.stdout.splitlines() or run.stderr.splitlines()
            report.check(f"clang-tidy of {name}", problems if run.returncode else [])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
