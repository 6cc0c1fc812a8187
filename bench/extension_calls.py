#!/usr/bin/env python3
"""Measures what a call of C++ costs whose arguments are arrays: umem's casters beside nanobind's ndarray and pointers.

Usage: extension_calls.py FOLDER [--once]

FOLDER: for the build of extension.cpp. Runs with the Python of an environment in which umem, nanobind and NumPy are
installed, with CMake and a compiler of C++. All functions do nothing; all rows run in turns in one process, and the median
of the rounds counts.
"""
import argparse
import importlib
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy

import umem

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
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "CMakeLists.txt").write_text(PROJECT.replace("SOURCE", f'"{HERE / "extension.cpp"}"'))
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "cmake"
    for command in ([cmake, "-S", folder, "-B", folder / "build", f"-DPython_EXECUTABLE={sys.executable}",
                     "-DCMAKE_BUILD_TYPE=Release"], [cmake, "--build", folder / "build"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(folder / "build"))
    return importlib.import_module("extension")


def rows(m):
    """(operation, function without arguments)."""
    x, square = umem.zeros(100), umem.zeros((10, 10))
    raw = numpy.zeros(100)
    address = x.address
    return [
        ("one pointer", lambda: m.pointer(address)),
        ("umem.Array as View", lambda: m.view(x)),
        ("umem.Array as View<double, 2, RowMajor>", lambda: m.view_2d(square)),
        ("umem.Array as nb::ndarray", lambda: m.ndarray(x)),
        ("NumPy as View", lambda: m.view(raw)),
        ("NumPy as nb::ndarray", lambda: m.ndarray(raw)),
        ("umem.Array as Array by value", lambda: m.array(x)),
        ("three pointers", lambda: m.pointers(address, address, address)),
        ("three umem.Arrays as View", lambda: m.views(x, x, x)),
        ("three umem.Arrays as nb::ndarray", lambda: m.ndarrays(x, x, x)),
        ("three NumPy as View", lambda: m.views(raw, raw, raw)),
        ("three NumPy as nb::ndarray", lambda: m.ndarrays(raw, raw, raw)),
        ("Array there and back", lambda: m.same(x)),
        ("NumPy there and back by nb::ndarray", lambda: m.ndarray_same(raw)),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--once", action="store_true", help="one short round")
    arguments = parser.parse_args()
    calls, rounds = (10, 1) if arguments.once else (20000, 31)
    all_rows = rows(build(arguments.folder))
    taken = {name: [] for name, _ in all_rows}
    for number in range(rounds + 1):
        for name, function in all_rows:
            begin = time.perf_counter_ns()
            for _ in range(calls):
                function()
            nanoseconds = (time.perf_counter_ns() - begin) / calls
            if number or arguments.once:
                taken[name].append(nanoseconds)
    print(f"{'arguments of a function that does nothing':<48} {'ns a call':>10} {'10 to 90 %':>16} {'above pointers':>16}")
    for name, _ in all_rows:
        ordered = sorted(taken[name])
        base = statistics.median(taken["three pointers" if "three" in name else "one pointer"])
        low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
        median = statistics.median(ordered)
        print(f"{name:<48} {median:>10.0f} {f'{low:.0f} {high:.0f}':>16} {f'{median - base:.0f}':>16}")


if __name__ == "__main__":
    main()
