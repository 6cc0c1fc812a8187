"""The mean of a file that is larger than the memory of the program."""
import resource

import numpy as np
import umem

rows = 1 << 16
file = umem.zeros((rows, 1024), "f4", umem.File("samples.bin", "w+"))  # 256 MiB
for first in range(0, rows, rows // 8):
    file[first:first + rows // 8] = np.full((rows // 8, 1024), first / (rows // 8), "f4")

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("mean:", file.mean(), "largest:", np.max(file), "mean of a column:", file.mean(axis=0)[5])
print("deviation: %.4f" % file.std())
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print("more memory than 64 MiB:", more > 64 << 10)
