"""An allocator of the application as a place."""
import ctypes

import umem

# [external]
blocks = {}  # address: memory of the application


def allocate(nbytes, alignment, stream):
    memory = ctypes.create_string_buffer(nbytes)
    blocks[ctypes.addressof(memory)] = memory
    return ctypes.addressof(memory)


def deallocate(address, nbytes, alignment, stream):
    del blocks[address]


place = umem.External(umem.Host(), allocate, deallocate, alignment=16, aligns=False)
with umem.Limit(place, "1M") as limited:
    array = umem.arange(1000, dtype="f8", place=limited)
    print(len(blocks), "block,", limited.used, "bytes, sum", array.sum())
    try:
        umem.zeros(10**6, "f8", limited)
    except umem.MemoryError as error:
        print(error)
print(len(blocks), "blocks")
# [/external]
