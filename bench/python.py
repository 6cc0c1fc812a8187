#!/usr/bin/env python3
"""Compares calls of the Python package with those of NumPy, side by side.

    python.py [ROUNDS]

Each row: what, nanoseconds of umem, of the other library, and their ratio; the least of ROUNDS (by default 7) rounds that
take turns. The import is in milliseconds, each in a new process.
"""
import subprocess
import sys
import time
import timeit

import numpy

import umem


def import_time(name):
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {name}" if name else "pass"], check=True)
    return 1e3 * (time.perf_counter() - begin)


def call_time(function, calls=50000):
    return 1e9 * timeit.timeit(function, number=calls) / calls


def exchange(other):
    """A round trip to other, by DLPack, of umem and of NumPy."""
    ours, theirs = umem.zeros(8), numpy.zeros(8)
    return (lambda: umem.from_dlpack(other.from_dlpack(ours))), (lambda: numpy.from_dlpack(other.from_dlpack(theirs)))


def rows():
    ours, theirs = umem.zeros((16, 16)), numpy.zeros((16, 16))
    yield "empty(8)", (lambda: umem.empty(8)), (lambda: numpy.empty(8))
    yield "zeros((4, 4))", (lambda: umem.zeros((4, 4))), (lambda: numpy.zeros((4, 4)))
    yield "array[1:3, ::2]", (lambda: ours[1:3, ::2]), (lambda: theirs[1:3, ::2])
    yield "array[1, 2] = 3.0", (lambda: ours.__setitem__((1, 2), 3.0)), (lambda: theirs.__setitem__((1, 2), 3.0))
    yield "to NumPy and back", *exchange(numpy)
    for name in ("torch", "jax.dlpack"):
        try:
            yield f"to {name} and back", *exchange(__import__(name, fromlist=["from_dlpack"]))
        except ImportError:
            print(f"left out: {name} is not installed")


def show(what, ours, theirs):
    print(f"{what:24} {ours:8.0f} {theirs:8.0f} {ours / theirs:6.2f}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{'':24} {'umem':>8} {'other':>8} {'ratio':>6}")
    empty, *times = (min(column) for column in zip(*[map(import_time, ("", "umem", "numpy")) for _ in range(rounds)]))
    show("import (ms)", *(seconds - empty for seconds in times))
    for what, ours, theirs in rows():
        show(what, *(min(column) for column in zip(*[(call_time(ours), call_time(theirs)) for _ in range(rounds)])))


if __name__ == "__main__":
    main()
