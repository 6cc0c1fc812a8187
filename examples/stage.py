#!/usr/bin/env python3
"""Copies an array to every place of this machine, and back, in Python.

    stage.py INPUT.npy

Prints one line: the places, and whether every byte was right. Exit code: 0 if so, 1 if not.
"""
import sys

import umem

# Only this table names the places, by their constructors.
PLACES = {
    "host": umem.Host, "file": umem.File, "mmap": umem.MMap, "pool": lambda: umem.Pool(umem.Host()), "cuda": umem.Cuda,
    "cuda-host": umem.CudaHost, "cuda-managed": umem.CudaManaged, "cuda-async": umem.CudaAsync,
}


def visit(original):
    """Takes the array from place to place. Returns the names of the places, and the array from the last one."""
    names, array = [], original
    for name, make in PLACES.items():
        try:
            place = make()
        except umem.NotSupportedError:
            continue  # this machine has no GPU
        array = array.to(place)
        names.append(name)
    return names, array.to(umem.host())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    original = umem.load(sys.argv[1])
    names, array = visit(original)
    same = array.dtype == original.dtype and bytes(memoryview(array)) == bytes(memoryview(original))
    print(f"Python: {' -> '.join(names)}: {'every byte is right' if same else 'WRONG'}")
    return not same


if __name__ == "__main__":
    sys.exit(main())
