"""The table of places over which tests run, and helpers.

Places of GPUs are in the table if UMEM_TEST_GPU is set, on the GPU of this machine; or if UMEM_TEST_DRIVER_DOUBLE names
the library of the driver's double (test/fake/cudriver.c), which then stands for libcuda.so.1.
"""
import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import umem

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
         "float64", "complex64", "complex128"]

DOUBLE = os.environ.get("UMEM_TEST_DRIVER_DOUBLE")
if DOUBLE:  # the loader finds it by its name when umem looks for the driver
    DOUBLE = ctypes.CDLL(DOUBLE)
    DOUBLE.fake_driver_complaint.restype = ctypes.c_char_p
    DOUBLE.fake_driver_calls.argtypes, DOUBLE.fake_driver_calls.restype = [ctypes.c_char_p], ctypes.c_ulong
HAS_GPU = bool(DOUBLE or os.environ.get("UMEM_TEST_GPU"))
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX takes three quarters of the memory of a GPU

# What type checkers say of elements: only the last line is wrong.
PROGRAM_OF_TYPES = """
from typing import assert_type

import numpy as np
import umem

a = umem.zeros((3, 4), "f4")
assert_type(a, umem.Array[np.float32])
assert_type(a[1:].T.copy().reshape(2, -1).to("host:"), umem.Array[np.float32])
assert_type(umem.zeros(3), umem.Array[np.float64])
assert_type(umem.ones(3, int, ghosts=1), umem.Array[np.int64])
assert_type(umem.empty(3, bool), umem.Array[np.bool])
assert_type(umem.empty(3, np.float16), umem.Array[np.float16])
assert_type(umem.empty(3, np.dtype(np.uint8)), umem.Array[np.uint8])
assert_type(umem.asarray(a), umem.Array[np.float32])
assert_type(umem.asarray([1, 2], "c16"), umem.Array[np.complex128])
assert_type(a.astype("uint16"), umem.Array[np.uint16])
assert_type(umem.zeros(3, [("a", "f4")]), umem.Array)  # which elements is known when the program runs
assert_type(np.asarray(a).dtype, np.dtype[np.float32])
with a.host("r") as x:
    assert_type(x.dtype, np.dtype[np.float32])
shared = np.from_dlpack(a)
anything: umem.Array = a
wrong: umem.Array[np.float64] = a
"""

# How to make each place; folder: for its files.
PLACES = {
    "host": lambda folder: umem.Host(),
    "file": lambda folder: umem.File(folder / "a.bin", "w+"),
    "scratch": lambda folder: umem.File(),
    "mmap": lambda folder: umem.MMap(folder / "b.bin", "w+"),
    "shm": lambda folder: umem.Shm(size="64M", sparse=True),
    "pool": lambda folder: umem.Pool(umem.Host()),
    "pool-mmap": lambda folder: umem.Pool(umem.MMap(folder / "c.bin", "w+"), max="64M"),
    "pool-on": lambda folder: umem.PoolOn(umem.Pool(umem.Host()), umem.Host()),
    "fixed": lambda folder: umem.Fixed(umem.Host(), "64K"),
    "binning": lambda folder: umem.Binning(umem.Host(), [(256, umem.Fixed(umem.Host(), 256)), ("1K", umem.Host())]),
    "limit": lambda folder: umem.Limit(umem.Host(), "64M"),
    "stats": lambda folder: umem.Stats(umem.Host()),
    "track": lambda folder: umem.Track(umem.Host(), frames=2),
    "debug": lambda folder: umem.Debug(umem.Host()),
    "retry": lambda folder: umem.Retry(umem.Host(), lambda nbytes, alignment, attempt: False),
    "fault": lambda folder: umem.Fault(umem.Host()),
    "guarded": lambda folder: umem.Guarded(umem.Host()),
    "log": lambda folder: umem.Log(umem.Host(), folder / "trace.log"),
    "open": lambda folder: umem.open("pool+stats+host:?max=64M"),
    "open-file": lambda folder: umem.open(f"stats+file:{folder / 'd.bin'}?mode=w+"),
}
GPU_PLACES = {
    "cuda": lambda folder: umem.Cuda(),
    "cuda-async": lambda folder: umem.CudaAsync(),
    "cuda-async-legacy": lambda folder: umem.CudaAsync(0, stream="legacy", max="64M"),
    "cuda-host": lambda folder: umem.CudaHost(),
    "cuda-managed": lambda folder: umem.CudaManaged(flags=["prefer-device", "read-mostly"]),
    "cuda-prefetch": lambda folder: umem.CudaPrefetch(umem.CudaManaged()),
    "pool-cuda": lambda folder: umem.Pool(umem.Cuda()),
    "pool-on-cuda": lambda folder: umem.PoolOn(umem.Pool(umem.Cuda()), umem.CudaAsync()),
    "open-cuda": lambda folder: umem.open("pool+stats+cuda-async:0?pool.max=64M"),
    "debug-cuda": lambda folder: umem.Debug(umem.CudaAsync()),
}
if HAS_GPU:
    PLACES |= GPU_PLACES


def pytest_collection_finish():
    """What exists now lives to the end: gc.collect() in tests need not look at it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_is_left_on_gpus(request):
    """The double knows what a program must not do, and what it has left behind."""
    yield
    parameters = getattr(request.node, "callspec", None)
    if DOUBLE and parameters and parameters.params.get("place") in GPU_PLACES:
        umem.exchange._on_gpus.clear()
        gc.collect()
        complaint = DOUBLE.fake_driver_complaint()
        assert complaint is None, complaint.decode()


def pytest_generate_tests(metafunc):
    if "place" in metafunc.fixturenames:
        metafunc.parametrize("place", PLACES, indirect=True)


@pytest.fixture
def place(request, tmp_path):
    made = PLACES[request.param](tmp_path)
    layers = [made]
    while layers[-1]._upstream is not None:
        layers.append(layers[-1]._upstream)
    yield made
    for layer in layers:
        layer.close()


@pytest.fixture
def run_python(tmp_path):
    """Runs a program in a new interpreter; returns its output. It must end with exit status 0, or with that given."""

    def run(program, *arguments, status=0, timeout=60):
        file = tmp_path / "program.py"
        file.write_text(program)
        done = subprocess.run([sys.executable, file, *map(str, arguments)], capture_output=True, text=True,
                              timeout=timeout, cwd=tmp_path)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def resident():
    """Bytes of RAM of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
