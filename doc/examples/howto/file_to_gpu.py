"""Copies a file to a GPU, and its first bytes back. On a machine without a GPU, to RAM."""
import os
import sys

import umem


def open_gpu():
    try:
        return umem.Cuda(0)
    except umem.NotSupportedError as error:
        print("no GPU:", error, file=sys.stderr)
        return umem.Host()


path = sys.argv[1] if len(sys.argv) > 1 else "data.bin"
# The bytes of the file, of which none is read yet.
file = umem.empty(os.path.getsize(path), "uint8", umem.File(path, "r"))
there = file.to(open_gpu())
print(file.nbytes, "bytes, the first are", bytes(there[:4].tolist()).decode())
