"""Opens the raw bytes of another program: numbers of a type and a shape behind a header."""
import struct

import numpy as np
import umem

with open("scan.raw", "wb") as file:  # what the other program wrote: a count, and three float32 for each point
    file.write(struct.pack("<q", 1000))
    np.arange(3000, dtype="<f4").tofile(file)

(count,) = umem.memmap("scan.raw", "int64", "r", shape=1).tolist()
points = umem.memmap("scan.raw", "float32", "r", offset=8, shape=(count, 3))  # no byte is read yet
print(points.shape, points.dtype, points[999].tolist())

draft = umem.memmap("scan.raw", "float32", "c", offset=8, shape=(count, 3))  # writes leave the file as it is
draft[999] = 0
print(draft[999].tolist(), points[999].tolist())
