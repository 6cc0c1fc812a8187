"""Files of NumPy."""
import os

import pytest
from conftest import TYPES

import umem

numpy = pytest.importorskip("numpy")


@pytest.mark.parametrize("dtype", TYPES)
def test_numpy_reads_what_is_saved(dtype, tmp_path):
    check_saved(umem.host(), dtype, tmp_path)


def test_arrays_of_every_place_are_saved(place, tmp_path):
    check_saved(place, "int16", tmp_path)


def check_saved(place, dtype, tmp_path):
    expected = (numpy.arange(12) % 5).reshape(3, 4).astype(dtype)
    array = umem.asarray(expected, place=place)
    umem.save(tmp_path / "x.npy", array)
    umem.save(tmp_path / "y.npy", array[::2, ::-1])
    assert numpy.load(tmp_path / "x.npy").tolist() == expected.tolist()
    found = numpy.load(tmp_path / "y.npy")
    assert found.dtype == dtype and found.tolist() == expected[::2, ::-1].tolist()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (7,), (2, 3, 4)])
@pytest.mark.parametrize("order", "CF")
def test_what_numpy_saves_is_read(shape, order, tmp_path):
    check_read(umem.Pool(umem.Host()), shape, order, tmp_path)


def test_files_are_read_to_every_place(place, tmp_path):
    check_read(place, (2, 3, 4), "C", tmp_path)
    check_read(place, (4, 5), "F", tmp_path)


def check_read(place, shape, order, tmp_path):
    expected = numpy.asarray(numpy.random.default_rng(1).random(shape), order=order)
    numpy.save(tmp_path / "x.npy", expected)
    mapped = umem.load(tmp_path / "x.npy")
    assert mapped.shape == shape and mapped.tolist() == expected.tolist() and mapped.read_only
    assert type(mapped.place) is umem.MMap
    loaded = umem.load(tmp_path / "x.npy", place)
    assert loaded.place is place and loaded.tolist() == expected.tolist() and not loaded.read_only


def test_a_mapping_can_be_written(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros((2, 3)))
    array = umem.load(tmp_path / "x.npy", mode="r+")
    array.numpy()[1] = 5
    array.place.flush()
    assert numpy.load(tmp_path / "x.npy").tolist() == [[0] * 3, [5] * 3]
    with pytest.raises(umem.NotSupportedError):
        umem.load(tmp_path / "x.npy").fill(1)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.npy"
    umem.save(path, umem.full(3, 1))
    before = path.read_bytes()
    array = umem.full(1000, 2, place=umem.Fault(umem.Host(), calls="copies", status="IOError"))
    fault = array.place
    array.fill(2)
    umem.save(path, array)
    assert numpy.load(path).tolist() == [2] * 1000
    path.write_bytes(before)
    failing = umem.Fault(umem.Host(), calls="copy-to", status="IOError", nth=1)
    array = umem.zeros(1000, place=failing)
    with pytest.raises(umem.OSError):
        umem.save(path, array)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.npy"] and fault


def test_how_a_new_file_is_written(tmp_path):
    path = tmp_path / "x.npy"
    for options in {}, {"reserve": "none"}, {"reserve": "auto", "direct": "off"}, {"direct": "auto"}:
        umem.save(path, umem.full(3, 1), **options)
        assert numpy.load(path).tolist() == [1] * 3
    for options in {"reserve": "on"}, {"direct": "none"}, {"direct": 1}:
        with pytest.raises(umem.ValueError):
            umem.save(path, umem.full(3, 2), **options)
    try:
        umem.save(path, umem.full(100000, 2), direct="on")
    except umem.NotSupportedError:  # a file system without direct I/O
        assert numpy.load(path).tolist() == [1] * 3
    else:
        assert numpy.load(path).tolist() == [2] * 100000


@pytest.mark.parametrize("content, error", [
    (b"", ValueError), (b"no npy file at all", ValueError), (b"\x93NUMPY\x09\0\x10\0" + b" " * 16, ValueError),
    (b"\x93NUMPY\1\0\x10\0" + b"{'descr': 1     ", ValueError),
    (b"\x93NUMPY\1\0\x48\0" + b"{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }".ljust(72), TypeError),
    (b"\x93NUMPY\1\0\x48\0" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }".ljust(72), ValueError),
    (b"\x93NUMPY\1\0\x48\0" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }".ljust(72), ValueError),
    (b"\x93NUMPY\1\0\x58\0" + b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }".ljust(88), TypeError),
    (b"\x93NUMPY\1\0\x48\0" + b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }".ljust(72), TypeError),
])
def test_other_files_are_refused(tmp_path, content, error):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(error) as caught:
        umem.load(tmp_path / "x.npy")
    assert isinstance(caught.value, umem.Error)


def test_missing_files(tmp_path):
    with pytest.raises(OSError):
        umem.load(tmp_path / "x.npy")
    with pytest.raises(umem.OSError) as caught:
        umem.save(tmp_path / "no" / "x.npy", umem.zeros(3))
    assert caught.value.errno == 2
    with pytest.raises(umem.TypeError):
        umem.save(tmp_path / "x.npy", umem.zeros(3, "bfloat16"))
    assert not (tmp_path / "x.npy").exists()
