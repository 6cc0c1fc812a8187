"""NumPy allocates from places of umem."""
import numpy
import umem

# [file]
with umem.use_in_numpy(umem.MMap("large.bin", "w+")):
    x = numpy.linspace(0, 1, 1_000_001)  # in the file
    y = x * x  # also
print(y.sum().round(2))
# [/file]

# [stats]
place = umem.Stats(umem.Limit(umem.Host(), "100M"))
with umem.use_in_numpy(place) as use:
    kept = numpy.ones(1000)
    try:
        numpy.ones(1_000_000_000)
    except MemoryError:
        print(use.failure)
print(use.blocks, place.figures["current_bytes"])  # the array lives on
del kept
print(use.blocks, place.figures["current_bytes"])
# [/stats]
