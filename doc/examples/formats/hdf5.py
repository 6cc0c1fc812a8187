"""Arrays of HDF5 files without a copy, and the others by h5py."""
import math
import sys

import h5py
import umem


# [function]
def open_hdf5(path, name, place=None):
    """The dataset name of a file: mapped where it is one run of bytes; on a place if one is named."""
    with h5py.File(path, "r") as file:
        dataset = file[name]
        if dataset.shape is None or dataset.dtype.hasobject:
            raise TypeError(f"{name} has {'no elements' if dataset.shape is None else 'texts or references'}, which no array has")
        if not is_run(dataset):
            return read_hdf5(dataset, "host:" if place is None else place)
        offset, shape, dtype = dataset.id.get_offset(), dataset.shape, dataset.dtype
    array = umem.memmap(path, dtype, "r", offset, shape)
    return array if place is None else array.to(place)


def is_run(dataset):
    """Whether the elements are one run of bytes of the file, as NumPy has them. Not so: chunked, compact, in other files."""
    if not dataset.size or dataset.id.get_offset() is None or dataset.id.get_storage_size() != dataset.nbytes:
        return False
    return h5py.h5t.py_create(dataset.dtype, logical=True) == dataset.id.get_type()


def read_hdf5(dataset, place, most=64 << 20):
    """Reads blocks into an array on a place, with at most so many bytes in RAM, or an element."""
    array = umem.empty(dataset.shape, dataset.dtype, place)
    chunks = dataset.chunks or (1,) * dataset.ndim
    for block in blocks(dataset.shape, chunks, most // dataset.dtype.itemsize):
        array[block] = dataset[block]
    return array


def blocks(shape, chunks, most):
    """Slices of at most so many elements; they end where chunks end, if they are not smaller."""
    row = math.prod(shape[1:])
    if not shape or not math.prod(shape):
        yield from [()] if not shape else []
    elif row > most:
        for first in range(shape[0]):
            yield from ((slice(first, first + 1), *rest) for rest in blocks(shape[1:], chunks[1:], most))
    else:
        rows = max(1, most // row)
        rows -= rows % chunks[0] if rows > chunks[0] else 0
        yield from ((slice(first, min(first + rows, shape[0])),) for first in range(0, shape[0], rows))
# [/function]


if __name__ == "__main__":
    print(open_hdf5(sys.argv[1], sys.argv[2]))
