"""Computes features once, and maps them in each later run."""
from pathlib import Path

import numpy as np
import umem


def features(path):
    """The features, from the file if there is one."""
    if not Path(path).exists():
        print("computes")
        x = np.linspace(0, 1, 100_000, dtype="float32")
        umem.save(path, umem.asarray(np.stack([x, x**2, np.sin(x)], axis=1)))  # appears when it is complete
    return umem.load(path)  # mapped: nothing is read before it is used; many processes share the pages


for run in range(2):
    table = features("features.npy")
    print(table.shape, table.numpy()[-1, 1])
