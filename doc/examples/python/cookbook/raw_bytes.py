"""Opens the raw bytes of another program: numbers of a type and a shape behind a header."""
import struct

import numpy as np
import umem

with open("scan.raw", "wb") as file:  # what the other program wrote: a count, and three float32 for each point
    file.write(struct.pack("<q", 1000))
    np.arange(3000, dtype="<f4").tofile(file)

mapped = umem.MMap("scan.raw", "r")
header = umem.empty(8, "uint8", mapped)  # the first array is the first bytes; no byte is read yet
count = int(header.numpy().view("<i8")[0])

whole = umem.empty(8 + count * 12, "uint8", umem.MMap("scan.raw", "r"))
points = umem.asarray(whole[8:].numpy().view("<f4").reshape(count, 3))  # the same memory
print(points.shape, points.dtype, points[999].tolist())
