"""Numbers of Python, NumPy and others as elements, beside NumPy: none loses a part of its value without a word."""
import decimal
import fractions
import math

import hypothesis.strategies as st
import pytest
from conftest import TYPES
from hypothesis import HealthCheck, given, settings

import umem

numpy = pytest.importorskip("numpy")
some = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True,
                database=None)

NUMBERS = st.one_of(
    st.booleans(), st.integers(-2**66, 2**66), st.integers(-300, 300), st.floats(width=32), st.floats(),
    st.complex_numbers(allow_nan=False, max_magnitude=1e6),
)
HOLDERS = ["python", *TYPES]


def held(number, holder, without_dimensions):
    """The number as a value of NumPy, if its type can hold it; else None."""
    if holder == "python":
        return number
    with numpy.errstate(all="ignore"):
        try:
            made = numpy.asarray(number).astype(holder) if not isinstance(number, complex) or holder[0] == "c" else None
        except (OverflowError, TypeError):
            return None
    if made is None or made.dtype == object:
        return None
    return made if without_dimensions else made[()]


def expected(value, dtype):
    """What an element of this type has of the value, or the exceptions that stand for its loss."""
    number = value.item() if hasattr(value, "item") else value
    kind = numpy.dtype(dtype).kind
    if isinstance(number, complex) and kind != "c":
        return TypeError
    if kind in "iu":
        if isinstance(number, float) and not math.isfinite(number):
            return ValueError if math.isnan(number) else OverflowError
        limits = numpy.iinfo(dtype)
        return int(number) if limits.min <= int(number) <= limits.max else OverflowError
    with numpy.errstate(all="ignore"):
        return numpy.asarray(number).astype(dtype).item() if abs(number) < 2**63 or kind == "b" else \
            numpy.asarray(complex(number) if kind == "c" else float(number)).astype(dtype).item()


def check_equal(found, wanted):
    assert type(found) is type(wanted)
    assert found == wanted or (found != found and wanted != wanted)


WAYS = {
    "item": lambda value, dtype: set_item(value, dtype, 1),
    "slice": lambda value, dtype: set_item(value, dtype, slice(1, 2)),
    "fill": lambda value, dtype: filled(value, dtype),
    "full": lambda value, dtype: umem.full(2, value, dtype),
    "list": lambda value, dtype: umem.asarray([value, value], dtype),
    "nested": lambda value, dtype: umem.asarray([[value], [value]], dtype).reshape(2),
    "number": lambda value, dtype: umem.asarray([value, umem.asarray(value, dtype)], dtype),
    "from a list": lambda value, dtype: from_list(value, dtype),
}


def set_item(value, dtype, key):
    array = umem.zeros(2, dtype)
    array[key] = value
    return array


def filled(value, dtype):
    array = umem.zeros(2, dtype)
    array.fill(value)
    return array


def from_list(value, dtype):
    array = umem.zeros(2, dtype)
    array[...] = [0, value]
    return array


@some
@given(NUMBERS, st.sampled_from(HOLDERS), st.booleans(), st.sampled_from(TYPES), st.sampled_from([*WAYS]))
def test_an_element_has_the_value_or_an_exception_says_why_not(number, holder, without_dimensions, dtype, way):
    value = held(number, holder, without_dimensions)
    if value is None:
        return
    wanted = expected(value, dtype)
    if isinstance(wanted, type):
        with pytest.raises(wanted):
            WAYS[way](value, dtype)
    else:
        check_equal(WAYS[way](value, dtype)[1].item(), wanted)


@some
@given(st.lists(st.tuples(NUMBERS, st.sampled_from(HOLDERS), st.booleans()), min_size=1, max_size=4))
def test_mixed_lists_keep_every_value(parts):
    values = [held(*part) for part in parts]
    numbers = [value.item() if hasattr(value, "item") else value for value in values if value is not None]
    values = [value for value in values if value is not None]
    if any(not -2**63 <= number < 2**63 for number in numbers if isinstance(number, int)):
        return  # the next test
    found = umem.asarray(values)
    wanted = numpy.asarray(numbers or [], dtype=None if numbers else "float64")
    assert found.dtype == wanted.dtype
    for one, other in zip(found.tolist(), wanted.tolist()):
        check_equal(one, other)


def test_numbers_that_no_element_holds():
    for value in (2**64, -2**63 - 1, numpy.float64("inf")):
        with pytest.raises(OverflowError):
            umem.zeros(1, "int64")[0] = value
        with pytest.raises(OverflowError):
            umem.full(1, value, "uint64")
    assert umem.asarray([2**63, 1]).dtype == "uint64" and umem.full(1, 2**64 - 1, "uint64").tolist() == [2**64 - 1]
    with pytest.raises(OverflowError, match="inf does not fit into elements of int8"):
        umem.zeros(1, "int8")[0] = math.inf
    with pytest.raises(OverflowError):
        umem.zeros(1)[0] = 10**400
    assert umem.full(1, 10**400, "bool").tolist() == [True]


@pytest.mark.parametrize("value", [numpy.complex64(1 + 2j), numpy.array(1 + 2j, "complex64"), numpy.clongdouble(1 + 2j)])
def test_imaginary_parts_are_never_lost(value):
    assert umem.full(2, value).tolist() == [1 + 2j] * 2 == umem.asarray([value, 0]).tolist()[:1] * 2
    array = umem.zeros(2, "complex64")
    array[0] = value
    array[1:] = [value]
    assert array.tolist() == [1 + 2j] * 2
    for dtype in ("float64", "int8", "float16", "bool", "bfloat16"):
        for write in WAYS.values():
            with pytest.raises(umem.TypeError, match="complex|imaginary|conver"):
                write(value, dtype)
    with pytest.raises(umem.TypeError, match="real"):
        umem.arange(value)


@pytest.mark.parametrize("dtype", TYPES)
def test_values_of_numpy_keep_their_type(dtype):
    scalar = numpy.ones((), dtype)[()]
    for value in (scalar, numpy.ones((), dtype)):
        made = umem.asarray(value)
        assert made.dtype == dtype and made.shape == () and made.item() == 1
    assert umem.asarray(scalar, "complex128").item() == 1


def test_numbers_of_other_classes():
    class Index:
        def __index__(self):
            return 3

    class Float:
        def __float__(self):
            return 2.5

    class Complex:
        def __complex__(self):
            return 1 + 2j

    class Both(Complex, Float):
        pass

    array = umem.zeros(5, "complex64")
    array[:] = [Index(), Float(), Complex(), Both(), fractions.Fraction(1, 4)]
    assert array.tolist() == [3, 2.5, 1 + 2j, 1 + 2j, 0.25]
    array = umem.zeros(3)
    array[:] = [Index(), Float(), decimal.Decimal("0.5")]
    assert array.tolist() == [3, 2.5, 0.5]
    for value in (Complex(), Both()):
        with pytest.raises(umem.TypeError, match="complex"):
            array[0] = value
    assert umem.asarray([Index(), 2]).dtype == "int64" and umem.asarray(Float()).item() == 2.5


def test_values_of_types_that_numpy_lacks():
    types = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        scalar = numpy.asarray(1.5).astype(getattr(types, name))[()]
        for value in (scalar, numpy.asarray(scalar)):
            assert umem.full(2, value, "float32").tolist() == [1.5, 1.5]
            assert umem.asarray([value]).tolist() == [1.5]
    assert umem.asarray(types.bfloat16(1.5)).dtype == "bfloat16" and umem.full(1, types.bfloat16(1.5), "bfloat16").tolist() == [1.5]


@pytest.mark.parametrize("value", [
    "3", b"3", None, {}, [], int, numpy.float64, numpy.str_("3"), numpy.bytes_(b"3"), numpy.datetime64("2020-01-01"),
    numpy.timedelta64(3, "D"), numpy.zeros((), [("a", "f4")])[()], numpy.array("3"), numpy.array(3, object),
    numpy.array("2020", "datetime64[D]")], ids=repr)
def test_what_is_no_number(value):
    array = umem.zeros(2)
    for write in (array.fill, lambda value: umem.full(2, value, "float64"), lambda value: umem.asarray([1, value])):
        with pytest.raises((umem.TypeError, umem.ValueError)):
            write(value)
    if type(value) is not list and not isinstance(value, bytes):  # which can be arrays
        with pytest.raises(umem.TypeError):
            array[0] = value
    assert array.tolist() == [0, 0]


def test_lists_without_an_end():
    endless = []
    endless.append(endless)
    deep = 1
    for _ in range(5000):
        deep = [deep]
    for value in (endless, deep):
        with pytest.raises(umem.ValueError, match="dimensions"):
            umem.asarray(value)


# ---- one element ----

KEYS = [(1, 2), (-1, -3), (0, 0), (3, 0), (0, -4), (2 ** 70, 0), (True, 1), (1.5, 1), (1,), 1,
        (1, 2, 3), (numpy.int64(1), 2)]
NUMBERS = [1, 1.5, -1, 300, 2 ** 63, -2 ** 70, math.nan, math.inf, 1e300, 1e-300, True, 2 + 1j, "3", None]
VIEWS = [lambda a: a[::-1, ::2], lambda a: a.T, lambda a: a[1], lambda a: a[0, 0, ...], lambda a: a[:0]]


def set_one(array, key, value):
    """The elements afterwards, or the exception."""
    try:
        array[key] = value
    except Exception as error:
        return type(error), str(error)
    return array.numpy(copy=True).tobytes()


@pytest.mark.parametrize("dtype", "bool int8 uint8 int16 uint32 int64 uint64 float16 float32 float64 "
                                  "complex64 complex128 >i4 M8[s]".split())
def test_an_element_of_ram_is_set_as_one_of_a_file(dtype, tmp_path):
    """In RAM without a view of it, elsewhere with one."""
    with umem.File(tmp_path / "a", "w+") as place:
        for key in KEYS:
            for value in NUMBERS if key == (1, 2) else (1,):
                ours, theirs = umem.zeros((3, 3), dtype), umem.zeros((3, 3), dtype, place)
                assert set_one(ours, key, value) == set_one(theirs, key, value), (key, value)
        if dtype == "M8[s]":
            return
        for view in VIEWS:
            ours, theirs = view(umem.zeros((3, 3), dtype)), view(numpy.zeros((3, 3), dtype))
            for key in (0, -1, (1, 1), (-1, 0), ()):
                try:
                    theirs[key] = 1
                except IndexError:
                    with pytest.raises(IndexError):
                        ours[key] = 1
                else:
                    ours[key] = 1
            assert ours.tolist() == theirs.tolist()


def test_no_element_is_set_where_none_may_be_written():
    array = umem.zeros((2, 2))
    array.read_only = True
    with pytest.raises(umem.NotSupportedError, match="read-only"):
        array[1, 1] = 3
    array.read_only = False
    with array.lock(), pytest.raises(umem.RuntimeError, match="locked"):
        array[1, 1] = 3
    with pytest.raises(umem.TypeError, match="deleted"):
        del array[1, 1]
    assert array.tolist() == [[0, 0], [0, 0]]
    array.release()
    with pytest.raises(umem.ValueError, match="released"):
        array[1, 1] = 3


@pytest.mark.parametrize("value", [range(5), range(7, -4, -3), range(0), range(1 << 62, (1 << 62) + 2)])
def test_a_range_is_an_array(value):
    assert umem.asarray(value).tolist() == list(value)
    assert umem.asarray(value, "float32").dtype == "float32"
    array = umem.zeros(len(value), "int64")
    array[:] = value
    assert array.tolist() == list(value)


def test_arange_stays_in_the_range_of_integers():
    for arguments, dtype in (((129,), "i1"), ((-129, 0), "i1"), ((-1, 3), "u1"), ((0, 1e3, 0.5), "u1"), ((0, -300, -100), "i1")):
        with pytest.raises(OverflowError, match="does not fit into elements of"):
            umem.arange(*arguments, dtype=dtype)
    for arguments, dtype in (((128,), "u1"), ((-128, 128), "i1"), ((127, -130, -255), "i1"), ((0, -7), "u1"), ((0, 0.9), "u1")):
        assert umem.arange(*arguments, dtype=dtype).tolist() == list(range(*map(int, arguments))) or arguments[-1] == 0.9


def test_array_copies_what_asarray_shares():
    numbers = numpy.arange(3.0)
    copied, shared = umem.array(numbers), umem.asarray(numbers)
    numbers[0] = 5
    assert copied.tolist() == [0, 1, 2] and shared.tolist() == [5, 1, 2]
    assert umem.array(copied) is not copied and umem.array(copied, copy=None) is copied
    made = umem.array([1, 2], "float32", "host:")
    assert made.dtype == "float32" and made.tolist() == [1, 2]
    with pytest.raises(umem.ValueError, match="copy is False"):
        umem.array([1], copy=False)
