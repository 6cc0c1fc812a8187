#!/usr/bin/env python3
"""Exchanges .npy files between NumPy and the C++ headers, both ways: types, ranks, orders, versions of the format.

NumPy writes files; the program npy_numpy loads each without a type, maps it, and saves both; NumPy reads these.

Usage: npy_numpy.py PROGRAM FOLDER. Exits with 77 without NumPy.
"""
import os
import shutil
import subprocess
import sys

try:
    import numpy as np
    from numpy.lib import format as npy_format
except ImportError:
    print("there is no NumPy")
    sys.exit(77)

TYPES = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
SHAPES = [(), (5,), (0, 3), (3, 4), (2, 3, 4), (1, 2, 1, 3), (2, 1, 2, 1, 2)]


def arrays():
    """Pairs of a name and an array: all types in two orders, all shapes, all versions."""
    for kind in TYPES:
        values = np.arange(12).reshape(3, 4) - (0 if kind[0] in "?u" else 5)
        for order in "CF":
            array = np.array(values, dtype=kind, order=order)
            yield f"{kind.replace('?', 'b1')}{order}", array, None
            yield f"{kind.replace('?', 'b1')}{order}-big", array.astype(array.dtype.newbyteorder(">")), None
    for shape in SHAPES:
        values = np.arange(np.prod(shape, dtype=int), dtype="f8").reshape(shape)
        for order in "CF":
            yield f"rank{len(shape)}{order}{values.size}", np.array(values, order=order), None
    for version in ((1, 0), (2, 0), (3, 0)):
        yield f"version{version[0]}", np.arange(6.0).reshape(2, 3), version


def main(program, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    expected = {}
    for name, array, version in arrays():
        path = os.path.join(folder, name + ".npy")
        with open(path, "wb") as file:
            npy_format.write_array(file, array, version=version)
        expected[path] = array
    subprocess.run([program, *expected], check=True)
    for path, array in expected.items():
        for way in ("loaded", "big", "mapped", "typed"):
            if way == "typed" and (array.dtype != np.float64 or array.ndim != 2):
                continue
            if "-big" in path and way in ("mapped", "typed"):
                continue
            found = np.load(f"{path}.{way}")
            assert found.dtype == array.dtype.newbyteorder(">" if way == "big" else "="), (path, way, found.dtype)
            assert found.shape == array.shape, (path, way, found.shape)
            assert np.array_equal(found, array), (path, way, found)
            assert found.flags.f_contiguous == array.flags.f_contiguous, (path, way)
    print(len(expected), "files")


if __name__ == "__main__":
    main(*sys.argv[1:])
