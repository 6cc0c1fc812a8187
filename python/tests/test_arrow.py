"""Columns of Arrow in both directions, with pyarrow as the oracle; owners, missing elements, structs that are wrong."""
import ctypes
import gc
import weakref

import pytest
from conftest import GPU_PLACES, HAS_GPU, PLACES

import umem

numpy = pytest.importorskip("numpy")
pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

NUMBERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
CPU, CUDA = 1, 2


def column_of(array):
    """What pyarrow makes of an array by the C interface alone."""
    return pyarrow.array(type("Column", (), {"__arrow_c_array__": lambda self, requested_schema=None:
                                             array.__arrow_c_array__(requested_schema)})())


# ---- to Arrow ----

@pytest.mark.parametrize("dtype", NUMBERS)
def test_arrow_uses_the_memory_of_umem(dtype):
    array = umem.asarray(numpy.arange(10).astype(dtype), copy=True)
    made = column_of(array)
    assert made.to_pylist() == array.tolist() and made.null_count == 0 and str(made.type) in (
        dtype, {"float16": "halffloat", "float32": "float", "float64": "double"}.get(dtype))
    assert made.buffers()[1].address == array.address
    array[3] = 7
    assert made[3].as_py() == 7
    view = column_of(array[2:5])
    assert view.to_pylist() == array[2:5].tolist() and view.buffers()[1].address == array[2:5].address
    with pytest.raises(umem.NotSupportedError):
        array.release()  # Arrow uses the memory
    del made, view
    gc.collect()
    array.release()


def test_the_memory_lives_as_long_as_the_column():
    place = umem.Pool(umem.Host())
    gone = weakref.ref(place)
    made = column_of(umem.full(1000, 3, "int64", place))
    del place
    gc.collect()
    assert gone() is None and made.to_numpy().tolist() == [3] * 1000
    schema, column = umem.zeros(3).__arrow_c_array__()
    del schema, column  # nobody has taken them
    place = umem.Stats(umem.Host())
    pair = umem.zeros(3, place=place).__arrow_c_array__()
    assert place.figures["current_count"] == 1
    del pair
    assert place.figures["current_count"] == 0


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 65, 1000])
def test_booleans_are_bits(count):
    plain = numpy.arange(count) % 3 == 0
    array = umem.asarray(plain)
    assert column_of(array).to_pylist() == plain.tolist()
    assert column_of(array[::-1]).to_pylist() == plain[::-1].tolist()
    for offset in range(0, min(count, 18)):
        column = pyarrow.array(plain)[offset:]
        assert umem.from_arrow(column).tolist() == plain[offset:].tolist()


@pytest.mark.parametrize("dtype", ["M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[ms]", "m8[us]", "m8[ns]", "S5"])
def test_types_of_numpy_pass_through(dtype):
    plain = numpy.array([3, 4, 5]).astype(dtype)
    array = umem.asarray(plain, copy=True)
    made = column_of(array)
    assert made.buffers()[1].address == array.address
    if dtype == "S5":
        assert made.type == pyarrow.binary(5)
    else:
        assert made.type == pyarrow.array(plain).type and made.equals(pyarrow.array(plain))
    back = umem.from_arrow(made)
    assert back.dtype == plain.dtype and back.address == array.address and back.numpy().tolist() == plain.tolist()


def test_what_arrow_does_not_have_is_refused():
    for dtype in ("complex128", "M8[D]", ">i4", "U3"):
        with pytest.raises(umem.TypeError, match="Arrow has no elements"):
            umem.zeros(3, dtype).__arrow_c_array__()
    with pytest.raises(umem.ValueError, match="one dimension"):
        umem.zeros((3, 4)).__arrow_c_array__()
    with pytest.raises(umem.ValueError, match="one dimension"):
        umem.zeros(()).__arrow_c_array__()
    with pytest.raises(TypeError, match="only stored|no elements"):
        umem.zeros(3, [("a", "i4"), ("b", "f8")]).__arrow_c_array__()
    array = umem.zeros(3)
    array.release()
    with pytest.raises(umem.ValueError):
        array.__arrow_c_array__()


def test_arrays_with_gaps_are_copied():
    array = umem.arange(10)
    made = column_of(array[::-2])
    assert made.to_pylist() == [9, 7, 5, 3, 1] and made.buffers()[1].address != array.address


def test_a_record_batch_of_arrays():
    batch = pyarrow.record_batch({"a": umem.arange(3), "b": umem.asarray([0.5, 1.5, 2.5])})
    assert batch.to_pydict() == {"a": [0, 1, 2], "b": [0.5, 1.5, 2.5]}


# ---- from Arrow ----

@pytest.mark.parametrize("dtype", NUMBERS)
def test_umem_uses_the_memory_of_arrow(dtype):
    column = pyarrow.array(numpy.arange(10).astype(dtype))
    array = umem.from_arrow(column)
    assert array.dtype == dtype and array.tolist() == column.to_pylist() and array.read_only
    assert array.address == column.buffers()[1].address and array.place is umem.host()
    part = umem.from_arrow(column[3:7])
    assert part.address == array[3:].address and part.tolist() == column[3:7].to_pylist()
    with pytest.raises(umem.NotSupportedError):
        array.fill(0)
    with pytest.raises(umem.NotSupportedError):
        array.read_only = False
        array.fill(0)
    expected = column.to_pylist()
    del column
    gc.collect()
    assert array.tolist() == expected and umem.from_arrow(pyarrow.array([], dtype)).shape == (0,)


def test_a_column_is_returned_when_no_array_uses_it():
    before = pyarrow.total_allocated_bytes()
    array = umem.from_arrow(pyarrow.array(range(100000)))
    view = array[5:]
    assert pyarrow.total_allocated_bytes() > before
    del array
    assert view[0].item() == 5
    del view
    gc.collect()
    assert pyarrow.total_allocated_bytes() == before


@pytest.mark.parametrize(("kind", "dtype"), [
    (pyarrow.date32(), "int32"), (pyarrow.date64(), "M8[ms]"), (pyarrow.time32("s"), "int32"), (pyarrow.time64("us"), "int64"),
    (pyarrow.timestamp("us", "UTC"), "M8[us]"), (pyarrow.duration("ns"), "m8[ns]"), (pyarrow.binary(4), "S4")])
def test_other_types_of_fixed_width(kind, dtype):
    values = [b"abcd", b"efgh"] if dtype == "S4" else [86400000, 2 * 86400000]
    column = pyarrow.array(values, "int64").cast(pyarrow.int32() if dtype == "int32" else pyarrow.int64()).view(kind) \
        if dtype != "S4" else pyarrow.array(values, kind)
    array = umem.from_arrow(column)
    assert array.dtype == numpy.dtype(dtype) and array.address == column.buffers()[1].address
    raw = array.numpy().tolist() if dtype == "S4" else array.numpy().view("int32" if dtype == "int32" else "int64").tolist()
    assert raw == values


def test_missing_elements():
    column = pyarrow.array([1, None, 3, None, 5, 6, 7, 8, 9, None])
    with pytest.raises(umem.NotSupportedError, match="fill_null"):
        umem.from_arrow(column)
    for first in range(10):
        part = column[first:]
        array, there = umem.from_arrow(part, validity=True)
        expected = part.is_valid().to_pylist()
        assert there.tolist() == expected and there.dtype == "bool"
        assert [x if ok else None for x, ok in zip(array.tolist(), expected)] == part.to_pylist()
    array, there = umem.from_arrow(column[4:9], validity=True)
    assert there is None and array.tolist() == [5, 6, 7, 8, 9] and umem.from_arrow(column[4:9]).tolist() == [5, 6, 7, 8, 9]
    flags, there = umem.from_arrow(pyarrow.array([True, None, False]), validity=True)
    assert there.tolist() == [True, False, True] and flags[0].item() is True


def test_chunks_are_joined():
    chunked = pyarrow.chunked_array([[1, 2], [], [3], [4, 5, 6]])
    array = umem.from_arrow(chunked)
    assert array.tolist() == [1, 2, 3, 4, 5, 6] and array.dtype == "int64"
    one = pyarrow.chunked_array([[1, 2, 3]])
    assert umem.from_arrow(one).address == one.chunk(0).buffers()[1].address
    missing = pyarrow.chunked_array([[1, 2], [3, None]])
    with pytest.raises(umem.NotSupportedError, match="fill_null"):
        umem.from_arrow(missing)
    array, there = umem.from_arrow(missing, validity=True)
    assert there.tolist() == [True, True, True, False] and array[:3].tolist() == [1, 2, 3]
    dates = pyarrow.chunked_array([[1, 2], [3]], pyarrow.timestamp("s"))
    assert umem.from_arrow(dates).dtype == "M8[s]"
    with pytest.raises(umem.ValueError, match="without a column"):
        umem.from_arrow(pyarrow.chunked_array([], "int32"))


@pytest.mark.parametrize("name", sorted(PLACES))
def test_columns_of_a_table_go_to_every_place(name, tmp_path):
    if name == "fixed":
        pytest.skip("has blocks of one size")
    place = PLACES[name](tmp_path)
    table = pyarrow.table({"x": pyarrow.chunked_array([[1.5, 2.5], [3.5]]), "y": [1, None, 3], "z": [True, False, None]})
    x = umem.from_arrow(table["x"], place)
    y, there = umem.from_arrow(table["y"], place, validity=True)
    z, flags = umem.from_arrow(table["z"], place, validity=True)
    assert x.place == y.place == there.place == z.place == flags.place == place
    assert x.numpy(copy=True).tolist() == [1.5, 2.5, 3.5] and there.numpy(copy=True).tolist() == [1, 0, 1]
    assert y.numpy(copy=True)[::2].tolist() == [1, 3] and flags.numpy(copy=True).tolist() == [1, 1, 0]
    assert z.numpy(copy=True).tolist()[:2] == [True, False]


def test_what_is_no_column_of_fixed_width_is_refused():
    for values, kind in ((["a"], pyarrow.string()), ([[1]], pyarrow.list_(pyarrow.int32())), ([1], pyarrow.decimal128(10, 2)),
                         ([None], pyarrow.null())):
        with pytest.raises(umem.TypeError, match="fixed width"):
            umem.from_arrow(pyarrow.array(values, kind))
    with pytest.raises(umem.NotSupportedError, match="dictionary_decode"):
        umem.from_arrow(pyarrow.array(["a", "b"]).dictionary_encode())
    with pytest.raises(umem.TypeError, match="several columns"):
        umem.from_arrow(pyarrow.table({"x": [1]}))
    with pytest.raises(umem.TypeError, match="several columns"):
        umem.from_arrow(pyarrow.record_batch({"x": [1]}))
    for value in (3, [1, 2], numpy.zeros(3), pyarrow):
        with pytest.raises(umem.TypeError, match="no column of Arrow"):
            umem.from_arrow(value)


def test_asarray_takes_what_has_only_columns():
    class Column:
        def __arrow_c_array__(self, requested_schema=None):
            return pyarrow.array([1, 2, 3]).__arrow_c_array__()

    array = umem.asarray(Column())
    assert array.tolist() == [1, 2, 3] and array.read_only
    umem.copy(umem.zeros(3, "int64"), Column())


def test_umem_takes_its_own_columns():
    array = umem.arange(5)
    again = umem.from_arrow(array)
    assert again.address == array.address and again.read_only


@pytest.mark.parametrize("count", [1000])
def test_nothing_is_left_behind(count):
    array, column = umem.arange(100), pyarrow.array(range(100))
    before = None
    for i in range(count):
        column_of(array)
        umem.from_arrow(column)
        umem.from_arrow(pyarrow.chunked_array([[1], [2, None]]), validity=True)
        array.__arrow_c_array__()
        if i == 10:
            gc.collect()
            before = pyarrow.total_allocated_bytes()
    gc.collect()
    assert pyarrow.total_allocated_bytes() == before
    array.release()


# ---- structs that are wrong ----

class Schema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class Column(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.c_void_p),
                ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("private_data", ctypes.c_void_p)]


def structs(capsules):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return (Schema.from_address(get(capsules[0], b"arrow_schema")), Column.from_address(get(capsules[1], b"arrow_array")))


@pytest.mark.parametrize(("which", "name", "value", "error", "text"), [
    (0, "format", None, umem.ValueError, "format"), (0, "format", b"u", umem.TypeError, '"u"'),
    (0, "format", b"w:0", umem.TypeError, "w:0"), (0, "format", b"w:65536", umem.TypeError, "w:65536"),
    (0, "format", b"w:99999999999999999999", umem.TypeError, "w:9"), (0, "format", b"ts", umem.TypeError, '"ts"'),
    (0, "format", b"tsx:", umem.TypeError, "tsx"), (0, "format", b"", umem.TypeError, '""'),
    (0, "dictionary", 8, umem.NotSupportedError, "dictionary"), (1, "dictionary", 8, umem.NotSupportedError, "dictionary"),
    (1, "length", -1, umem.ValueError, "range"), (1, "offset", -1, umem.ValueError, "range"),
    (1, "offset", 2**63 - 1, umem.ValueError, "range"), (1, "offset", 2**61, umem.ValueError, "address space"),
    (1, "length", 2**62 - 1, umem.ValueError, "address space"),
    (1, "null_count", -2, umem.ValueError, "range"), (1, "null_count", 4, umem.ValueError, "more are missing"),
    (1, "null_count", 1, umem.ValueError, "no bits"), (1, "n_buffers", 1, umem.ValueError, "two buffers"),
    (1, "n_buffers", 3, umem.ValueError, "two buffers"), (1, "n_children", 1, umem.ValueError, "two buffers"),
    (1, "buffers", None, umem.ValueError, "two buffers")])
def test_structs_that_are_wrong_are_refused_and_left(which, name, value, error, text):
    before = pyarrow.total_allocated_bytes()
    capsules = pyarrow.array([1, 2, 3]).__arrow_c_array__()
    owner = type("Wrong", (), {"__arrow_c_array__": lambda self, requested_schema=None: capsules})()
    wrong = structs(capsules)[which]
    kept = getattr(wrong, name)
    setattr(wrong, name, value)
    with pytest.raises(error, match=text):
        umem.from_arrow(owner)
    setattr(wrong, name, kept)
    assert umem.from_arrow(owner).tolist() == [1, 2, 3]  # it is still the caller's
    with pytest.raises(umem.ValueError, match="released"):
        umem.from_arrow(owner)  # it was moved
    del capsules, owner, wrong
    gc.collect()
    assert pyarrow.total_allocated_bytes() == before


def test_capsules_that_are_none():
    for capsules in ((1, 2), (umem.Array.__dlpack_c_exchange_api__,) * 2):
        owner = type("Wrong", (), {"__arrow_c_array__": lambda self, requested_schema=None, found=capsules: found})()
        with pytest.raises(TypeError, match="capsule"):
            umem.from_arrow(owner)


def test_errors_of_a_stream_arrive():
    def columns():
        yield pyarrow.record_batch({"x": [1]})
        raise LookupError("inside")

    schema = pyarrow.schema([("x", pyarrow.int64())])
    with pytest.raises(umem.RuntimeError, match="inside"):
        umem.from_arrow(pyarrow.RecordBatchReader.from_batches(schema, columns()))


# ---- devices ----

def test_the_device_interface_in_ram():
    array = umem.arange(5)
    assert [str(c).split('"')[1] for c in array.__arrow_c_device_array__()] == ["arrow_schema", "arrow_device_array"]
    made = pyarrow.array(type("C", (), {"__arrow_c_device_array__": lambda s, requested_schema=None, **options:
                                        array.__arrow_c_device_array__(requested_schema, **options)})())
    assert made.to_pylist() == array.tolist() and made.buffers()[1].address == array.address


@pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor the double of its driver")
@pytest.mark.parametrize("name", sorted(set(GPU_PLACES) - {"cuda-host", "cuda-managed", "cuda-prefetch"}))
def test_columns_of_gpus(name, tmp_path):
    gpu = GPU_PLACES[name](tmp_path)
    plain = numpy.arange(20)
    array = umem.asarray(plain, place=gpu)
    with pytest.raises(umem.NotSupportedError, match="device"):
        array.__arrow_c_array__()
    back = umem.from_arrow(array)
    assert back.address == array.address and back.place.kind == "cuda" and back.numpy(copy=True).tolist() == plain.tolist()
    with pytest.raises(umem.NotSupportedError):
        array.release()
    del back
    flags = umem.asarray(plain % 3 == 0, place=gpu)
    found = umem.from_arrow(flags)
    assert found.place.kind == "cuda" and found.numpy(copy=True).tolist() == (plain % 3 == 0).tolist()
    del found
    array.release()
