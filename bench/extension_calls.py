#!/usr/bin/env python3
"""Measures what a call of C++ costs whose arguments are arrays: umem's casters beside nanobind's ndarray, pointers and, where
it is installed, PyTorch's own functions of C++.

Usage: extension_calls.py FOLDER [--once] [--json FILE]

FOLDER: for the builds of extension.cpp and extension_torch.cpp. Runs with the Python of an environment in which umem,
nanobind and NumPy are installed, with CMake and a compiler of C++. All functions do nothing. In each row both sides run in
turns in one process; the median of the rounds counts.
"""
import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy

import umem
from python_rows import Rows, module

HERE = Path(__file__).resolve().parent
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(extension LANGUAGES CXX)
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT)
execute_process(COMMAND "${Python_EXECUTABLE}" -m umem --cmake-dir OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE umem_ROOT)
find_package(nanobind CONFIG REQUIRED)
find_package(umem CONFIG REQUIRED)
nanobind_add_module(extension FREE_THREADED NOMINSIZE SOURCE)
target_link_libraries(extension PRIVATE umem::with_nanobind)
"""


def build(folder):
    (folder / "CMakeLists.txt").write_text(PROJECT.replace("SOURCE", f'"{HERE / "extension.cpp"}"'))
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "cmake"
    for command in ([cmake, "-S", folder, "-B", folder / "build", f"-DPython_EXECUTABLE={sys.executable}",
                     f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')}", "-DCMAKE_BUILD_TYPE=Release"],
                    [cmake, "--build", folder / "build"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(folder / "build"))
    return importlib.import_module("extension")


def build_for_torch(folder, torch):
    """Functions as PyTorch's own tutorial has them bound."""
    paths = importlib.import_module("torch.utils.cpp_extension")
    includes = [*paths.include_paths(), sysconfig.get_path("include")]
    folders = paths.library_paths()
    subprocess.run(["c++", "-O2", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-w",
                    f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", "-DTORCH_EXTENSION_NAME=extension_torch",
                    *(f"-I{path}" for path in includes), str(HERE / "extension_torch.cpp"), *(f"-L{path}" for path in folders),
                    "-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10", "-o", str(folder / "build" / "extension_torch.so")], check=True)
    return importlib.import_module("extension_torch")


def three(function, argument):
    return lambda: function(argument, argument, argument)


def measure(rows, m):
    """A target of None: only the figure counts."""
    x, square, raw = umem.zeros(100), umem.zeros((10, 10)), numpy.zeros(100)
    address = x.address

    def one():
        m.pointer(address)

    def add(operation, against, target, ours, theirs):
        rows.add(operation, against, target, ours, theirs, calls=20000)

    add("umem.Array as View", "a pointer", None, lambda: m.view(x), one)
    add("umem.Array as View<double, 2, RowMajor>", "a pointer", None, lambda: m.view_2d(square), one)
    add("umem.Array as Array, by value", "a pointer", None, lambda: m.array(x), one)
    add("umem.Array as View", "umem.Array as nb::ndarray", 1, lambda: m.view(x), lambda: m.ndarray(x))
    add("NumPy as View", "NumPy as nb::ndarray", 1, lambda: m.view(raw), lambda: m.ndarray(raw))
    add("umem::Array there and back", "NumPy there and back, nb::ndarray", 1, lambda: m.same(x), lambda: m.ndarray_same(raw))
    rows.add_more("three umem.Arrays as View", "three pointers", 100e-9, three(m.views, x), three(m.pointers, address))
    add("three umem.Arrays as View", "as nb::ndarray", 1, three(m.views, x), three(m.ndarrays, x))
    add("three NumPy as View", "three NumPy as nb::ndarray", 1, three(m.views, raw), three(m.ndarrays, raw))


def measure_torch(rows, m, folder):
    torch = module("torch")
    if not torch:
        return
    own, tensor, x = build_for_torch(folder, torch), torch.zeros(100, dtype=torch.float64), umem.zeros(100)
    theirs = three(own.tensors, tensor)
    rows.add("three umem.Arrays as View", "three tensors as at::Tensor, PyTorch's", 1, three(m.views, x), theirs, calls=20000)
    rows.add("three tensors of PyTorch as View", "as nb::ndarray", 1, three(m.views, tensor), three(m.ndarrays, tensor), calls=20000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--once", action="store_true", help="one short round")
    parser.add_argument("--json", help="the file for all samples")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    m = build(arguments.folder)
    rows = Rows(arguments.once)
    measure(rows, m)
    measure_torch(rows, m, arguments.folder)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows.results))


if __name__ == "__main__":
    main()
