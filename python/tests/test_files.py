"""Arrays over bytes of files: memmap, at, and arrays that grow."""
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import umem

numpy = pytest.importorskip("numpy")


# ---- memmap ----

@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("offset", [0, 3, 4096 + 5])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64", "complex128"])
def test_memmap_shows_what_that_of_numpy_shows(tmp_path, dtype, offset, order):
    path, values = tmp_path / "x", (numpy.arange(12) % 7).astype(dtype).reshape(3, 4)
    array = umem.memmap(path, dtype, "w+", offset, (3, 4), order)
    array[...] = values
    array.place.flush()
    assert path.stat().st_size == offset + values.nbytes
    assert numpy.array_equal(numpy.memmap(path, dtype, "r", offset, (3, 4), order), values)
    assert array.tolist() == values.tolist() and numpy.array_equal(numpy.asarray(array), values)
    assert umem.full((3, 4), 1, dtype).to(umem.host()).tolist() == numpy.ones((3, 4), dtype).tolist()
    array.place.close()
    again = umem.memmap(path, dtype, "r", offset, (3, 4), order)
    assert again.read_only and again[1].astype("complex128" if dtype[0] == "c" else "float32").tolist() == values[1].tolist()
    assert again.copy().tolist() == values.tolist()


@pytest.mark.parametrize("mode", ["r", "r+", "c", "readonly", "readwrite", "copyonwrite"])
def test_modes_of_memmap(tmp_path, mode):
    path, values = tmp_path / "x", numpy.arange(10, dtype="int16")
    values.tofile(path)
    array, theirs = umem.memmap(path, "int16", mode), numpy.memmap(path, "int16", mode)
    assert array.shape == theirs.shape == (10,) and array.read_only == (not theirs.flags.writeable)
    if not array.read_only:
        array[3] = theirs[4] = 99
        array.place.flush()
        found = numpy.fromfile(path, "int16").tolist()
        assert (found == values.tolist()) == (mode[0] == "c")
        assert array[3].item() == 99


def test_a_file_that_is_too_short_grows_where_it_may(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    for mode in "r", "c":
        with pytest.raises(umem.ValueError, match="has 5 bytes, and 80 are needed"):
            umem.memmap(path, "float64", mode, shape=10)
    with pytest.raises(umem.ValueError, match="no whole number"):
        umem.memmap(path, "float64", "r")
    assert umem.memmap(path, "float64", "r+", shape=10).shape == (10,) and path.stat().st_size == 80
    with pytest.raises(umem.ValueError, match="needs a shape"):
        umem.memmap(path, "float64", "w+")
    with pytest.raises(umem.FileNotFoundError):
        umem.memmap(tmp_path / "no", "float64")
    for arguments in ({"mode": "x"}, {"order": "A"}, {"offset": -1}):
        with pytest.raises(umem.ValueError):
            umem.memmap(path, "float64", **arguments)


def test_arrays_over_bytes_that_are_there(tmp_path):
    values = numpy.arange(12.0)
    array = umem.at(umem.host(), values.ctypes.data + 8, (2, 3), "float64")
    array[0, 0] = 50
    assert array.tolist() == [[50, 2, 3], [4, 5, 6]] and values[1] == 50
    assert umem.at("host:", values.ctypes.data, (2, 3), order="F").tolist() == values[:6].reshape(2, 3, order="F").tolist()
    assert umem.at(umem.host(), values.ctypes.data, 3, "f8", [16]).tolist() == values[:6:2].tolist()
    (tmp_path / "x").write_bytes(b"abc" + values.tobytes())
    with umem.File(tmp_path / "x", "r") as file:
        assert umem.at(file, 3, 12).copy().tolist() == values.tolist()
    with pytest.raises(umem.TypeError, match="or its name, is expected, not int"):
        umem.at(3, 0, 3)


# ---- arrays that grow ----

@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("shape", [(0,), (3,), (0, 3), (2, 3), (1, 2, 2)])
def test_a_file_of_numpy_grows(tmp_path, mapped, shape):
    path, generator = tmp_path / "x.npy", numpy.random.default_rng(1)
    expected = numpy.zeros(shape)
    array = umem.create_npy(path, shape, mapped=mapped)
    assert type(array.place) is (umem.MMap if mapped else umem.File)
    view = array[:]
    for count in 1, 0, 5, 3000:
        rows = generator.random((count, *shape[1:]))
        array.append(rows)
        expected = numpy.concatenate([expected, rows])
        assert numpy.array_equal(numpy.load(path), expected) and array.shape == expected.shape
    assert view.shape == shape and array.tolist() == expected.tolist()
    array.resize(4)
    assert numpy.array_equal(numpy.load(path), expected[:4])
    array.resize(6)
    expected = numpy.concatenate([expected[:4], numpy.zeros((2, *shape[1:]))])
    assert numpy.array_equal(numpy.load(path), expected) and array.tolist() == expected.tolist()
    array.place.close()
    again = umem.open_npy(path, "a", mapped=not mapped)
    again.append(umem.full((1, *shape[1:]), 7))
    assert numpy.load(path).shape == (7, *shape[1:]) and (numpy.load(path)[6] == 7).all()
    assert os.listdir(tmp_path) == ["x.npy"] and umem.open_npy(path).read_only


def test_what_numpy_has_saved_grows(tmp_path):
    path = tmp_path / "x.npy"
    numpy.save(path, numpy.arange(6, dtype="int32").reshape(3, 2))
    array = umem.open_npy(path, "a")
    array.append([[6, 7]])
    assert numpy.load(path).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]] and numpy.load(path).dtype == "int32"
    array.place.close()
    numpy.save(path, numpy.asfortranarray(numpy.ones((3, 2))))
    with pytest.raises(umem.ValueError, match="cannot append"):
        umem.open_npy(path, "a")
    assert umem.open_npy(path, "r+").shape == (3, 2)


def test_a_raw_file_grows_if_the_array_is_its_last(tmp_path):
    for cls in umem.File, umem.MMap:
        path = tmp_path / cls.__name__
        with cls(path, "w+") as place:
            first = umem.full((2, 2), 1, "float32", place)
            first.append([[2, 2]])
            last = umem.full(3, 3, "float32", place)
            with pytest.raises(umem.NotSupportedError, match="not the last one of its file"):
                first.append([[4, 4]] * 20)
            assert first.tolist() == [[1, 1], [1, 1], [2, 2]] and last.tolist() == [3] * 3
            last.append([5])
            assert last.tolist() == [3, 3, 3, 5]
        assert numpy.fromfile(path, "float32")[:6].tolist() == [1, 1, 1, 1, 2, 2]


def test_what_cannot_grow_says_so(tmp_path):
    for array in (umem.zeros(3), umem.zeros(3, place=umem.File()), umem.open_npy(saved(tmp_path))):
        with pytest.raises(umem.NotSupportedError, match="can grow"):
            array.append([1])
    array = umem.create_npy(tmp_path / "y.npy", (2, 3))
    for rows in ([1, 2, 3], [[1, 2]], 4, "text"):
        with pytest.raises((umem.ValueError, umem.TypeError)):
            array.append(rows)
    with pytest.raises(umem.ValueError):
        array[:, 1].append([1])
    with pytest.raises(umem.ValueError, match="cannot have -1 rows"):
        array.resize(-1)
    assert numpy.load(tmp_path / "y.npy").shape == (2, 3)
    with pytest.raises(umem.FileNotFoundError):
        umem.open_npy(tmp_path / "no.npy", "a")
    with pytest.raises(umem.ValueError, match="known are"):
        umem.open_npy(tmp_path / "y.npy", "w")


def saved(folder):
    umem.save(folder / "saved.npy", [1.0, 2.0])
    return folder / "saved.npy"


KILLED = """
import sys, umem
array = umem.create_npy(sys.argv[1], (0, 64), "int64", mapped=sys.argv[2] == "True")
print("begun", flush=True)
for number in range(1, 10**6):
    array.append(umem.full((number % 7, 64), number, "int64"))
    if number % 50 == 0:
        array.resize(max(len(array) - 60, 0))
"""


@pytest.mark.parametrize("mapped", [True, False])
def test_the_header_is_true_whenever_the_process_is_killed(tmp_path, mapped):
    path = tmp_path / "x.npy"
    for _ in range(6):
        child = subprocess.Popen([sys.executable, "-c", KILLED, path, str(mapped)], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"begun\n"
        time.sleep(random.uniform(0.0, 0.3))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        found = numpy.load(path)
        assert found.shape[1:] == (64,) and (found == found[:, :1]).all() and (found[:, 0] > 0).all()
        array = umem.open_npy(path, "a")
        array.append(umem.full((1, 64), 5, "int64"))
        assert len(numpy.load(path)) == len(found) + 1
