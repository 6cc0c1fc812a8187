"""Loads a file to a GPU in one line, and the result back to a file. Without a GPU, to RAM."""
import numpy as np
import umem

np.save("input.npy", np.arange(6, dtype="float32").reshape(2, 3))

try:
    gpu = umem.Cuda(0)
except umem.NotSupportedError:
    gpu = umem.Host()
array = umem.load("input.npy", gpu)  # umem chooses the route: pinned memory, threads, or the disk itself
# On a GPU cupy.from_dlpack(array) and torch.from_dlpack(array) use the same memory.
umem.save("output.npy", array)
print(np.load("output.npy").tolist())
