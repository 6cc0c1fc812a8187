"""CuPy allocates from a place."""
import cupy
import umem

place = umem.Stats(umem.Pool(umem.Cuda(0), max="2G"))
with umem.use_in_cupy(place) as use:
    x = cupy.arange(1000.0)
    print(float(x.sum()))
    try:
        cupy.empty(1 << 32, "u1")
    except MemoryError:
        print("out of memory")
print(place.figures["peak_bytes"] >= 8000, use.blocks)
