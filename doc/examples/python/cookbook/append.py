"""Appends measurements to a file of NumPy, which can be read at any time, also after a crash."""
import numpy as np
import umem

with umem.create_npy("log.npy", (0, 3)).place:  # a file without rows
    pass

for day in range(2):
    log = umem.open_npy("log.npy", "a")
    for step in range(3):
        log.append([[day, step, step * 0.5]])
    print(np.load("log.npy").shape, log[-1].tolist())
    log.place.close()
