"""Loads a file into the memory of a GPU. On a machine without a GPU, into RAM."""
import numpy
import umem

numpy.save("samples.npy", numpy.arange(1_000_000, dtype="float32"))

try:
    place = umem.Cuda()
except umem.NotSupportedError:  # the message names what is missing
    place = umem.Host()

samples = umem.load("samples.npy", place)
print(samples.shape, samples.dtype, samples[999_999].item())
