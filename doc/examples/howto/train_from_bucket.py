"""Trains on random batches of samples at the place that SAMPLES names. While a batch is used, the next one is read."""
import os

import numpy as np
import umem

COUNT, WIDTH = 1000, 4  # samples, and numbers of one: three features, and what is to be predicted


def batches(samples, size, random, place="host:"):
    """Batches in a random order. Each is valid until the next one."""
    order = random.permutation(len(samples))[:len(samples) // size * size].reshape(-1, size)
    now, following = (umem.empty((size, *samples.shape[1:]), samples.dtype, place) for _ in range(2))

    def start(batch, indices):  # one transfer for all samples of a batch
        return umem.start_many((batch[k], samples[index]) for k, index in enumerate(indices.tolist()))

    read = start(now, order[0])
    for number in range(len(order)):
        read.wait()
        if number + 1 < len(order):
            read = start(following, order[number + 1])
        yield now
        now, following = following, now


if "SAMPLES" not in os.environ:
    features = np.random.default_rng(1).standard_normal((COUNT, WIDTH - 1)).astype("float32")
    np.column_stack([features, features @ np.array([1, -2, 3], "float32")]).tofile("samples.bin")
place = umem.open(os.environ.get("SAMPLES", "file:samples.bin?mode=r"))  # or "s3://bucket/samples.bin"
samples = umem.at(place, 0, (COUNT, WIDTH), "float32")
weights, random = np.zeros(WIDTH - 1, "float32"), np.random.default_rng(0)
for epoch in range(3):
    loss = 0.0
    for batch in batches(samples, 50, random):
        x = batch.numpy()  # of batches on a GPU: torch.from_dlpack(batch)
        error = x[:, :-1] @ weights - x[:, -1]
        loss += float(error @ error) / COUNT
        weights -= 0.05 * x[:, :-1].T @ error / len(x)
    print(f"epoch {epoch + 1}: loss {loss:.3f}, weights {weights.astype(float).round(2).tolist()}")
