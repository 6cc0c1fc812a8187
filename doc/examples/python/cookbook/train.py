"""Trains from a file that does not fit into memory: batches of rows, the next ones are read meanwhile."""
import numpy as np
import umem

samples = umem.empty((10_000, 4), "float32", umem.File("samples.bin", "w+"))
samples.random_uniform(-1, 1, seed=1)  # what a real program has on its disk
truth = np.array([1, -2, 3, 0.5], "float32")

weights = np.zeros(4, "float32")
for epoch in range(3):
    for block in umem.blocks(samples, umem.Host(), rows=500):  # umem.Cuda(0): the batches are on the GPU
        with block.array.host("r") as x:
            error = x @ weights - x @ truth
            weights -= 0.5 * x.T @ error / len(x)
print(np.abs(weights - truth).max() < 0.01)
