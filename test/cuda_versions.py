#!/usr/bin/env python3
"""Compares what umem declares of CUDA with each version of CUDA's runtime that it claims to serve.

The runtimes, headers and shared library, come from PyPI; what is in FOLDER is not downloaded again. For each of
them cuda/cuda_rt.c must compile without a warning, and every function of CUDA that it names must be in the library.
test/compile/cuda_layout.c, which compares what umem declares with the headers, must compile. Within a major version
what was compiled for the oldest minor version must run on all of them: the installed package relies on that. The
same for cuFile, whose library is opened at run time:
test/compile/cufile_layout.c must compile, and the library must have the functions that cuda/cuda_driver.c looks for.

Prints a line "ok - ", "not ok - " or "skipped - " for each version. A version that cannot be downloaded is
skipped.

Usage: cuda_versions.py FOLDER_TO_BUILD_IN PYTHON_WITH_PIP
"""
import re
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The last release of each minor version; there is no 12.7.
RELEASES = {
    "nvidia-cuda-runtime-cu12": ["12.2.140", "12.3.101", "12.4.127", "12.5.82", "12.6.77", "12.8.90", "12.9.79"],
    "nvidia-cuda-runtime": ["13.0.96", "13.1.80", "13.2.86", "13.3.29", "13.4.92", "13.5.37"],
}
# host_defines.h, which the packages of 12 leave to the compiler's, of 20 MB. It is the same for GCC.
COMMON = ("nvidia-cuda-crt", "13.0.88")
# cuFile's releases of 12.6, 12.8, 12.9 and 13.0: its binary interface has never changed.
CUFILES = [("12", "nvidia-cufile-cu12", "1.11.1.6"), ("12", "nvidia-cufile-cu12", "1.13.1.3"),
           ("12", "nvidia-cufile-cu12", "1.14.1.1"), ("13", "nvidia-cufile", "1.15.1.6")]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def run(*command, **options):
    """Runs a command; its output, or None where it fails, after what it says was printed."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode:
        print(*command, done.stdout, sep="\n    ")
        return None
    return done.stdout


def unpacked(folder, package, release):
    """The folder of a package's files, downloaded if it is not there; None if it cannot be."""
    target = folder / f"{package}-{release}"
    if target.is_dir():
        return target
    wheels = folder / "wheels"
    if run(sys.argv[2], "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps",
           "--only-binary=:all:", "--dest", wheels, f"{package}=={release}") is None:
        return None
    [wheel] = wheels.glob(f"{package.replace('-', '_')}-{release}-*.whl")
    partial = folder / f"{package}-{release}.partial"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(partial)
    partial.rename(target)
    wheel.unlink()
    return target


class Version:
    """The files of one version of the runtime and what was built for it."""

    def __init__(self, folder, package, release, common):
        self.name = ".".join(release.split(".")[:2])
        self.major = self.name.split(".")[0]
        self.build = folder / f"built-{self.name}"
        files = unpacked(folder, package, release)
        self.files, self.found = files, files is not None
        if self.found:
            self.build.mkdir(exist_ok=True)
            self.runtime = next(files.rglob("libcudart.so.*"))
            include = next(files.rglob("cuda_runtime_api.h")).parent
            self.flags = ["-std=c11", "-D_GNU_SOURCE", "-DUMEM_WITH_CUDA=1", *WARNINGS,
                          "-isystem", include, "-isystem", common, f"-I{ROOT / 'c/src'}", f"-I{ROOT / 'c/include'}"]

    def compile(self):
        """The object of cuda/cuda_rt.c; None if it does not compile."""
        target = self.build / "umem_cuda_rt.o"
        made = run("gcc", "-O2", "-fPIC", *self.flags, "-c", ROOT / "c/src/cuda/cuda_rt.c", "-o", target)
        return None if made is None else target

    def layout(self):
        """Whether numbers, sizes and offsets that umem declares are those of the version's headers."""
        return run("gcc", *self.flags, "-fsyntax-only", ROOT / "test/compile/cuda_layout.c") is not None

    def serves(self, table):
        """Whether a program with this object runs on the version's library, and all that it needs is there."""
        program = self.build / "table"
        driver = ROOT / "c/src/cuda/cuda_driver.c"
        made = run("gcc", *self.flags, ROOT / "test/compile/cuda_table.c", table, driver, self.runtime,
                   "-lpthread", "-ldl", "-Wl,-z,now", f"-Wl,-rpath,{self.runtime.parent}", "-o", program)
        return made is not None and run(program) == f"{self.name}\n"


def report(passed, name):
    print(f"{'ok' if passed else 'not ok'} - {name}")
    return passed


def check(version, oldest, oldest_table):
    """Whether all is right with a version, whose major version begins with oldest."""
    name = f"CUDA {version.name}"
    table = oldest_table if version is oldest else version.compile()
    passed = report(table is not None, f"{name}: cuda/cuda_rt.c compiles")
    passed &= report(version.layout(), f"{name}: declared as in its headers")
    if table is not None:
        passed &= report(version.serves(table), f"{name}: the library has every function")
    if version is not oldest and oldest_table is not None:
        passed &= report(version.serves(oldest_table), f"{name}: serves what was compiled for {oldest.name}")
    return passed


def check_cufile(folder, package, release, include):
    """Whether a release of cuFile is as umem declares it. include: folders of CUDA's headers."""
    files = unpacked(folder, package, release)
    if files is None:
        print(f"skipped - cuFile {release}: PyPI does not give {package}")
        return True
    header = next(files.rglob("cufile.h")).parent
    flags = [word for path in [header, *include] for word in ("-isystem", path)]
    layout = run("gcc", "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", *WARNINGS, *flags, f"-I{ROOT / 'c/src'}",
                 ROOT / "test/compile/cufile_layout.c")
    passed = report(layout is not None, f"cuFile {release}: declared as in its header")
    wanted = set(re.findall(r'"(cuFile\w+)"', (ROOT / "c/src/cuda/cuda_driver.c").read_text()))
    symbols = run("nm", "-D", "--defined-only", next(files.rglob("libcufile.so.0"))) or ""
    names = {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
    return passed & report(bool(wanted) and wanted <= names, f"cuFile {release}: the library has every function")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    common = unpacked(folder, *COMMON)
    if common is None:
        print("skipped - the versions of CUDA: PyPI cannot be reached")
        return 0
    include = next(common.rglob("crt/host_defines.h")).parent.parent
    failed, headers = False, {} # headers: those of CUDA, of each major version
    for package, releases in RELEASES.items():
        with ThreadPoolExecutor(4) as pool: # what takes long is the network
            versions = list(pool.map(lambda release: Version(folder, package, release, include), releases))
        for version in versions:
            if not version.found:
                print(f"skipped - CUDA {version.name}: PyPI does not give {package}")
        versions = [version for version in versions if version.found]
        headers |= {version.major: next(version.files.rglob("cuda.h")).parent for version in versions[:1]}
        oldest_table = versions[0].compile() if versions else None
        for version in versions:
            failed |= not check(version, versions[0], oldest_table)
    for major, package, release in CUFILES:
        if major in headers:
            failed |= not check_cufile(folder, package, release, [headers[major], include])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
