"""Loads a part of a file to a GPU, or to RAM where there is none, without a loop and pinned buffers."""
import os
import sys

import umem


def load(path, offset, destination):
    """Reads bytes at offset of a file into an array. Prints the way that the bytes went."""
    file = umem.empty(os.path.getsize(path), "uint8", umem.File(path, "r"))
    copied = umem.copy(destination, file[offset:offset + destination.size])
    print(copied["route"], file=sys.stderr)  # with a GPU: file -> 16 workers, page cache -> pinned -> cuda:0
    return copied["bytes"]


try:
    gpu = umem.Cuda(0)
except umem.NotSupportedError:
    gpu = umem.Host()
there = umem.empty(4, "uint8", gpu)
print(load(sys.argv[1] if len(sys.argv) > 1 else "data.bin", 4, there), "bytes are loaded")
