"""What one mistake of the tables is, and how their rows are written."""
from typing import NamedTuple, Tuple


class Mutant(NamedTuple):
    file: str
    old: str
    new: str
    what: str
    first: Tuple[str, ...] = ()  # tests that are likely to find it, by ctest's names
    preset: str = "gcc"  # the build that must find it


def c(file, old, new, what, **more):
    return Mutant("c/src/" + file, old, new, what, **more)


def cxx(file, old, new, what, first, **more):
    return Mutant("cxx/include/umem/" + file, old, new, what, tuple("cxx." + name for name in first), **more)


def formats(file, old, new, what):
    """What files may hold, the tests of the Python package compare with the library safetensors and with NumPy."""
    tests = ("npz", "npz_headers") if file in ("npz.cpp", "inflate.cpp") else ("formats", "npz")
    return Mutant("formats/src/" + file, old, new, what, tuple("python.test_" + name for name in tests), "python")


def mpi(file, old, new, what, first):
    return Mutant("mpi/" + file, old, new, what, tuple("mpich." + name for name in first), "mpi")


def tool(file, old, new, what, first):
    return Mutant("tool/" + file, old, new, what, tuple("tool." + name for name in first))


def python(file, old, new, what, first):
    return Mutant("python/" + file, old, new, what, tuple("python.test_" + name for name in first), "python")
