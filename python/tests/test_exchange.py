"""Exchange with other libraries without copies, both ways; owners are kept alive by either side."""
import copy
import gc
import mmap
import pickle
import weakref
from multiprocessing.reduction import ForkingPickler

import pytest
from conftest import TYPES

import umem
from umem import exchange

numpy = pytest.importorskip("numpy")


def address(array):
    return array.__array_interface__["data"][0]


# ---- NumPy ----

def _takes_version():
    try:
        return bool(numpy.zeros(1).__dlpack__(max_version=(1, 0)))
    except TypeError:
        return False


# What numpy.from_dlpack can do: NumPy has a version of DLPack with flags from 2.1 on, and arrays that it imports are
# writable from 2.2.5 on.
HAS_FLAGS = _takes_version()
IMPORTS_WRITABLE = numpy.from_dlpack(numpy.zeros(1)).flags.writeable

@pytest.mark.parametrize("take", [numpy.from_dlpack, numpy.asarray, lambda a: a.numpy(), lambda a: a.__array__(),
                                  lambda a: numpy.asarray(memoryview(a)),
                                  lambda a: numpy.asarray(type("I", (), {"__array_interface__": a.__array_interface__,
                                                                         "owner": a})())])
@pytest.mark.parametrize("dtype", TYPES)
def test_numpy_uses_the_memory_of_umem(take, dtype):
    array = umem.zeros((4, 6), dtype)
    view = array[1::2, 5::-2]
    found = take(view)
    assert (found.dtype, found.shape, found.strides, address(found)) == (dtype, (2, 3), view.strides, view.address)
    if take is numpy.from_dlpack and not IMPORTS_WRITABLE:
        array[3, 3] = 1
    else:
        found[1, 1] = 1
    assert found[1, 1] == 1 and array[3, 3].item() == 1
    del array, view
    gc.collect()
    assert found[1, 1] == 1


@pytest.mark.parametrize("take", [umem.from_dlpack, umem.asarray])
@pytest.mark.parametrize("dtype", TYPES)
def test_umem_uses_the_memory_of_numpy(take, dtype):
    owner = numpy.zeros((4, 6), dtype)
    gone = weakref.ref(owner)
    array = take(owner[1::2, 5::-2])
    assert (array.dtype, array.shape, array.strides) == (owner.dtype, (2, 3), owner[1::2, 5::-2].strides)
    array[1, 1] = 1
    assert owner[3, 3] == 1 and array.place is umem.host()
    del owner
    gc.collect()
    assert gone() is not None and array[1, 1].item() == 1
    del array
    gc.collect()
    assert gone() is None


def test_arrays_of_every_form_pass_through():
    for shape in ((), (0,), (0, 3), (1, 1), (2, 3, 4), (1,) * 30):
        array = umem.zeros(shape, "int32")
        assert numpy.from_dlpack(array).shape == shape and numpy.asarray(array).shape == shape
        assert umem.from_dlpack(numpy.zeros(shape, "int32")).shape == shape
        assert umem.asarray(numpy.zeros(shape, "int32")).shape == shape
        assert umem.from_dlpack(umem.from_dlpack(array)).shape == shape
    broadcast = numpy.broadcast_to(numpy.arange(3), (4, 3))
    assert umem.asarray(broadcast).tolist() == broadcast.tolist()


def test_arrays_of_numpy_of_every_kind():
    """What umem reads without a capsule, and what it leaves to DLPack or to the array interface."""
    plain = numpy.arange(24, dtype="int16").reshape(4, 6)
    raw = numpy.zeros(40, "uint8")

    class Mine(numpy.ndarray):
        pass

    for value in (plain, plain[::-1, ::2], plain.T, plain[1, 2:3], numpy.array(3.5), plain[:, :0], plain.view(Mine),
                  numpy.broadcast_to(plain[0], (3, 6)), raw[1:33].view("float64"), plain > 3,
                  numpy.lib.stride_tricks.as_strided(raw.view("int32"), (3,), (6,)), plain.astype("complex64")):
        array = umem.asarray(value)
        assert (array.dtype, array.shape, array.tolist()) == (value.dtype, value.shape, value.tolist())
        assert array.size == 0 or array.address == address(value)
        assert array.read_only is not value.flags.writeable
    for dtype in (">i4", "M8[s]", "S3", "U2", [("a", "i4")], "longdouble"):
        value = numpy.zeros(3, dtype)
        assert umem.asarray(value).dtype == value.dtype and umem.asarray(value).address == address(value)
        with pytest.raises((BufferError, TypeError)):
            umem.from_dlpack(value)
    with pytest.raises(TypeError):
        umem.from_dlpack(numpy.array([object()]))
    taken = umem.from_dlpack(plain)
    with pytest.raises(ValueError):
        plain.resize((100, 100))  # umem uses it
    assert taken.tolist() == plain.tolist()


def test_read_only_arrays_stay_read_only():
    array = umem.zeros(3)
    array.read_only = True
    assert not numpy.asarray(array).flags.writeable and memoryview(array).readonly
    if HAS_FLAGS:
        assert not numpy.from_dlpack(array).flags.writeable
    else:
        with pytest.raises(BufferError):
            numpy.from_dlpack(array)
    owner = numpy.arange(3)
    owner.flags.writeable = False
    for found in (umem.from_dlpack(owner), umem.asarray(owner), umem.asarray(b"abc")):
        assert found.read_only
        with pytest.raises(umem.NotSupportedError):
            found.fill(1)
    with pytest.raises(BufferError):
        array.__dlpack__()  # the unversioned form has no such flag
    with pytest.raises(BufferError):
        array.__dlpack__(max_version=(0, 8))


def test_a_place_that_cannot_be_written_gives_read_only_arrays(tmp_path):
    umem.asarray([1.0, 2.0], place=umem.MMap(tmp_path / "a.bin", "w"))
    array = umem.empty(2, place=umem.MMap(tmp_path / "a.bin", "r"))
    assert array.read_only and not array.numpy().flags.writeable and array.numpy().tolist() == [1, 2]


@pytest.mark.skipif(not HAS_FLAGS, reason="this NumPy cannot ask for a copy")
def test_numpy_asks_for_a_copy():
    array = umem.arange(3)
    found = numpy.from_dlpack(array, copy=True)
    array.fill(9)
    assert found.tolist() == [0, 1, 2]


class OldProducer:
    """An array as NumPy before 2.1 has it."""

    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__

    def __dlpack__(self, stream=None):
        if not self.array.flags.writeable:
            raise BufferError("Cannot export readonly array")
        return umem.asarray(self.array).__dlpack__()


def test_read_only_arrays_of_producers_without_flags():
    owner = numpy.arange(3)
    assert not umem.from_dlpack(OldProducer(owner)).read_only
    owner.flags.writeable = False
    found = umem.from_dlpack(OldProducer(owner))
    assert found.read_only and found.address == address(owner) and found.tolist() == [0, 1, 2]
    copied = umem.from_dlpack(OldProducer(owner), copy=True)
    assert not copied.read_only and copied.address != address(owner)
    with pytest.raises(BufferError, match="readonly"):
        umem.from_dlpack(OldProducer(owner), place=umem.host())


def test_copies_are_copies():
    array = umem.arange(3)
    assert numpy.array(array, copy=True).tolist() == [0, 1, 2] and array.numpy(copy=True).base is None
    owner = numpy.arange(3)
    for made in (umem.from_dlpack(owner, copy=True), umem.asarray(owner, copy=True), umem.asarray(owner, "float32")):
        made.fill(9)
    assert owner.tolist() == [0, 1, 2]
    for refused in (lambda: umem.asarray(owner, "float32", copy=False), lambda: umem.asarray([1], copy=False),
                    lambda: umem.asarray(owner, place=umem.Pool(umem.Host()), copy=False)):
        with pytest.raises(umem.ValueError, match="copy is False"):
            refused()
    assert umem.asarray(array) is array and umem.asarray(owner, copy=False).tolist() == [0, 1, 2]
    assert numpy.asarray(array, dtype="float32").dtype == "float32"


def test_forced_reading_of_any_numpy_array():
    for owner in (numpy.arange(6, dtype=">i4").reshape(2, 3), numpy.asfortranarray(numpy.arange(6.).reshape(2, 3)),
                  numpy.arange(12, dtype="int16")[::-2], numpy.array(5), numpy.zeros((0, 2))):
        native = owner.astype(owner.dtype.newbyteorder("="))
        assert umem.asarray(native, "float64").tolist() == owner.astype("float64").tolist()


# ---- the protocols ----

@pytest.mark.parametrize("version, name", [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"),
                                           ((1, 5), "dltensor_versioned")])
def test_capsules_have_the_form_that_is_asked_for(version, name):
    array = umem.zeros(3)
    capsule = array.__dlpack__(max_version=version)
    assert f'"{name}"' in repr(capsule)
    assert array.__dlpack_device__() == (1, 0)
    with pytest.raises(umem.NotSupportedError):
        array.release()
    del capsule  # nobody has taken it
    array.release()


def test_a_capsule_is_taken_once():
    class Once:
        def __init__(self):
            self.capsule = umem.zeros(3).__dlpack__(max_version=(1, 0))

        def __dlpack__(self, **_):
            return self.capsule

        def __dlpack_device__(self):
            return 1, 0

    once = Once()
    assert umem.from_dlpack(once).tolist() == [0] * 3
    with pytest.raises(umem.TypeError, match="nobody has taken"):
        umem.from_dlpack(once)


def test_producers_without_versions():
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert umem.from_dlpack(Old(numpy.arange(3))).tolist() == [0, 1, 2]
    assert umem.from_dlpack(Old(umem.arange(3))).tolist() == [0, 1, 2]


class OlderNumpy(numpy.ndarray):
    """Of a version of DLPack in which a tensor cannot say that it is read-only."""

    def __dlpack__(self, stream=None):
        return self.base.__dlpack__()


@pytest.mark.parametrize("writeable", [True, False])
def test_producers_without_versions_stay_read_only(writeable):
    array = numpy.arange(3).view(OlderNumpy)
    array.flags.writeable = writeable
    assert umem.from_dlpack(array).read_only is not writeable


@pytest.mark.parametrize("options, error", [({"stream": 5}, ValueError), ({"stream": 0}, ValueError),
                                            ({"dl_device": (2, 0), "copy": False}, BufferError),
                                            ({"dl_device": (1, 1)}, BufferError),
                                            ({"dl_device": (1, -1), "max_version": (1, 0)}, BufferError),
                                            ({"stream": "x"}, TypeError)])
def test_exports_that_are_refused(options, error):
    with pytest.raises(error):
        umem.zeros(3).__dlpack__(**options)


@pytest.mark.parametrize("value, error", [(3, TypeError), ("text", TypeError), (object(), TypeError)])
def test_imports_that_are_refused(value, error):
    with pytest.raises(error):
        umem.from_dlpack(value)


def test_errors_of_a_producer_arrive():
    class Broken:
        def __dlpack__(self, **_):
            raise KeyError("mine")

        def __dlpack_device__(self):
            return 1, 0

    with pytest.raises(KeyError, match="mine"):
        umem.from_dlpack(Broken())


def test_memory_of_unknown_devices_is_refused():
    import ctypes

    class Elsewhere:
        def __dlpack__(self, **_):
            capsule = umem.zeros(3).__dlpack__(max_version=(1, 0))
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            ctypes.c_int32.from_address(pointer(capsule, b"dltensor_versioned") + 40).value = 7
            return capsule

    with pytest.raises(BufferError, match="device 7"):
        umem.from_dlpack(Elsewhere())
    with pytest.raises(BufferError):
        umem.from_dlpack(Elsewhere(), umem.Host())


def test_files_are_exported_as_copies_alone():
    array = umem.full(3, 2, place=umem.File())
    with pytest.raises(BufferError):
        array.__dlpack__()
    with pytest.raises(BufferError):
        array.__dlpack_device__()
    capsule = array.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    assert '"dltensor_versioned"' in repr(capsule)


def test_buffers_of_python():
    from array import array as buffer

    for value, dtype in ((buffer("d", [1, 2]), "float64"), (bytearray(b"ab"), "uint8"), (memoryview(b"ab"), "uint8"),
                         (buffer("l", [1, 2]), "int64")):
        found = umem.asarray(value)
        assert found.dtype == dtype and len(found) == 2
    owner = bytearray(4)
    found = umem.asarray(owner)
    found.fill(7)
    assert owner == b"\7\7\7\7"


def numpy_read_only():
    array = numpy.arange(4, dtype="uint8")
    array.flags.writeable = False
    return array


def mapped_read_only():
    with open(__file__, "rb") as file:
        return mmap.mmap(file.fileno(), 4, access=mmap.ACCESS_READ)


class ByInterface:
    def __init__(self):
        self.owner = numpy_read_only()
        self.__array_interface__ = self.owner.__array_interface__


class OfJax:
    """Immutable, and its tensor cannot say so."""

    __module__ = "jaxlib._jax"

    def __init__(self):
        self.owner = umem.arange(4, dtype="uint8")

    def __dlpack__(self, **_):
        return self.owner.__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


READ_ONLY = {
    "bytes": lambda: b"abcd", "memoryview": lambda: memoryview(bytearray(4)).toreadonly(), "mmap": mapped_read_only,
    "numpy": numpy_read_only, "numpy's buffer": lambda: memoryview(numpy_read_only()), "interface": ByInterface,
    "jax": OfJax,
}


@pytest.mark.parametrize("kind", READ_ONLY)
def test_what_others_do_not_write_stays_read_only_for_good(kind):
    check_read_only_for_good(umem.asarray(READ_ONLY[kind]()))


def test_arrays_of_jax_are_read_only_for_good():
    check_read_only_for_good(umem.from_dlpack(OfJax()))
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.default_device(jax.devices("cpu")[0]):
        check_read_only_for_good(umem.asarray(jax.numpy.arange(4, dtype="uint8")))
        check_read_only_for_good(umem.from_dlpack(jax.numpy.arange(4, dtype="uint8")))


def test_files_that_are_open_to_read_are_read_only_for_good(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(4, dtype="uint8"))
    check_read_only_for_good(umem.load(tmp_path / "x.npy"))


def test_the_receiver_of_a_read_only_array_cannot_write_it():
    array = umem.arange(4, dtype="uint8", place=umem.Shm(size="1M", sparse=True))
    array.read_only = True
    check_read_only_for_good(pickle.loads(ForkingPickler.dumps(array)))


def check_read_only_for_good(array):
    before = array.tolist()
    for one in (array, array[1:], array.reshape(2, 2)):
        assert one.read_only
        one.read_only = True
        with pytest.raises(umem.NotSupportedError, match="stays read-only"):
            one.read_only = False
        for write in (lambda: one.fill(9), lambda: one.__setitem__(..., 9), lambda: umem.copy(one, umem.zeros(one.shape, "uint8")),
                      lambda: one.__setitem__(0, umem.zeros((), "uint8"))):
            with pytest.raises(umem.NotSupportedError):
                write()
        with pytest.raises(umem.NotSupportedError), one.host("rw"):
            pass
        with one.host("r") as elements, pytest.raises(ValueError):
            elements.flags.writeable = True
        with pytest.raises(ValueError):
            one.numpy().flags.writeable = True
        assert memoryview(one).readonly and one.__array_interface__["data"][1]
        with pytest.raises(BufferError):
            one.__dlpack__()  # a tensor that cannot say it
        again = umem.from_dlpack(one)
        with pytest.raises(umem.NotSupportedError, match="stays read-only"):
            again.read_only = False
    assert array.tolist() == before


def test_a_buffer_is_held_as_long_as_its_array():
    owner = bytearray(4)
    array = umem.asarray(owner)
    with pytest.raises(BufferError):
        owner.extend(bytes(100))  # which would move it
    del array
    owner.extend(bytes(100))
    with mmap.mmap(-1, 4096) as mapping:
        array = umem.asarray(mapping)
        with pytest.raises(BufferError):
            mapping.close()
        array.release()


def test_memoryviews_ask_for_a_layout():
    array = umem.zeros((3, 4))
    assert memoryview(array).contiguous and bytes(memoryview(array)) == bytes(96)
    assert not memoryview(array[:, ::2]).contiguous and memoryview(array.T).f_contiguous
    with pytest.raises(BufferError):
        numpy.frombuffer(array[:, ::2], "f8")


def test_interfaces():
    array = umem.zeros((3, 4), "int16")
    interface = array[:, ::2].__array_interface__
    assert interface == {"shape": (3, 2), "typestr": "<i2", "data": (array.address, False), "strides": (8, 4),
                         "version": 3}
    assert array.__array_interface__["strides"] is None
    assert not hasattr(array, "__cuda_array_interface__")
    assert not hasattr(umem.zeros(3, "bfloat16"), "__array_interface__")


# ---- copy and pickle ----

@pytest.mark.parametrize("dtype", [*TYPES, "bfloat16"])
def test_arrays_in_ram_are_pickled_by_value(dtype):
    array = umem.full((2, 3), 1, dtype)
    for again in (pickle.loads(pickle.dumps(array[:, ::2])), copy.deepcopy(array[:, ::2]), copy.copy(array[:, ::2])):
        assert again.dtype == dtype and again.tolist() == array[:, ::2].tolist()
        again.fill(0)
    assert array[0, 0].item() == 1
    assert pickle.loads(pickle.dumps(umem.zeros((0, 3)))).shape == (0, 3)
    assert pickle.loads(pickle.dumps(umem.dtype(dtype))) == dtype


def test_a_pickle_has_the_bytes_once_or_none_of_them():
    numpy = pytest.importorskip("numpy")
    array = umem.asarray(numpy.arange(100_000.0))
    for protocol in range(2, 6):
        assert len(pickle.dumps(array, protocol)) < 1.01 * array.nbytes + 300 or protocol < 3
        assert pickle.loads(pickle.dumps(array, protocol)).tolist() == array.tolist()
    buffers = []
    stored = pickle.dumps([array, array[::2], array.reshape(100, 1000).T], 5, buffer_callback=buffers.append)
    assert len(stored) < 1000 and [buffer.raw().nbytes for buffer in buffers] == [800_000, 400_000, 800_000]
    again = pickle.loads(stored, buffers=buffers)
    assert again[0].address == array.address and again[1].tolist() == array[::2].tolist() and again[2].shape == (1000, 100)
    again[0][0] = 5
    assert array[0].item() == 5 and not again[0].read_only
    del array, buffers
    assert again[0][-1].item() == 99_999
    other = umem.zeros(9)
    kept = []
    pickle.dumps(other, 5, buffer_callback=kept.append)
    with pytest.raises(umem.NotSupportedError, match="may use its memory"):
        other.release()
    del kept
    other.release()


def test_a_pickle_whose_bytes_are_anywhere_is_loaded():
    array, buffers = umem.arange(5.0), []
    stored = pickle.dumps(array, 5, buffer_callback=buffers.append)
    moved = memoryview(bytearray(b"x" + buffers[0].raw().tobytes()))[1:]
    assert pickle.loads(stored, buffers=[moved]).copy().tolist() == [0, 1, 2, 3, 4]
    again = pickle.loads(stored, buffers=[bytes(buffers[0].raw())])
    again.fill(1)
    for wrong in (bytes(39), bytes(41), bytearray(80), memoryview(bytearray(80))[::2]):
        with pytest.raises(umem.ValueError, match="needs 40 bytes"):
            exchange.unpickle((5,), "float64", wrong)
    with array.lock(), pytest.raises(umem.RuntimeError, match="locked"):
        pickle.dumps(array)


def test_pickles_need_no_more_memory_than_those_of_numpy(run_python):
    program = ("import pickle, resource, numpy, umem\n"
               "made = umem.full(1 << 24, 1.0) if {ours} else numpy.ones(1 << 24)\n"
               "pickle.dumps(made[:9], {protocol})\n"
               "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
               "pickle.dumps(made, {protocol})\n"
               "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n")
    for protocol in 4, 5:
        ours, theirs = (int(run_python(program.format(ours=ours, protocol=protocol))) for ours in (True, False))
        assert ours < 1.1 * theirs + 4096, (protocol, ours, theirs)


def test_others_are_not_pickled(place):
    if place.kind == "host":
        return
    if place.kind != "shm":  # see test_processes.py
        with pytest.raises(umem.TypeError, match="pickle"):
            pickle.dumps(umem.zeros(3, place=place))
    with pytest.raises(umem.TypeError, match="pickle"):
        pickle.dumps(place)


# ---- other libraries ----

def test_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    array = umem.arange(12, dtype="float32").reshape(3, 4)
    found = jax.numpy.from_dlpack(array)
    assert found.shape == (3, 4) and found.unsafe_buffer_pointer() == array.address
    assert jax.numpy.from_dlpack(array.T).tolist() == array.T.tolist()
    assert (found * 2).tolist() == [[2 * x for x in row] for row in array.tolist()]
    made = jax.numpy.arange(5)
    back = umem.from_dlpack(made)
    assert back.tolist() == [0, 1, 2, 3, 4] and back.address == made.unsafe_buffer_pointer()
    pool = umem.Pool(umem.Host())
    there = umem.asarray([1.0, 2.0], "float32", pool)
    assert jax.numpy.from_dlpack(there).unsafe_buffer_pointer() == there.address


def test_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    array = umem.zeros((3, 4), "float32")
    for take in (torch.as_tensor, torch.asarray):  # some versions take the buffer, without its shape
        found = take(array)
        assert found.data_ptr() == array.address and found.numel() == 12
    found = torch.from_dlpack(array)
    assert found.data_ptr() == array.address and found.shape == (3, 4)
    found[1, 2] = 5
    assert array[1, 2].item() == 5
    made = torch.ones(3, 4).t()
    assert umem.from_dlpack(made).strides == (4, 16) and umem.asarray(made).address == made.data_ptr()
    assert umem.dtype(torch.bfloat16) == "bfloat16" and umem.zeros(2, torch.int16).dtype == "int16"
    assert umem.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).tolist() == [1, 1]


def test_numba():
    numba = pytest.importorskip("numba", reason="Numba is not installed")

    @numba.njit
    def double(values):
        for i in range(values.size):
            values[i] *= 2

    array = umem.arange(5, dtype="float64")
    double(array.numpy())
    with array.host() as found:
        double(found)
    assert array.tolist() == [0, 4, 8, 12, 16]


def test_arrow():
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    array = umem.arange(5)
    buffer = pyarrow.py_buffer(array)
    assert buffer.address == array.address and buffer.size == 40
    made = pyarrow.array([1.5, 2.5, 3.5])
    found = umem.from_dlpack(made)
    assert found.tolist() == [1.5, 2.5, 3.5] and found.address == made.buffers()[1].address


@pytest.mark.parametrize("arguments, error", [
    ({"dl_device": ("cpu", 0)}, umem.TypeError), ({"dl_device": (2**32 + 1, 0)}, umem.ValueError),
    ({"dl_device": 1}, TypeError), ({"dl_device": ()}, IndexError), ({"max_version": ("1", 0)}, TypeError),
    ({"max_version": ["1"]}, umem.TypeError), ({"stream": "1"}, umem.TypeError), ({"stream": 2**70}, umem.ValueError)])
def test_wrong_wishes_of_a_consumer(arguments, error):
    with pytest.raises(error):
        umem.zeros(3).__dlpack__(**arguments)


def test_what_a_consumer_says_of_a_copy_is_true_or_false():
    class Wish:
        def __init__(self, copy):
            self.copy = copy

        def __dlpack__(self, **_):
            return array.__dlpack__(copy=self.copy)

    array = umem.zeros(3)
    for said in (0, 1, numpy.bool_(False), numpy.bool_(True)):
        assert (umem.from_dlpack(Wish(said)).address != array.address) == bool(said)
