"""Indices that are masks or lists of integers, on every place, beside NumPy."""
import array

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import umem

numpy = pytest.importorskip("numpy")
some = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True,
                database=None)
few = settings(some, max_examples=12)


def numbers(shape, dtype="int64"):
    return numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype)


@st.composite
def shape_and_key(draw):
    """A key with at least one mask or list; most of them fit."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    lists = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    parts, dim = [], 0
    while dim < len(shape) and draw(st.integers(0, 5)):
        kind = draw(st.sampled_from(["list", "list", "mask", "int", "slice", "none", "bool", "rest"]))
        if kind == "list":
            own = draw(st.sampled_from([lists, lists[-1:], (1,) * len(lists), (0,)]))
            low = -shape[dim] - (not draw(st.integers(0, 20)))
            count = int(numpy.prod(own))
            values = draw(st.lists(st.integers(low, max(low, shape[dim] - 1)), min_size=count, max_size=count))
            array = numpy.array(values, draw(st.sampled_from(["i8", "i4", "i2"]))).reshape(own)
            parts.append(array.tolist() if array.size and draw(st.booleans()) else array)
        elif kind == "mask":
            rank = draw(st.integers(1, min(2, len(shape) - dim)))
            count = int(numpy.prod(shape[dim:dim + rank]))
            values = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            parts.append(numpy.array(values, bool).reshape(shape[dim:dim + rank]))
            dim += rank - 1
        elif kind == "int":
            parts.append(draw(st.integers(-shape[dim] - 1, shape[dim])))
        elif kind == "slice":
            parts.append(draw(st.slices(4)))
        elif kind == "rest":
            parts.append(Ellipsis)
            break
        else:
            parts.append(None if kind == "none" else draw(st.booleans()))
            continue
        dim += 1
    if not any(isinstance(part, (bool, list, numpy.ndarray)) for part in parts):
        parts.append(draw(st.booleans()))
    return shape, parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


@pytest.mark.parametrize("key", [range(2), range(2, 0, -1), bytearray(b"\0\2"), array.array("i", [0, 2]), [[]], [[], []], (slice(2), range(2))])
def test_sequences_are_lists_of_integers(key):
    expected, found = numbers((3, 4)), umem.asarray(numbers((3, 4)), copy=True)
    assert found[key].tolist() == expected[key].tolist()
    expected[key] = found[key] = 7
    assert found.tolist() == expected.tolist()


def result(function):
    try:
        return function()
    except IndexError:
        return IndexError


def is_refused(expected, found):
    """Whether the key names no elements for either. For some empty results NumPy does not look at all indices."""
    return found is IndexError and (expected is IndexError or numpy.size(expected) == 0)


def check_read(shape, key, place):
    expected = result(lambda: numbers(shape)[key])
    source = umem.asarray(numbers(shape), place=place, copy=True)
    found = result(lambda: source[key])
    if not is_refused(expected, found):
        assert expected is not IndexError
        assert found.shape == expected.shape and found.tolist() == expected.tolist()
        assert found.dtype == "int64" and found.place is source.copy().place


@some
@given(shape_and_key())
def test_a_key_reads_what_numpy_reads(case):
    check_read(*case, umem.host())


def test_a_key_reads_the_same_on_every_place(place):
    few(given(shape_and_key())(lambda case: check_read(*case, place)))()


def check_write(case, form, place):
    shape, key = case
    expected, array = numbers(shape), umem.asarray(numbers(shape), place=place, copy=True)
    target = result(lambda: expected[key])
    if is_refused(target, result(lambda: array.__setitem__(key, -1))):
        assert array.tolist() == expected.tolist()
        return
    array[...] = expected
    extents = numpy.shape(target)
    value = (-1, -numbers(extents, "int32"), -numbers(extents[1:]), -numbers(extents, "float64"))[form]
    expected[key] = value
    array[key] = value
    assert array.tolist() == expected.tolist()


@some
@given(shape_and_key(), st.integers(0, 3))
def test_a_key_writes_what_numpy_writes(case, form):
    check_write(case, form, umem.host())


def test_a_key_writes_the_same_on_every_place(place):
    few(given(shape_and_key(), st.integers(0, 3))(lambda case, form: check_write(case, form, place)))()


@pytest.mark.parametrize("at", [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[1:, 1:3]])
def test_views_are_indexed_as_arrays_are(place, at):
    expected = numbers((6, 5), "float32")
    array = umem.asarray(expected, place=place, copy=True)
    assert at(array)[[2, 0, -1, 2]].tolist() == at(expected)[[2, 0, -1, 2]].tolist()
    at(array)[:, [1, 0, 1]] = [10, 20, 30]
    at(expected)[:, [1, 0, 1]] = [10, 20, 30]
    assert array.tolist() == expected.tolist()


def test_the_last_of_repeated_indices_remains(place):
    array = umem.zeros((4, 2), "int32", place)
    array[[1, 1, 3, 1]] = [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert array.tolist() == [[0, 0], [7, 8], [0, 0], [5, 6]]


def test_values_may_be_elements_of_the_array_itself(place):
    array = umem.asarray(numbers(6), place=place, copy=True)
    array[[0, 1, 2, 3, 4, 5]] = array[::-1]
    assert array.tolist() == [5, 4, 3, 2, 1, 0]


def test_indices_may_be_arrays_of_umem_on_any_place(place):
    array = umem.asarray(numbers((5, 2)), place=place, copy=True)
    assert array[umem.asarray([3, 0], place=place)].tolist() == [[6, 7], [0, 1]]
    assert array[umem.asarray([True, False, False, False, True], place=place)].tolist() == [[0, 1], [8, 9]]


def test_more_runs_than_one_list_holds():
    expected = numbers(300_000, "int16")
    array, mask = umem.asarray(expected, copy=True), expected % 2 == 0
    assert numpy.array_equal(array[mask], expected[mask])
    array[mask], expected[mask] = 7, 7
    assert numpy.array_equal(array, expected)


@pytest.mark.parametrize("key", [[4], [-5], [0.5, 1.0], [True] * 3, ([0, 1], [0, 1, 2]), ([0], [0], [0]),
                                 ([0], Ellipsis, Ellipsis), numpy.zeros((4, 3), bool)])
def test_wrong_keys_are_index_errors_and_change_nothing(key):
    array = umem.zeros((4, 4))
    with pytest.raises(umem.IndexError):
        array[key]
    with pytest.raises(umem.IndexError):
        array[key] = 1
    assert array.tolist() == [[0] * 4] * 4


def test_read_only_arrays_are_not_written():
    array = umem.zeros(4)
    array.read_only = True
    with pytest.raises(umem.NotSupportedError, match="read-only"):
        array[[0]] = 1
    with pytest.raises(umem.NotSupportedError, match="read-only"):
        umem.zeros(4).take([0], out=array[:1])


def test_take_is_that_of_numpy(place):
    expected = numbers((4, 3))
    array = umem.asarray(expected, place=place, copy=True)
    for axis in (None, 0, 1, -1):
        assert array.take([[2, 0], [1, 1]], axis).tolist() == expected.take([[2, 0], [1, 1]], axis).tolist()
    assert array.T.take([1, 5]).tolist() == expected.T.take([1, 5]).tolist()
    out = umem.zeros((2, 3), "int64")
    assert array.take([3, 1], 0, out) is out and out.tolist() == expected[[3, 1]].tolist()
    with pytest.raises(umem.ValueError, match="out has shape"):
        array.take([3], 0, out)
    with pytest.raises(umem.IndexError, match="axis"):
        array.take([3], 2)


@some
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.lists(st.integers(0, 3), min_size=1, max_size=2),
       st.sampled_from(["i8", "i4", "u1", "u8"]), st.integers(0, 2), st.randoms())
def test_one_array_of_indices_reads_and_writes_as_numpy(shape, extents, dtype, axis, random):
    """Which needs no Python in between."""
    axis %= len(shape)
    low = 0 if dtype[0] == "u" else -shape[axis]
    index = numpy.array([random.randrange(low, shape[axis]) for _ in range(numpy.prod(extents))], dtype).reshape(extents)
    x = numbers(shape, "int16")
    for place in umem.host(), umem.File():
        array = umem.asarray(x, place=place, copy=True)
        out = umem.empty(x.take(index, axis).shape, "int16", place)
        for key in index, index.T.copy().T, umem.asarray(index, place=place, copy=True):
            assert array.take(key, axis).tolist() == x.take(index, axis).tolist()
            assert array.take(key, axis, out) is out and out.tolist() == x.take(index, axis).tolist()
        array.swapaxes(0, axis)[index] = values = -numbers(x.swapaxes(0, axis)[index].shape, "int16") - 1
        expected = x.copy()
        expected.swapaxes(0, axis)[index] = values
        assert array.tolist() == expected.tolist()


def test_an_index_is_checked_where_the_result_is_empty(place):
    array = umem.zeros((0, 3), "int8", place)
    for key in numpy.array([0]), numpy.array([-1]):
        with pytest.raises(umem.IndexError, match="index -?[01] is outside of dimension 0 with 0 elements"):
            array[key]
        with pytest.raises(umem.IndexError):
            array[key] = 1
    with pytest.raises(umem.IndexError, match="index 3 is outside of dimension 1 with 3 elements"):
        array.take(numpy.array([3]), 1)


def test_out_may_not_have_the_elements_themselves(place):
    array = umem.arange(8, dtype="int32", place=place)
    with pytest.raises(umem.ValueError, match="has bytes of"):
        array.take(numpy.array([1, 0]), 0, array[:2])
    assert array.take(numpy.array([1, 0]), 0, array[6:]).tolist() == [1, 0]
    assert array.tolist() == [0, 1, 2, 3, 4, 5, 1, 0]


def test_a_mask_of_rows_has_their_number(place):
    x = numbers((9, 2), "float32")
    array, mask = umem.asarray(x, place=place, copy=True), numpy.arange(9) % 4 == 0
    assert array[mask].tolist() == array[umem.asarray(mask)].tolist() == x[mask].tolist()
    array[mask], x[mask] = 5, 5
    assert array.tolist() == x.tolist()
    with pytest.raises(umem.IndexError, match="mask"):
        array[mask[:8]]


def test_put_is_that_of_numpy(place):
    expected = numbers((4, 3))
    array = umem.asarray(expected, place=place, copy=True)
    array.put([1, -1, 1], [10, 20, 30])
    expected.put([1, -1, 1], [10, 20, 30])
    array.put([[5, 6]], 9)
    expected.put([[5, 6]], 9)
    assert array.tolist() == expected.tolist()
