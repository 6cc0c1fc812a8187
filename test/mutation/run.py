#!/usr/bin/env python3
"""Breaks umem on purpose, once for each mutant of table.py, and prints which test notices.

Works in a copy of the tree in FOLDER and builds there, once for each preset that the table names. For each mutant
it builds and runs the tests that are likely to find it, then more and more of them, until one fails: those of the
mutant's room, the contract, all tests in C; for a header of C++ all tests of test/cxx; for Python those of the package.

Usage: run.py [--list] [--check] [--jobs N] [--from NUMBER] [--steps N] [--presets gcc,asan,...] [--cmake OPTION]...
              [--python PYTHON] FOLDER [WORD...]

With words only the mutants run whose file or description holds one of them. Exit status 0: each was found.
"""
import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from table import MUTANTS  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 240  # seconds of one test: a mutant may hang
SANITIZERS = {
    "asan": {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1", "UMEM_TEST_SMALL": "1"},
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1", "UMEM_TEST_SMALL": "1"},
}
FOLDERS = ["compat", "contract", "fault", "unit"]
SOURCES = {"unit": "test/unit", "fault": "test/fault", "fuzz": "test/fuzz", "cxx": "test/cxx", "tool": "test/tool",
           "python": "python/tests"}


def read(path):
    return path.read_text(encoding="utf-8")


def write(path, text):
    path.write_text(text, encoding="utf-8")


def flaw(mutant, tree):
    """Why the mutant cannot be made or would not be looked for where it should be; None: there is no flaw."""
    path = tree / mutant.file
    found = read(path).count(mutant.old) if path.is_file() else 0
    if found != 1:
        return f"its text is {found} times in the file"
    for test in mutant.first:
        kind, _, name = test.partition(".")
        if kind in SOURCES and not list((tree / SOURCES[kind]).rglob(name + ".*")):
            return f"there is no {test}"
    return None


class Build:
    """A build of one preset in the copy of the tree."""

    def __init__(self, tree, preset, jobs, options):
        self.folder = tree.parent / preset
        self.jobs = str(jobs)
        self.environment = {**os.environ, **SANITIZERS.get(preset, {})}
        self.before = ["setarch", os.uname().machine, "--addr-no-randomize"] if preset == "tsan" else []
        if preset == "mpi":  # the build of gcc with the component for MPI
            preset, options = "gcc", ["-DUMEM_MPI=ON", "-DMPI_C_COMPILER=mpicc.mpich", "-DMPIEXEC_EXECUTABLE=mpirun.mpich", *options]
        self.run("cmake", "--preset", preset, "-S", str(tree), "-B", str(self.folder), "-DUMEM_WERROR=OFF",
                 *options, check=True, cwd=tree)  # a mutant may leave a function without use
        self.tests = self.listed_tests()

    def run(self, *command, check=False, cwd=None):
        done = subprocess.run(command, cwd=cwd, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", stdin=subprocess.DEVNULL)
        if check and done.returncode:
            sys.exit(done.stdout)
        return done

    def listed_tests(self):
        listing = self.run("ctest", "--test-dir", str(self.folder), "-N", check=True).stdout
        return re.findall(r"Test +#\d+: (\S+)$", listing, re.MULTILINE)

    def make(self, targets):
        """None, or what the compiler said."""
        done = self.run("cmake", "--build", str(self.folder), "--parallel", self.jobs, "--target", *targets)
        return None if done.returncode == 0 else done.stdout

    def first_failure(self, tests):
        """The first of these tests that fails, with the name that CMocka or GoogleTest gives; None: all pass."""
        pattern = "^(" + "|".join(re.escape(test) for test in tests) + ")$"
        done = self.run(*self.before, "ctest", "--test-dir", str(self.folder), "--parallel", self.jobs, "--tests-regex", pattern,
                        "--stop-on-failure", "--output-on-failure", "--timeout", str(TIMEOUT))
        if done.returncode == 0:
            return None
        program = re.search(r"Test +#\d+: (\S+) .*\*\*\*(\w+)", done.stdout)
        case = re.search(r"^\[ +FAILED +\] (?!\d|tests:)(.+)$", done.stdout, re.MULTILINE)
        found = program[1] if program else "ctest"
        if case:
            return f"{found}: {case[1]}"
        return f"{found} ({program[2]})" if program else found


class Package(Build):
    """The Python package, installed beside the copy of the tree, by a Python that has what test/requirements-python.txt
    names."""

    def __init__(self, tree, python):
        self.tree, self.python, self.site = tree, python, tree.parent / "python"
        self.environment = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}
        self.tests = [f"python.{path.stem}" for path in (tree / "python/tests").glob("test_*.py")]

    def make(self, targets):
        done = self.run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation",
                        "--no-deps", "--upgrade", "--target", str(self.site), "-C", f"build-dir={self.site}-build",
                        "-C", "cmake.build-type=Debug", str(self.tree))
        return None if done.returncode == 0 else done.stdout

    def first_failure(self, tests):
        files = [str(self.tree / "python/tests" / test.partition(".")[2]) + ".py" for test in tests]
        done = self.run("timeout", str(10 * TIMEOUT), self.python, "-m", "pytest", "--exitfirst", "--quiet",
                        "-p", "no:cacheprovider", *files)
        case = re.search(r"^(?:FAILED|ERROR) (?:\S*/)?(\S+)", done.stdout, re.MULTILINE)
        return None if done.returncode == 0 else case[1] if case else "pytest"


def room_of(path, tree):
    """"adaptors/log" of c/src/adaptors/log/log.c; None for a C++ header."""
    parts = path.relative_to(tree).parts
    return "/".join(parts[2:-1]) if parts[0] == "c" else None


def tests_of_room(build, tree, room):
    """The tests whose sources are in the room's folders of test/unit and test/fault."""
    names = [f"{kind}.{source.stem}" for kind in ("unit", "fault") for source in (tree / "test" / kind / room).glob("*.c")]
    return [name for name in names if name in build.tests]


def program_of(test):
    if test.startswith("tool.") or test == "cxx.refused":
        return "umem_program"  # the headers need no build
    if test.startswith("mpich."):
        return "mpi_" + test.split(".")[2 if test.startswith("mpich.hosts.") else 1]
    return test.replace(".", "_", 1) if not test.startswith("contract.") else "contract"


def steps(build, tree, mutant, path):
    """What to build and what to run then: [(targets, tests)], the cheapest first."""
    room, tests = room_of(path, tree), build.tests
    if mutant.first:
        first = [test for test in mutant.first if test in tests]
        yield [program_of(test) for test in first], first
    if mutant.preset == "mpi":
        yield ["mpi/test/all"], [test for test in tests if test.startswith("mpich.")]
    elif mutant.preset == "python":
        yield [], tests
    elif mutant.file.startswith("tool/"):
        yield ["test/tool/all"], [test for test in tests if test.startswith("tool.")]
    elif room:
        mine = tests_of_room(build, tree, room)
        if mine:
            yield [program_of(test) for test in mine], mine
        contract = [test for test in tests if test.startswith("contract.")]
        yield ["contract"], contract
        rest = [test for test in tests if test.split(".")[0] in FOLDERS and test not in mine + contract]
        yield [f"test/{folder}/all" for folder in FOLDERS] + ["umem_program"], rest
    else:
        yield ["test/cxx/all"], [test for test in tests if test.startswith("cxx.")]


def judge(build, tree, mutant, path, most):
    """(verdict, by what), after at most so many steps."""
    for targets, tests in itertools.islice(steps(build, tree, mutant, path), most):
        complaint = build.make(targets)
        if complaint:
            return "does not compile", "\n" + "\n".join(complaint.splitlines()[-15:])
        found = build.first_failure(tests)
        if found:
            return "found", found
    return "MISSED", ""


def copy_tree(tree):
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    for old in tree.rglob("*"):  # of an earlier run
        if old.is_file() and str(old.relative_to(tree)) not in names:
            old.unlink()
    for name in sorted(names):
        source, target = ROOT / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy2(source, target)
            os.utime(target)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the mutants")
    parser.add_argument("--check", action="store_true", help="print the mutants that cannot be made; exit status 1 if there are any")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--from", type=int, default=1, dest="first", metavar="NUMBER", help="the first mutant to run")
    parser.add_argument("--steps", type=int, default=9, metavar="N", help="1: only the tests that are likely to find it")
    parser.add_argument("--presets", default="gcc,asan,tsan,mpi,python")
    parser.add_argument("--python", default=sys.executable, help="has what test/requirements-python.txt names")
    parser.add_argument("--cmake", action="append", default=[], metavar="OPTION")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("words", nargs="*")
    return parser.parse_args()


def try_mutant(build, tree, mutant, most):
    path = tree / mutant.file
    if flaw(mutant, tree):
        return flaw(mutant, tree), ""
    whole = read(path)
    try:
        write(path, whole.replace(mutant.old, mutant.new))
        return judge(build, tree, mutant, path, most)
    finally:
        write(path, whole)


def main():
    asked = arguments()
    presets = asked.presets.split(",")
    mutants = [mutant for mutant in MUTANTS if mutant.preset in presets and
               (not asked.words or any(word in mutant.file + ": " + mutant.what for word in asked.words))]
    if asked.list:
        for mutant in mutants:
            print(f"{mutant.preset:6} {mutant.file}: {mutant.what}")
        return 0
    if asked.check:
        flaws = [f"{mutant.file}: {mutant.what}: {flaw(mutant, ROOT)}" for mutant in mutants if flaw(mutant, ROOT)]
        print(*flaws, sep="\n", end="\n" if flaws else "")
        return 1 if flaws else 0
    if not asked.folder:
        sys.exit("run.py: in which folder?")
    tree = asked.folder.resolve() / "tree"
    copy_tree(tree)
    builds, missed = {}, 0
    for number, mutant in enumerate(mutants[asked.first - 1:], asked.first):
        begin = time.monotonic()
        if mutant.preset not in builds:
            builds[mutant.preset] = (Package(tree, asked.python) if mutant.preset == "python" else
                                     Build(tree, mutant.preset, asked.jobs, asked.cmake))
        verdict, by = try_mutant(builds[mutant.preset], tree, mutant, asked.steps)
        missed += verdict != "found"
        print(f"{number:2} {verdict:6} {mutant.preset} {mutant.file}: {mutant.what} | {by} | {time.monotonic() - begin:.0f} s",
              flush=True)
    tried = len(mutants[asked.first - 1:])
    print(f"{tried - missed} of {tried} mutants found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
