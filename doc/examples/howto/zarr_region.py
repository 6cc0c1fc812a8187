"""A region of a zarr array on a GPU, and back. Needs zarr; on a machine without a GPU, in RAM."""
import sys

import umem
import zarr


def open_gpu():
    try:
        return umem.Cuda(0)
    except umem.NotSupportedError as error:
        print("no GPU:", error, file=sys.stderr)
        return umem.Host()


place = open_gpu()
# [make]
array = zarr.create_array("field.zarr", shape=(600, 800), chunks=(100, 200), dtype="float32", compressors=None,
                          overwrite=True)
array[:100] = 1                                                   # the other chunks are not written
# [/make]
# [region]
region = umem.from_zarr(array, (slice(50, 250), slice(None, None, 2)), place)      # array[50:250, ::2], on the place
# [/region]
print(region.shape, "sum", region.sum().item())
# [back]
umem.to_zarr(umem.full((200, 800), 2, "float32", place), array, slice(400, None))  # array[400:] = ...
# [/back]
print("sum of all", array[...].sum())
# [out]
block = umem.empty((100, 800), "float32", place)
for row in range(0, 600, 100):
    umem.from_zarr(array, slice(row, row + 100), out=block)                        # the same memory for each block
    print(row, block.max().item())
# [/out]
