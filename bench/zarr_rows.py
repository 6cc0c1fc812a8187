#!/usr/bin/env python3
"""Measures regions of zarr arrays beside zarr itself.

Usage: zarr_rows.py [--once] [--json FILE]

Runs with the Python of an environment in which umem, NumPy and zarr are installed; on a machine with a GPU also beside zarr's own
buffers on it, with CuPy, and KvikIO's GDSStore, where they are installed. The arrays have 256 MiB of float32, with a GPU
those of chunks of 8 MiB that are not compressed 1 GiB; they are in $TMPDIR, and in the page cache. In each row both sides run in turns in one process; the median of the rounds
counts. Exit status 0: everything was measured, whether targets were met or not.
"""
import argparse
import json
import tempfile
from pathlib import Path

from python_rows import Rows, has_gpu, module

import umem

# Chunks of 8 MiB, unless said.
KINDS = {
    "8-MiB chunks": {"chunks": (8, 512, 512)},
    "8-MiB chunks in shards": {"chunks": (8, 512, 512), "shards": (64, 512, 512)},
    "64-KiB chunks in shards": {"chunks": (1, 128, 128), "shards": (32, 512, 512)},
    "8-MiB chunks of zstd": {"chunks": (8, 512, 512), "compressors": "auto"},
}
LONGEST = 2  # seconds of a row: all 24 of a machine with a GPU take about a minute
PART = slice(3, -3), slice(None), slice(100, 400)


def make_array(zarr, folder, kind, size):
    """size: planes of a MiB."""
    numpy = module("numpy")
    shape = (size, 512, 512)
    array = zarr.create_array(folder / kind.replace(" ", "-"), shape=shape, dtype="float32",
                              **({"compressors": None} | KINDS[kind]))
    random = numpy.random.default_rng(1)
    plane = random.integers(0, 1000, shape[1:]).astype("float32")
    for row in range(0, size, 64):
        umem.to_zarr(numpy.stack([plane + k for k in range(row, min(row + 64, size))]), array, slice(row, row + 64))
    return array


def measure_ram(rows, array, kind):
    for name, region in (("all", ...), ("a part", PART)):
        out = umem.from_zarr(array, region)
        assert (out.numpy() == array[region]).all()
        target = 1.1 if array.compressors else 1 / 1.5
        rows.add(f"{kind}: {name} to a new array in RAM", "array[region]", target, lambda: umem.from_zarr(array, region),
                 lambda: array[region], rounds=7)


def measure_writes(rows, zarr, array, kind, folder):
    source = umem.from_zarr(array, slice(0, 128))
    elements = source.numpy()
    ours, theirs = (zarr.create_array(folder / name, shape=elements.shape, dtype="float32", overwrite=True,
                                      **({"compressors": None} | KINDS[kind])) for name in ("ours", "theirs"))

    def write_theirs():
        theirs[...] = elements

    rows.add(f"{kind}: write 128 MiB of RAM", "array[...] = x", 1.1, lambda: umem.to_zarr(source, ours), write_theirs, rounds=7)


def measure_gpu(rows, zarr, cupy, array, kind):
    """Both sides end with the elements on the GPU, as an array of their own; umem's in a pool, as CuPy has one."""
    gpu = umem.open("pool+cuda:0")

    def read_theirs():
        with zarr.config.enable_gpu():
            found = array[...]
        cupy.cuda.Device().synchronize()
        return found

    assert bool((cupy.asarray(umem.from_zarr(array, slice(0, 9), gpu)) == cupy.asarray(array[:9])).all())
    target = 1.1 if array.compressors else 1 / 1.5
    rows.add(f"{kind}: all to the GPU", "enable_gpu(), array[...]", target, lambda: umem.from_zarr(array, ..., gpu), read_theirs, rounds=7)
    seconds = min(rows.results[-1]["umem"])
    print(f"{kind}: {array.nbytes / seconds / 1e9:.1f} GB/s at best to the GPU")
    out = umem.empty(array.shape, "float32", gpu)
    rows.add(f"{kind}: all to an array on the GPU", "enable_gpu(), array[...]", target, lambda: umem.from_zarr(array, out=out),
             read_theirs, rounds=7)
    return gpu


def measure_kvikio(rows, zarr, cupy, gpu, array, kind):
    store = module("kvikio.zarr")
    if not store:
        return
    other = zarr.open_array(store.GDSStore(array.store_path.store.root), mode="r")

    def read_theirs():
        with zarr.config.enable_gpu():
            found = other[...]
        cupy.cuda.Device().synchronize()
        return found

    rows.add(f"{kind}: all to the GPU", "KvikIO's GDSStore", 1 / 1.5, lambda: umem.from_zarr(array, ..., gpu), read_theirs, rounds=7)


def measure(rows, zarr, folder, kind, size, cupy):
    array = make_array(zarr, folder, kind, size)
    measure_ram(rows, array, kind)
    measure_writes(rows, zarr, array, kind, folder)
    if cupy:
        gpu = measure_gpu(rows, zarr, cupy, array, kind)
        measure_kvikio(rows, zarr, cupy, gpu, array, kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="one short round: the figures mean nothing")
    parser.add_argument("--json", help="the file for all samples")
    arguments = parser.parse_args()
    zarr = module("zarr")
    if not zarr:
        return
    rows = Rows(arguments.once, LONGEST)
    cupy = module("cupy") if has_gpu() else None
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as name:
            large = cupy and kind.startswith("8-MiB") and "zstd" not in kind
            measure(rows, zarr, Path(name), kind, 128 if arguments.once else 1024 if large else 256, cupy)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows.results))


if __name__ == "__main__":
    main()
