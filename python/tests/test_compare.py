"""Comparisons of arrays, beside those of NumPy."""
import copy
import dataclasses
import pickle
import weakref
from unittest import mock

import hypothesis.strategies as st
import pytest
from conftest import TYPES
from hypothesis import HealthCheck, given, settings

import umem

numpy = pytest.importorskip("numpy")
some = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True,
                database=None)

OTHER = type("Other", (), {"__repr__": lambda self: "another object"})()


@pytest.mark.parametrize("other", [3, "text", [1, 2], OTHER, numpy.arange(3), umem.arange(3)], ids=repr)
def test_operators_do_not_compare_in_silence(other):
    array = umem.arange(3)
    for compare in (lambda: array == other, lambda: array != other, lambda: other in array, lambda: array in [other],
                    lambda: [umem.arange(3), other].index(array)):
        with pytest.raises(umem.TypeError, match=r"umem\.all_equal, umem\.all_close, or .*numpy\.asarray"):
            compare() if not isinstance(other, numpy.ndarray) else array == other


@pytest.mark.parametrize("count", [0, 3])
def test_in_names_itself(count):
    with pytest.raises(umem.TypeError, match="in does not look at the elements"):
        3 in umem.zeros(count)


def test_numpy_compares_elements():
    array = umem.arange(3)
    assert (numpy.asarray(array) == [0, 5, 2]).tolist() == [True, False, True]
    assert (numpy.arange(3) == array).all() and 2 in numpy.asarray(array)


def test_an_array_without_dimensions_equals_as_its_number(place):
    array = umem.asarray([3, 5], "int32", place)
    assert array[0] == 3 and not array[0] != 3 and array[1] == 5.0 and array[1] != array[0] and array[1] == array[1][...]
    assert not array[0] == None and array[0] != None and (array[0] == numpy.arange(4)).tolist() == [False] * 3 + [True]  # noqa: E711


def test_an_array_is_itself():
    one, other = umem.arange(3), umem.arange(3)
    assert one == one and not one != one and one in [one, other] and [one, other].index(one) == 0
    assert hash(one) != hash(other) and len({one, other, one}) == 2 and {one: 1, other: 2}[other] == 2
    kept, keyed = weakref.WeakSet([one, other]), weakref.WeakKeyDictionary({one: 1, other: 2})
    assert one in kept and keyed[other] == 2 and len(kept) == 2
    del other
    assert len(kept) == len(keyed) == 1
    assert umem.all_equal(pickle.loads(pickle.dumps([one, one]))[1], one) and umem.all_equal(copy.deepcopy(one), one)
    assert not one == None and one != None and one not in [None]  # noqa: E711
    assert len(list(iter(iter([one, umem.zeros(2), None]).__next__, None))) == 2  # as queue.get with a sentinel
    function = mock.Mock()
    function(one)
    function.assert_called_once_with(one)
    function.assert_called_once_with(mock.ANY)

    @dataclasses.dataclass
    class Holder:
        array: umem.Array

    assert Holder(one) == Holder(one)
    with pytest.raises(umem.TypeError, match="all_equal"):
        assert Holder(one) == Holder(umem.arange(3))


def test_only_one_element_is_true_or_false():
    assert umem.full((), 2) and not umem.zeros((1, 1))
    for array in (umem.zeros(0), umem.zeros(2)):
        with pytest.raises(umem.ValueError, match=r"neither true nor false: use umem\.all_equal"):
            bool(array)


def test_elements_of_every_place_are_compared(place):
    expected = numpy.arange(12.0).reshape(3, 4)
    array = umem.asarray(expected, place=place)
    again = array.copy()
    assert umem.all_equal(array, expected) and umem.all_equal(expected.T, array.T) and umem.all_close(array, again)
    assert umem.all_equal(array[::2, ::-1], again[::2, ::-1])
    again[2, 3] = 11.00001
    assert not umem.all_equal(array, again) and umem.all_close(array, again)
    again[2, 3] = 12
    assert not umem.all_close(array, again) and umem.all_close(array, again, atol=1) and umem.all_close(array, again, 0.1)
    assert umem.all_equal(umem.zeros((0, 3), place=place), umem.zeros((0, 3), "int8"))


def test_differences_in_any_piece_are_found():
    for dtype in ("int8", "float64", "complex64"):
        one, other = umem.zeros(70000, dtype), umem.zeros((7, 10000), dtype).reshape(70000)
        assert umem.all_equal(one, other) and umem.all_equal(one, 0)
        for at in (0, 32767, 32768, 65536, 69999):
            other[at] = 1
            assert not umem.all_equal(one, other) and not umem.all_close(one, other) and not umem.all_equal(other, 0)
            other[at] = 0


VALUES = {"b": st.booleans(), "i": st.integers(-2, 2), "u": st.integers(0, 2),
          "f": st.sampled_from([0, 1, 1.00001, 1.1, float("nan"), float("inf"), -float("inf"), -0.0]),
          "c": st.sampled_from([0, 1, 1 + 1j, 1 + 1.00001j, complex("nan"), complex("inf"), complex(0, float("nan"))])}


@st.composite
def pairs(draw):
    shape = tuple(draw(st.lists(st.integers(0, 2), max_size=2)))
    made = []
    for _ in range(2):
        dtype = numpy.dtype(draw(st.sampled_from(TYPES)))
        array = numpy.zeros(shape, dtype)
        array.ravel()[:] = [draw(VALUES[dtype.kind]) for _ in range(array.size)]
        made.append(array)
    return made


with numpy.errstate(all="ignore"):  # of complex numbers NumPy 1.26 compares finite ones alone
    KNOWS_INFINITY = not numpy.allclose(numpy.full(1, complex("nan")), numpy.full(1, complex("inf")), 0, 0, True)


@some
@given(pairs(), st.booleans(), st.sampled_from([(0, 0), (1e-5, 1e-8), (0.2, 0), (0, 0.2)]))
def test_comparisons_are_those_of_numpy(arrays, equal_nan, tolerance):
    one, other = arrays
    for first, second in ((umem.asarray(one), umem.asarray(other)), (umem.asarray(one), other), (one, umem.asarray(other))):
        assert umem.all_equal(first, second) == numpy.array_equal(one, other)
        if one.dtype.kind in "fc" and other.dtype.kind in "fc":
            assert umem.all_equal(first, second, equal_nan=True) == numpy.array_equal(one, other, equal_nan=True)
        with numpy.errstate(all="ignore"):
            if one.dtype.kind in "fc" or other.dtype.kind in "fc":
                wide = one.astype("complex128"), other.astype("complex128")
                found = umem.all_close(first, second, *tolerance, equal_nan)
                if KNOWS_INFINITY or all(numpy.isfinite(array).all() for array in wide):
                    assert found == numpy.allclose(*wide, *tolerance, equal_nan)


def test_nan_in_either_part_is_no_number():
    for number in (complex(float("nan"), 0), complex(0, float("nan"))):
        array = umem.full(2, number, "complex128")
        assert not umem.all_equal(array, array) and umem.all_equal(array, array, equal_nan=True)
        assert not umem.all_close(array, array) and umem.all_close(array, array, equal_nan=True)


def test_integers_are_compared_by_value():
    one, other = umem.full(2, 2**64 - 1, "uint64"), umem.full(2, -1, "int64")
    assert not umem.all_equal(one, other) and umem.all_equal(one, 2**64 - 1) and not umem.all_equal(one, -1)
    assert not umem.all_equal(umem.full(1, 2**53), umem.full(1, 2**53 + 1, "int64")[0])
    assert not umem.all_equal(umem.full(1, 2**62, "int64"), 2**62 + 1)


def test_shapes_that_differ_are_not_equal():
    for one, other in (((3,), (4,)), ((3,), (1, 3)), ((), (1,)), ((0, 2), (2, 0)), ((3,), ())):
        assert not umem.all_equal(umem.zeros(one), umem.zeros(other))
        assert not umem.all_close(umem.zeros(one), numpy.zeros(other) if other else umem.zeros(()))


def test_a_number_is_compared_with_every_element():
    array = umem.full((2, 3), 0.1, "float32")
    for number in (0.1, numpy.float32(0.1), numpy.array(0.1, "float32")):
        assert umem.all_equal(array, number) and umem.all_equal(number, array)
    assert not umem.all_equal(array, numpy.float64(0.1)) and umem.all_close(array, numpy.float64(0.1))
    assert umem.all_equal(umem.full(2, 3, "int8"), 3) and not umem.all_equal(umem.full(2, 3, "int8"), 3.5)
    assert umem.all_equal(3, 3.0) and not umem.all_close(3, 4) and umem.all_equal([[1, 2]], umem.asarray([[1, 2]]))
    assert umem.all_equal(umem.full(2, 1.5, "bfloat16"), 1.5)


@pytest.mark.parametrize("arguments", [(None, 1), (1, "text"), (OTHER, OTHER), (1, 1, None), (1, 1, "1"), (1, 1, 1j),
                                       (1, 1, 0, numpy.complex64(1))], ids=repr)
def test_what_cannot_be_compared(arguments):
    with pytest.raises(umem.TypeError):
        umem.all_close(*arguments)
    if len(arguments) == 2:
        with pytest.raises(umem.TypeError):
            umem.all_equal(*arguments)
