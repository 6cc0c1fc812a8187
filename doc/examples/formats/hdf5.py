"""Arrays of HDF5 files without a copy, and the others by h5py."""
import sys

import h5py
import umem


# [function]
def open_hdf5(path, name, place=None):
    """The dataset name of a file: mapped where it is one run of bytes; on a place if one is named."""
    with h5py.File(path, "r") as file:
        dataset = file[name]
        offset = dataset.id.get_offset()  # None: chunked, compact, or not written yet
        if offset is None or dataset.compression or dataset.external:
            return read_hdf5(dataset, "host:" if place is None else place)
        shape, dtype = dataset.shape, dataset.dtype
    array = umem.memmap(path, dtype, "r", offset, shape)
    return array if place is None else array.to(place)


def read_hdf5(dataset, place, most=64 << 20):
    """Reads blocks of rows into an array on a place, with at most so many bytes in RAM."""
    if not dataset.shape:
        return umem.asarray(dataset[()], place=place)
    array = umem.empty(dataset.shape, dataset.dtype, place)
    rows = max(1, most // max(1, dataset.nbytes // max(1, dataset.shape[0])))
    for row in range(0, dataset.shape[0], rows):
        array[row:row + rows] = dataset[row:row + rows]
    return array
# [/function]


if __name__ == "__main__":
    print(open_hdf5(sys.argv[1], sys.argv[2]))
