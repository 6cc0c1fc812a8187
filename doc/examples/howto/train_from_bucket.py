"""Trains on random batches of samples on any place: SAMPLES names it. While a batch is used, the next one is read."""
import os

import numpy as np
import umem

COUNT, WIDTH = 1000, 4  # samples, and numbers of one: three features, and what is to be predicted


def make_samples(path):
    features = np.random.default_rng(1).standard_normal((COUNT, WIDTH - 1)).astype("float32")
    np.column_stack([features, features @ np.array([1, -2, 3], "float32")]).astype("float32").tofile(path)


# [loader]
class Batches:
    """Batches of samples in a new random order each time that a loop begins."""

    def __init__(self, samples, size, place="host:"):
        self.samples, self.size = samples, size
        self.random = np.random.default_rng(0)
        self.room = [umem.empty((size, *samples.shape[1:]), samples.dtype, place) for _ in range(2)]

    def start(self, batch, indices):
        """One transfer for all samples of a batch."""
        return umem.start_many((batch[k], self.samples[index]) for k, index in enumerate(indices.tolist()))

    def __iter__(self):
        order = self.random.permutation(len(self.samples))
        parts = np.split(order, range(self.size, len(order), self.size))
        parts = [part for part in parts if len(part) == self.size]
        now, following = self.room
        read = self.start(now, parts[0])
        for part in [*parts[1:], None]:
            read.wait()
            if part is not None:
                read = self.start(following, part)
            yield now
            now, following = following, now
# [/loader]


if "SAMPLES" not in os.environ:
    make_samples("samples.bin")
# [place]
place = umem.open(os.environ.get("SAMPLES", "file:samples.bin?mode=r"))
samples = umem.at(place, 0, (COUNT, WIDTH), "float32")
# [/place]
# [train]
weights = np.zeros(WIDTH - 1, "float32")
for epoch in range(3):
    loss = 0.0
    for batch in Batches(samples, 50):
        x = batch.numpy()  # with a GPU as the place of batches: torch.from_dlpack(batch)
        error = x[:, :-1] @ weights - x[:, -1]
        loss += float(error @ error) / COUNT
        weights -= 0.2 * x[:, :-1].T @ error / len(x)
    print(f"epoch {epoch + 1}: loss {loss:.4f}")
# [/train]
print("weights", weights.round(2).tolist())
