import os

import numpy as np
import umem
import umem.formats

# [npz]
umem.formats.save("results.npz", {"u": umem.full((4, 3), 1.5), "steps": np.arange(5)})
np.savez_compressed("packed.npz", u=np.ones((4, 3)))

with umem.formats.open("results.npz") as results:
    u = results["u"]                                    # in the mapped file: nothing is copied
    results.check()                                     # reads all, and compares the checksums
packed = umem.formats.load("packed.npz", "host:")       # "cuda:0": to a GPU
# [/npz]
print(f"{u[2, 1].item()}, {sorted(np.load('results.npz').files)}, {packed['u'].numpy().sum()}")

# [raw]
np.arange(12, dtype=">i4").tofile("raw.bin")            # big endian, as some instruments write
numbers = umem.memmap("raw.bin", ">i4", "r", offset=16, shape=(2, 4))
with umem.File("raw.bin", "r") as file:
    column = umem.at(file, 0, (3,), "uint8", strides=(16,))     # each 16th byte, read from the file
    first = column.copy("host:")
# [/raw]
print(f"{numbers.numpy()[1, 3]}, {first.tolist()}")
for name in ("results.npz", "packed.npz", "raw.bin"):
    os.remove(name)
