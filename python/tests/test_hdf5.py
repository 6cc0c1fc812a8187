"""Datasets of HDF5 by the function that the page shows, beside h5py."""
import importlib.util
from pathlib import Path

import pytest

import umem

numpy = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")
PROGRAM = Path(__file__).resolve().parents[2] / "doc/examples/formats/hdf5.py"
pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="the documentation is not beside the tests")
ELEMENTS = numpy.arange(3000, dtype="float32").reshape(1000, 3)


@pytest.fixture(scope="module")
def hdf5():
    spec = importlib.util.spec_from_file_location("hdf5_program", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def create_compact(file, name, elements):
    """h5py makes none by itself."""
    options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    options.set_layout(h5py.h5d.COMPACT)
    made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(elements.dtype), h5py.h5s.create_simple(elements.shape),
                           options)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, elements)


def create_of_type(file, name, kind, elements):
    made = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(elements.shape))
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, elements)


def make_file(path, userblock):
    """Each dataset that is one run of bytes, and each that is not."""
    with h5py.File(path, "w", userblock_size=userblock) as file:
        file["plain"], file["big"], file["scalar"], file["flags"] = ELEMENTS, ELEMENTS.astype(">f4"), 5.0, ELEMENTS > 7
        file["half"], file["complex"] = ELEMENTS.astype("f2"), ELEMENTS.astype("c8")
        file["records"] = numpy.array([(1, 2.5), (3, 4.5)], [("a", "<i2"), ("b", ">f8")])
        file["padded"] = numpy.array([(1, 2.5), (3, 4.5)], numpy.dtype([("a", "<i2"), ("b", ">f8")], align=True))
        file["words"] = numpy.array([b"ab", b"c"])
        file["empty"] = numpy.empty((0, 3))
        runs = set(file) - {"empty"}
        file.create_dataset("chunked", data=ELEMENTS, chunks=(7, 2))
        file.create_dataset("packed", data=ELEMENTS, compression="gzip", shuffle=True)
        file.create_dataset("checked", data=ELEMENTS, fletcher32=True)
        file.create_dataset("scaled", data=ELEMENTS.astype("i4"), chunks=(7, 3), scaleoffset=0)
        file.create_dataset("unwritten", (20, 3), "f4", fillvalue=7)
        file.create_dataset("outside", (1000, 3), "f4", external=[(f"{path}.raw", 16, h5py.h5f.UNLIMITED)])
        file["outside"][...] = ELEMENTS
        create_compact(file, "compact", ELEMENTS[:5])
        layout = h5py.VirtualLayout((1000, 3), "f4")
        layout[...] = h5py.VirtualSource(file["plain"])
        file.create_virtual_dataset("virtual", layout)
        narrow = h5py.h5t.STD_I32LE.copy()
        narrow.set_precision(12)
        narrow.set_offset(4)
        create_of_type(file, "bits", narrow, ELEMENTS[:600].astype("i4"))
        file["texts"] = numpy.array(["a", "bc"], h5py.string_dtype())
        file["references"] = numpy.array([file["plain"].ref], h5py.ref_dtype)
        file["nothing"] = h5py.Empty("f4")
    return runs


@pytest.mark.parametrize("userblock", [0, 512])
def test_datasets_are_mapped_where_they_are_runs_of_bytes(userblock, hdf5, tmp_path):
    path = tmp_path / "x.h5"
    runs = make_file(path, userblock)
    with h5py.File(path) as file:
        expected = {name: numpy.asarray(file[name][...]) for name in file
                    if file[name].shape is not None and not file[name].dtype.hasobject}
    assert len(runs) == 9 and len(expected) == 19
    for name, elements in expected.items():
        found = hdf5.open_hdf5(path, name)
        assert type(found.place) is (umem.MMap if name in runs else umem.Host), name
        there = hdf5.open_hdf5(path, name, umem.File())
        for array in (found, there):
            assert array.shape == elements.shape and array.dtype == elements.dtype
            assert numpy.array_equal(array.numpy(copy=True), elements), name


def test_what_is_no_array_is_refused(hdf5, tmp_path):
    make_file(tmp_path / "x.h5", 0)
    for name in ("texts", "references", "nothing"):
        with pytest.raises(TypeError, match=name):
            hdf5.open_hdf5(tmp_path / "x.h5", name)
    with pytest.raises(KeyError):
        hdf5.open_hdf5(tmp_path / "x.h5", "missing")


@pytest.mark.parametrize("shape, chunks", [((10, 7, 5), (3, 2, 2)), ((1, 35), (1, 5)), ((35,), (4,)), ((0, 3), (1, 1)), ((), ())])
def test_blocks_are_bounded_and_cover_all(shape, chunks, hdf5):
    for most in (1, 3, 5, 34, 35, 70, 10000):
        seen = numpy.zeros(shape, int)
        for block in hdf5.blocks(shape, chunks, most):
            assert seen[block].size <= most
            seen[block] += 1
        assert (seen == 1).all()


def test_blocks_end_where_chunks_end(hdf5):
    assert [block[0].start % 4 for block in hdf5.blocks((100, 5), (4, 5), 55)] == [0] * 13
