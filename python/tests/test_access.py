"""Access by the host, locks, ghost cells, releases."""
from pathlib import Path

import pytest

import umem

numpy = pytest.importorskip("numpy")


# ---- host ----

@pytest.mark.parametrize("mode", ["r", "w", "rw"])
def test_the_host_reads_and_writes_every_place(place, mode):
    array = umem.full((3, 4), 2, "int32", place)
    with array.host(mode) as found:
        assert type(found) is numpy.ndarray and found.shape == (3, 4) and found.dtype == "int32"
        if "r" in mode:
            assert (found == 2).all()
        assert found.flags.writeable == ("w" in mode)
        if "w" in mode:
            found[...] = 5
    assert array.tolist() == [[5 if "w" in mode else 2] * 4] * 3


def test_views_are_brought_back(place):
    array = umem.zeros((4, 6), place=place)
    with array[1:3, ::2].host() as found:
        found += 1
    expected = numpy.zeros((4, 6))
    expected[1:3, ::2] += 1
    assert array.tolist() == expected.tolist()


def test_a_copy_is_not_brought_back_when_the_block_raises():
    array = umem.zeros(3, place=umem.File())
    with pytest.raises(KeyError), array.host() as found:
        found[:] = 1
        raise KeyError
    assert array.tolist() == [0] * 3


def test_while_the_host_writes_a_copy_nobody_else_has_access():
    array = umem.zeros(3, place=umem.File())
    view = array[1:]
    with array.host("rw"):
        for use in (array.tolist, view.tolist, lambda: array.__setitem__(0, 1), view.copy, lambda: array.shape,
                    lambda: array.host().__enter__()):
            with pytest.raises(umem.RuntimeError, match="locked"):
                use()
    assert array.tolist() == [0] * 3


def test_while_the_host_reads_a_copy_nobody_writes():
    array = umem.zeros(3, place=umem.File())
    with array.host("r"), array.host("r"):
        assert array.tolist() == [0] * 3
        for use in (lambda: array.fill(1), lambda: array.__setitem__(0, 1), lambda: array.host().__enter__()):
            with pytest.raises(umem.RuntimeError, match="written"):
                use()
    array.fill(1)


def test_read_only_arrays(place):
    array = umem.zeros(3, place=place)
    view = array[1:]
    array.read_only = True
    for use in (lambda: array.fill(1), lambda: array.__setitem__(0, 1), lambda: array.random_uniform(),
                lambda: array.host().__enter__(), lambda: umem.copy(array, umem.zeros(3))):
        with pytest.raises(umem.NotSupportedError, match="read-only"):
            use()
    with array.host("r") as found:
        assert not found.flags.writeable
    assert array[1:].read_only and not view.read_only
    array.read_only = False
    array.fill(1)


def test_wrong_modes():
    with pytest.raises(umem.ValueError, match="'x'"), umem.zeros(3).host("x"):
        pass


def test_memory_that_the_cpu_cannot_read_says_so():
    array = umem.zeros(3, place=umem.File())
    for use in (array.numpy, lambda: memoryview(array), lambda: bytearray(array)):
        with pytest.raises((umem.NotSupportedError, BufferError)):
            use()
    assert not hasattr(array, "__array_interface__") and not hasattr(array, "__cuda_array_interface__")
    assert array.numpy(copy=True).tolist() == [0] * 3


def test_a_device_that_is_not_there():
    array = umem.zeros(3)
    try:
        umem.Cuda().close()
    except umem.NotSupportedError:
        with pytest.raises(umem.NotSupportedError), array.device():
            pass
    assert array.tolist() == [0] * 3


# ---- locks ----

def test_a_lock_has_one_owner(place):
    array = umem.zeros((2, 3), place=place)
    view = array[0]
    with array.lock() as mine:
        mine.fill(4)
        assert mine[1].tolist() == [4] * 3
        for use in (array.tolist, view.tolist, lambda: array[0], lambda: array.lock().__enter__(), array.copy,
                    array.release):
            with pytest.raises((umem.RuntimeError, BufferError), match="locked"):
                use()
        with pytest.raises(umem.RuntimeError):
            umem.zeros((2, 3))[...] = array
        with mine.host() as found:
            found += 1
    assert array.tolist() == [[5] * 3] * 2 and view.tolist() == [5] * 3


def test_a_lock_ends_with_its_block():
    array = umem.zeros(3)
    with pytest.raises(KeyError), array.lock():
        raise KeyError
    array.fill(1)


# ---- releases ----

def test_release_gives_the_memory_back_now(place):
    array = umem.zeros(100, place=place)
    views = [array[1:], array.T, array[::2]]
    array.release()
    array.release()
    for stale in (array, *views):
        assert stale.released and "released" in repr(stale)
        for use in (lambda: stale.shape, stale.tolist, lambda: stale[0], lambda: stale.fill(1), lambda: stale.copy(),
                    lambda: memoryview(stale), lambda: stale.__dlpack__(), lambda: stale.host().__enter__()):
            with pytest.raises(umem.ValueError, match="released"):
                use()


def test_a_release_is_refused_while_others_use_the_memory():
    with umem.Stats(umem.Host()) as stats:
        array = umem.zeros(100, place=stats)
        found = array.numpy()
        with pytest.raises(umem.NotSupportedError, match="NumPy"):
            array.release()
        del found
        found = numpy.from_dlpack(array)
        with pytest.raises(umem.NotSupportedError):
            array.release()
        del found
        array.release()
        assert stats.figures["current_count"] == 0
        array = umem.zeros(3, place=stats)
        assert array.__array_interface__["data"][0] == array.address
        with pytest.raises(umem.NotSupportedError):
            array.release()


@pytest.mark.filterwarnings("ignore:nanobind")
def test_arrays_that_no_function_has_made():
    for use in (memoryview, lambda a: a.shape, lambda a: a[0], lambda a: a.tolist()):
        with pytest.raises((TypeError, BufferError)):
            use(umem.Array.__new__(umem.Array))


# ---- ghost cells ----

def test_ghost_cells(place):
    array = umem.zeros((3, 4), "int32", place, ghosts=(1, 2))
    assert array.shape == (3, 4) and array.ghosts.widths == (1, 2) and array.ghosts.whole.shape == (5, 8)
    array.fill(1)
    array.ghosts[-1] = 7
    array.ghosts[3, -2] = 9
    array.ghosts[..., 5] = 3
    assert array.tolist() == [[1] * 4] * 3
    expected = numpy.zeros((5, 8), "int32")
    expected[1:4, 2:6] = 1
    expected[0] = 7
    expected[4, 0] = 9
    expected[:, 7] = 3
    assert array.ghosts.whole.tolist() == expected.tolist()
    assert array.ghosts[-1:2].tolist() == expected[0:3].tolist()
    assert array.ghosts[0, 0:].tolist() == expected[1, 2:].tolist()
    assert array.ghosts[:, ::3].tolist() == expected[:, ::3].tolist()


@pytest.mark.parametrize("key, error", [(-2, IndexError), (4, IndexError), ((0, 0, 0), IndexError), ("a", IndexError),
                                        (True, IndexError), (slice(None, None, -1), ValueError)])
def test_wrong_ghost_cells(key, error):
    with pytest.raises(error):
        umem.zeros((3, 4), ghosts=1).ghosts[key]


@pytest.mark.parametrize("ghosts", [-1, (1,), (1, -1), "ab", (1, 1.5)])
def test_wrong_numbers_of_ghost_cells(ghosts):
    with pytest.raises((umem.ValueError, TypeError)):
        umem.zeros((3, 4), ghosts=ghosts)


def test_arrays_without_ghost_cells():
    array = umem.full((2, 2), 3, ghosts=0)
    assert array.ghosts.widths == (0, 0) and array.ghosts[1, 1].item() == 3
    assert umem.zeros(3).ghosts.whole.shape == (3,)
    assert umem.full((2, 2), 3, "int8", ghosts=1).ghosts[-1, -1].item() == 3


def test_an_array_of_numpy_in_ram_is_made_by_numpy_itself(tmp_path):
    header = Path(numpy.get_include()) / "numpy" / "__multiarray_api.h"
    source = header.read_text()
    for name, number in ("PyArray_Type", 2), ("PyArray_NewFromDescr", 94), ("PyArray_SetBaseObject", 282):
        assert f"PyArray_API[{number}]" in source[source.index(f"#define {name} "):][:300], name
    array = umem.zeros((4, 6), "int16")[::2, 1:]
    access = array.host()
    with access as found:
        assert found.shape == (2, 5) and found.strides == (24, 2) and found.ctypes.data == array.address
        with pytest.raises(umem.NotSupportedError, match="NumPy or another library"):
            array.release()
        found[1, 0] = 7
    assert array[1, 0].item() == 7 and found[1, 0] == 7
    with array.host("r") as seen, pytest.raises(ValueError):
        seen.flags.writeable = True
    del found, seen
    array.release()
    with pytest.raises(umem.ValueError, match="released"), access:
        pass


@pytest.mark.parametrize("dtype", ["bool", "uint64", "float16", "complex64", "datetime64[s]", "U3", ">i4"])
def test_the_host_reads_all_types_in_ram(dtype):
    expected = numpy.ones(3, "int64").astype(dtype)
    with umem.asarray(expected.copy()).host() as found:
        assert found.dtype == expected.dtype and (found == expected).all()
    with umem.empty((0, 3), "f4").host() as empty:
        assert empty.shape == (0, 3)


def test_threads_may_be_the_first_to_use_numpy(run_python):
    """An import lets other threads run: no lock may be held meanwhile."""
    assert run_python("""
import threading, umem
array, begin = umem.zeros(3), threading.Barrier(4)
def use():
    begin.wait()
    with array.host("r") as elements:
        assert elements.shape == (3,)
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
""") == "done\n"


def test_an_access_that_no_array_has_made_is_refused():
    access = type(umem.zeros(3).host())
    with pytest.raises(TypeError), access.__new__(access):
        pass


def test_host_says_what_it_expects():
    array = umem.zeros(3)
    for arguments, named in ((("r", "w"), {}), ((), {"modes": "r"}), (("r",), {"mode": "r"})):
        with pytest.raises(umem.TypeError, match="expects"):
            array.host(*arguments, **named)
    for wrong in ("x", b"r", 3, None):
        with pytest.raises(umem.ValueError, match="known are"):
            array.host(wrong)
    for mode in "r", "w", "rw":
        with array.host(mode=mode) as x:
            assert x.flags.writeable == (mode != "r") and x.flags.aligned and x.flags.c_contiguous


def test_host_gives_the_layout_of_the_array():
    """NumPy gets dense and aligned elements without strides, others with them."""
    raw = bytearray(range(65))
    place, address = umem.host(), numpy.frombuffer(raw, "u1").ctypes.data
    for skip in 0, 1:
        array = umem.at(place, address + skip, (4, 2), "f8", order="C")
        for view in array, array.T, array[::2], array[:, 1], array[0, 0]:
            with view.host() as x:
                assert x.shape == view.shape and (x.size < 2 or x.strides == view.strides)
                assert x.flags.aligned == ((address + skip) % 8 == 0)
                assert view is not array or x.tobytes() == raw[skip:skip + 64]


def test_an_array_cannot_be_released_while_numpy_has_it():
    array = umem.zeros(3)
    with array.host() as x:
        with pytest.raises(umem.NotSupportedError, match="may use its memory"):
            array.release()
    del x
    array.release()
    with pytest.raises(umem.ValueError, match="released"):
        array.host()
