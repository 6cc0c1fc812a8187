"""Numba allocates from a place."""
import numpy
import umem
from numba import cuda

place = umem.Stats(umem.Cuda(0))
with umem.use_in_numba(place):
    x = cuda.to_device(numpy.ones(1000))
    print(place.figures["current_bytes"], x.copy_to_host().sum())
