"""Types that only NumPy computes with: dates, texts, records, other orders of bytes, long double, and those of ml_dtypes."""
import copy
import pickle

import pytest

import umem

numpy = pytest.importorskip("numpy")
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

ARRAYS = {
    "datetime64[s]": numpy.arange(6).astype("M8[s]"), "datetime64[25D]": numpy.arange(6).astype("M8[25D]"),
    "timedelta64[us]": numpy.arange(6).astype("m8[us]"), "|S3": numpy.array([b"abc", b"d", b"", b"ef", b"g", b"h"]),
    "|S1": numpy.array([b"a", b"d", b"", b"e", b"g", b"h"]), "<U3": numpy.array(["\xe4bc", "d", "", "ef", "g", "h"]),
    ">U2": numpy.array(["\xe4b", "d", "", "ef", "g", "h"]).astype(">U2"), ">f8": numpy.arange(6, dtype=">f8"),
    ">i2": numpy.arange(6, dtype=">i2"), ">c16": numpy.arange(6, dtype=">c16"), "longdouble": numpy.arange(6, dtype="longdouble"),
    "clongdouble": numpy.arange(6, dtype="clongdouble"),
    "record": numpy.array([(i, str(i), [i, i]) for i in range(6)], [("a", "<f4"), ("b", "S3"), ("c", ">i2", (2,))]),
    "aligned": numpy.zeros(6, numpy.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "void": numpy.arange(30, dtype="u1").view("V5"),
}
if ml_dtypes:
    ARRAYS |= {name: numpy.arange(6).astype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}


def same(one, other):
    assert one.dtype == other.dtype and one.shape == other.shape
    has_gaps = other.dtype.names or other.dtype.char in "gG"  # whose bytes mean nothing
    return bool((one == other).all()) if has_gaps else one.tobytes() == other.tobytes()


@pytest.fixture(params=ARRAYS)
def values(request):
    return ARRAYS[request.param].reshape(2, 3).copy()


def check_elements(values, place):
    array = umem.asarray(values, place=place, copy=True)
    assert array.dtype == values.dtype and array.dtype.itemsize == values.itemsize and values.dtype == array.dtype.dtype
    assert same(array.numpy(copy=True), values) and repr(array.tolist()) == repr(values.tolist())
    assert same(array[::-1, 1:].numpy(copy=True), values[::-1, 1:].copy()) and same(array.T.numpy(copy=True), values.T.copy())
    assert repr(array[0, 1].item()) == repr(values[0, 1].item()) and same(array.copy().reshape(-1).numpy(copy=True), values.ravel())
    with array.host() as inside:
        inside[0] = inside[1]
    values[0] = values[1]
    assert same(array.numpy(copy=True), values)
    for target in (array, values):
        target[1, 0] = values[1, 2]
        target[0] = target[1]
    assert same(array.numpy(copy=True), values)
    array[[1, 0]] = values
    assert same(array.numpy(copy=True), values[[1, 0]]) and same(array[[1, 0]].numpy(copy=True), values)
    array.fill(values[0, 0])
    assert same(array.numpy(copy=True), numpy.full_like(values, values[0, 0]))
    assert umem.all_equal(array, array.copy()) and array.view("u1").shape == (2, 3 * values.itemsize)
    assert same(umem.zeros((2, 3), values.dtype, place).numpy(copy=True), numpy.zeros((2, 3), values.dtype))


def test_elements_live_in_every_place(place):
    for values in ARRAYS.values():
        check_elements(values.reshape(2, 3).copy(), place)


def test_arrays_of_numpy_are_shared(values):
    array = umem.asarray(values)
    values[0] = values[1]
    assert same(numpy.asarray(array), values) and numpy.shares_memory(numpy.asarray(array), values)
    values.flags.writeable = False
    assert umem.asarray(values).read_only and not numpy.asarray(umem.asarray(values)).flags.writeable


def test_copies_pickles_and_files_have_the_same_elements(values, tmp_path):
    array = umem.asarray(values)
    for made in (copy.copy(array), copy.deepcopy(array), pickle.loads(pickle.dumps(array)), array.to(umem.File()),
                 array.astype(values.dtype)):
        assert made.dtype == values.dtype and same(numpy.asarray(made), values)
    joined = values if values.dtype.names else numpy.concatenate([values[:1], values[1:]])  # which packs records
    assert same(numpy.asarray(umem.concatenate([array[:1], array[1:]])), joined)
    assert pickle.loads(pickle.dumps(array.dtype)) == array.dtype and umem.dtype(values.dtype) == array.dtype
    umem.save(tmp_path / "a.npy", array)
    assert numpy.array_equal(numpy.load(tmp_path / "a.npy").view(values.dtype), values)
    name = "a.npy" if values.dtype.name == "float8_e5m2" else "b.npy"  # of which NumPy cannot read what it writes
    numpy.save(tmp_path / "b.npy", values)
    for found in (umem.load(tmp_path / name), umem.load(tmp_path / name, umem.host())):
        assert same(numpy.asarray(found).view(values.dtype), values)


@pytest.mark.parametrize("one, other", [(">f8", "f8"), ("f4", ">f8"), ("longdouble", "f4"), ("M8[D]", "M8[s]"), ("M8[D]", "i8"), (">i2", "c16"),
                                        ("f8", "longdouble"), ("i4", "U11"), ("S3", "U3"), ("m8[s]", ">m8[us]")])
def test_conversions_are_those_of_numpy(one, other):
    values = numpy.arange(6).astype(one).reshape(2, 3)
    for place in (umem.host(), umem.File()):
        array = umem.asarray(values, place=place, copy=True)
        assert same(numpy.asarray(array.astype(other)), values.astype(other))
        into = umem.zeros((4, 2, 3), other, place)
        into[...] = array
        assert same(numpy.asarray(into[3]), values.astype(other))


@pytest.mark.skipif(not ml_dtypes, reason="ml_dtypes is not installed")
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_ml_dtypes_go_both_ways(name):
    values = numpy.asarray([0.5, 1.5, -2]).astype(getattr(ml_dtypes, name))
    array = umem.asarray(values)
    assert array.dtype == name and numpy.asarray(array).dtype == values.dtype and same(numpy.asarray(array), values)
    assert array.astype("float32").tolist() == [0.5, 1.5, -2] and array[1].item() == 1.5
    assert umem.asarray([0.5, 1.5, -2]).astype(name).tolist() == [0.5, 1.5, -2]
    assert umem.asarray(values, place=umem.File(), copy=True).max() == 1.5


def test_values_of_python_become_elements():
    days = umem.zeros(3, "M8[D]")
    days[1], days[2] = "2021-01-02", numpy.datetime64("2022-03-04")
    assert [str(day) for day in days.tolist()] == ["1970-01-01", "2021-01-02", "2022-03-04"]
    assert umem.asarray(["a", "bc"], "U2").tolist() == ["a", "bc"] and umem.full(2, 7, ">i4").tolist() == [7, 7]
    assert umem.full(2, numpy.datetime64("2022-03-04")).dtype == "M8[D]"
    rows = umem.zeros(2, [("a", "f4"), ("b", "i4")])
    rows[1] = (1.5, 3)
    assert rows.tolist() == [(0, 0), (1.5, 3)] and rows.dtype == [("a", "f4"), ("b", "i4")]


def test_what_needs_numbers_names_the_type():
    days = umem.zeros(3, "M8[D]")
    for use in (days.random_uniform, days.random_normal, lambda: umem.all_close(days, days), lambda: numpy.from_dlpack(days),
                lambda: memoryview(days)):
        with pytest.raises((umem.TypeError, BufferError), match=r"datetime64\[D\]"):
            use()
    with pytest.raises(TypeError):
        days.sum()


def test_references_to_objects_are_refused():
    for values in (numpy.array([1, None]), numpy.zeros(2, [("a", "O")])):
        for make in (lambda: umem.asarray(values), lambda: umem.zeros(3, values.dtype)):
            with pytest.raises(umem.TypeError, match="references to objects"):
                make()


# ---- casting ----

INTEGERS = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64"]


def test_integers_wrap_as_in_numpy(place):
    wide = numpy.array([0, 1, 127, 128, 255, 256, -1, -128, 2**31, 2**63 - 1, -2**63], "int64")
    for src in INTEGERS:
        values = wide.astype(src)
        array = umem.asarray(values, place=place, copy=True)
        for dst in INTEGERS:
            assert same(array.astype(dst).numpy(copy=True), values.astype(dst))
            for value in (array, values):
                into = umem.zeros(len(values), dst, place)
                into[...] = value
                assert into.tolist() == values.astype(dst).tolist()


def test_saturation_is_an_option():
    array = umem.asarray([300.5, -1, float("inf"), float("nan")])
    assert array.astype("uint8", saturate=True).tolist() == [255, 0, 255, 0]
    assert array.astype("uint8").tolist() == [44, 255, 0, 0]


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("one, other", [("f8", "f4"), ("f4", "f8"), ("f8", "i4"), ("i4", "i8"), ("i8", "u1"), ("f4", "f4"), ("f8", ">f8"), ("M8[D]", "M8[s]")])
def test_casting_is_that_of_numpy(one, other, casting):
    array = umem.zeros(3, one)
    if numpy.can_cast(one, other, casting):
        assert array.astype(other, casting=casting).dtype == other
    else:
        with pytest.raises(umem.TypeError, match=casting):
            array.astype(other, casting=casting)


@pytest.mark.parametrize("dtype", "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split())
def test_elements_have_the_classes_of_numpy(dtype):
    """NumPy's int64 and longlong have equal types, but other classes."""
    array, expected = umem.zeros(3, dtype), numpy.zeros(3, dtype)
    for made in (array.numpy(), numpy.asarray(array), numpy.from_dlpack(array), array.numpy(copy=True)):
        assert made.dtype.char == expected.dtype.char and type(made[0]) is type(expected[0])
    assert type(array.sum()) is type(expected.sum())
