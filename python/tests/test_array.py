"""Arrays on every place, beside NumPy."""
import contextlib
import math
import warnings

import hypothesis.strategies as st
import pytest
from conftest import TYPES
from hypothesis import HealthCheck, given, settings

import umem

numpy = pytest.importorskip("numpy")
some = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True,
                database=None)


def numbers(shape, dtype="float64"):
    count = math.prod(shape)
    return (numpy.arange(count) % 100 + 1).reshape(shape).astype(dtype)


def same(array, expected):
    return array.shape == expected.shape and array.dtype == expected.dtype and array.tolist() == expected.tolist()


# ---- new arrays ----

def test_new_arrays_on_every_place(place):
    array = umem.zeros((3, 4), "int32", place)
    assert array.place is place and array.tolist() == [[0] * 4] * 3
    assert umem.full((2, 3), 7, "int16", place).tolist() == [[7] * 3] * 2
    assert umem.arange(2, 12, 3, place=place).tolist() == [2, 5, 8, 11]
    assert umem.empty((5, 0), place=place).tolist() == [[]] * 5
    assert umem.asarray([[1, 2], [3, 4]], place=place).tolist() == [[1, 2], [3, 4]]
    assert umem.empty((), place=place).shape == ()


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(dtype):
    check_type(umem.Pool(umem.Host()), dtype)


@pytest.mark.parametrize("dtype", ["bool", "int16", "complex128"])
def test_some_types_on_every_place(place, dtype):
    check_type(place, dtype)


def check_type(place, dtype):
    expected = numbers((3, 5), dtype)
    array = umem.empty((3, 5), dtype, place)
    array[...] = expected
    assert same(array, expected)
    assert (array.itemsize, array.nbytes, array.size, array.ndim) == (expected.itemsize, expected.nbytes, 15, 2)
    assert same(array[::2, ::-2], expected[::2, ::-2])
    array[1] = 1
    expected[1] = 1
    assert same(array, expected)
    assert same(array.copy(), expected) and same(array.T.copy(), expected.T)


def test_the_first_byte_is_aligned():
    for place in (umem.host(), umem.Pool(umem.Host())):
        assert all(umem.empty(n, "uint8", place).address % 64 == 0 for n in range(1, 50))


@pytest.mark.parametrize("shape, error", [(-1, umem.ValueError), ((2, -3), umem.ValueError), ("ab", umem.TypeError),
                                          (1.5, umem.TypeError), ((1 << 40, 1 << 40), umem.ValueError),
                                          ((1,) * 33, umem.ValueError), (1 << 70, umem.ValueError),
                                          ((2, "x"), umem.TypeError), ({}, umem.TypeError), (b"ab", umem.TypeError),
                                          (bytearray(b"ab"), umem.TypeError)])
def test_impossible_shapes(shape, error):
    with pytest.raises(error):
        umem.empty(shape)


def test_arrays_are_made_by_functions_alone():
    with pytest.raises(umem.TypeError, match="umem.empty"):
        umem.Array()


@pytest.mark.parametrize("arguments", [(5,), (2, 9), (2, 9, 3), (9, 2, -3), (0, 1, 0.1), (0.5, 3), (3, 3), (5, 2),
                                       (-3.0, 3.0, 0.7), (2**60, 2**60 + 3), (200000,)])
def test_arange_is_that_of_numpy(arguments):
    expected = numpy.arange(*arguments)
    assert same(umem.arange(*arguments), expected)
    assert same(umem.arange(*arguments, dtype="float32"), expected.astype("float32"))


@pytest.mark.parametrize("value", [3, 2.5, True, 1 + 2j, [1, 2, 3], [[1.5, 2], [3, 4]], [True, False], [1, 2.5, 3j],
                                   [], [[], []], [2**63], ((1, 2), (3, 4)), [[[1], [2]]]])
def test_lists_are_those_of_numpy(value):
    assert same(umem.asarray(value), numpy.asarray(value))


@pytest.mark.parametrize("value", [[1, [2]], [[1, 2], [3]], ["a"], [None], {}, object(), "text"])
def test_what_is_no_array(value):
    with pytest.raises((umem.Error, TypeError)):
        umem.asarray(value)


# ---- types ----

def test_types_have_the_names_of_numpy():
    for name in TYPES:
        dtype = numpy.dtype(name)
        assert umem.dtype(dtype) == umem.dtype(name) == umem.dtype(dtype.str) == umem.dtype(dtype.type)
        assert umem.dtype(name) == dtype and umem.dtype(name).dtype == dtype and numpy.dtype(umem.dtype(name)) == dtype
        assert (umem.dtype(name).kind, umem.dtype(name).itemsize) == (dtype.kind, dtype.itemsize)
    for python in (bool, int, float, complex):
        assert umem.dtype(python) == numpy.dtype(python)
    for code in "?bBhHiIlLqQefdFD":
        assert umem.dtype(code) == numpy.dtype(code)
    assert umem.dtype("float") == "float64" and umem.dtype("float32") != "float64" and umem.dtype("int8") != 3
    assert hash(umem.dtype("int8")) == hash("int8") and repr(umem.dtype("int8")) == "umem.int8"
    assert {umem.dtype("f8"): 1}["float64"] == 1


@pytest.mark.parametrize("dtype", ["float1", "", None.__class__, [], {}, 3, object, "O", [("a", "O")], "(2,)f4", "V0", "V65536",
                                   numpy.dtypes.StringDType() if hasattr(numpy.dtypes, "StringDType") else "O"])
def test_what_is_no_type(dtype):
    with pytest.raises(umem.TypeError):
        umem.empty(3, dtype)


def test_types_that_numpy_lacks():
    array = umem.zeros(3, "bfloat16")
    array[:] = [1, 2.5, 3]
    assert array.tolist() == [1, 2.5, 3] and array.dtype.kind == "V"
    with pytest.raises(umem.NotSupportedError, match="bfloat16"):
        memoryview(array)


# ---- indices ----

@st.composite
def shape_and_key(draw):
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    index = st.one_of(st.integers(-6, 6), st.slices(6), st.none(), st.just(Ellipsis))
    return shape, tuple(draw(st.lists(index, max_size=6)))


def result(function):
    try:
        return function()
    except (IndexError, ValueError, TypeError) as error:
        return IndexError if isinstance(error, IndexError) else type(error).__name__


@some
@given(shape_and_key())
def test_an_index_gives_what_numpy_gives(case):
    shape, key = case
    expected = result(lambda: numpy.asarray(numbers(shape, "int64")[key]))
    found = result(lambda: umem.asarray(numbers(shape, "int64"))[key])
    if expected is IndexError:
        assert found is IndexError
    else:
        assert same(found, expected)


@some
@given(shape_and_key(), st.integers(0, 2))
def test_an_assignment_changes_what_numpy_changes(case, form):
    shape, key = case
    expected = numbers(shape, "int64")
    array = umem.asarray(expected, copy=True)
    target = result(lambda: expected[key])
    if isinstance(target, (type, str)):
        assert isinstance(result(lambda: array.__setitem__(key, 1)), type)
        return
    extents = numpy.shape(target)
    value = (-1, -numbers(extents, "int32"), -numbers(extents[1:]))[form]
    expected[key] = value
    array[key] = value if form else -1
    assert array.tolist() == expected.tolist()


@some
@given(st.lists(st.integers(1, 4), max_size=4), st.randoms(use_true_random=False))
def test_shapes_and_axes_are_those_of_numpy(shape, random):
    expected, array = numbers(shape), umem.asarray(numbers(shape))
    axes = random.sample(range(len(shape)), len(shape))
    assert same(array.transpose(*axes) if axes else array.T, expected.transpose(axes))
    assert same(array.T, expected.T) and same(array.reshape(-1), expected.reshape(-1))
    other = random.sample(shape, len(shape))
    assert same(array.reshape(other), expected.reshape(other))


ROWS = [[1.5, 2.5, 3.5], [1, 2, 3], [1, 2.5, 3], [True, False, True], [2**62, -1, 0], [7.0], (4.0, 5.0, 6.0), numpy.array([9.0, 8.0, 7.0]),
        numpy.arange(3), numpy.arange(6.0)[::2], numpy.arange(3, dtype=">f8"), numpy.float32([1, 2, 3]), numpy.full((1, 3), 4.0),
        numpy.float64(3), memoryview(b"abc"), bytearray(b"xyz"), numpy.array([1 + 2j, 3, 4])]


@pytest.mark.parametrize("value", ROWS, ids=repr)
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "float32", "complex128", ">f8"])
def test_a_row_is_set_as_by_numpy(dtype, value):
    for key in (0, -1, 3):
        expected = numbers((4, 3), dtype)
        array, transposed = umem.asarray(expected, copy=True), umem.asarray(numbers((3, 4), dtype), copy=True).T
        columns = numbers((3, 4), dtype).T
        if dtype != "complex128" and numpy.iscomplexobj(value):
            continue  # NumPy warns
        if dtype in ("int64", "uint8") and isinstance(value, list) and any(not 0 <= x < 256 or x != int(x) for x in value):
            continue  # NumPy truncates these, or refuses them, by its version
        expected[key] = columns[key] = value
        array[key] = transposed[key] = value
        assert same(array, expected) and same(transposed, columns)


def test_a_row_that_does_not_fit_changes_nothing():
    reals, whole = umem.zeros((4, 3)), umem.zeros((4, 3), "int64")
    for array, key, value, error in (
            (reals, 0, [1.0, 2.0], ValueError), (reals, 0, numpy.zeros(4), ValueError), (reals, 4, [1.0, 2.0, 3.0], IndexError),
            (reals, -5, numpy.zeros(3), IndexError), (reals, 2**70, numpy.zeros(3), IndexError), (reals, 0, [1.0, 2.0, "x"], Exception),
            (whole, 0, [1, 2, 2**63], OverflowError), (reals[0:0], 0, [1.0, 2.0, 3.0], IndexError)):
        with pytest.raises(error):
            array[key] = value
    assert reals.tolist() == [[0] * 3] * 4 and whole.tolist() == [[0] * 3] * 4
    fixed = numbers((4, 3))
    fixed.flags.writeable = False
    frozen = umem.asarray(fixed)
    for value in ([1.0, 2.0, 3.0], numpy.zeros(3)):
        with pytest.raises(umem.Error, match="read-only"):
            frozen[1] = value
    assert same(frozen, numbers((4, 3)))
    gone = umem.zeros((4, 3))
    gone.release()
    for value in ([1.0, 2.0, 3.0], numpy.zeros(3)):
        with pytest.raises(umem.ValueError):
            gone[1] = value


def test_a_row_may_be_a_part_of_the_array():
    expected = numbers((4, 3))
    array = umem.asarray(expected, copy=True)
    shared = numpy.asarray(array)
    array[1] = shared[2]
    array[0] = shared.reshape(-1)[1:4]
    expected[1] = expected[2]
    expected[0] = expected.reshape(-1)[1:4].copy()
    assert same(array, expected)


@pytest.mark.parametrize("key", [
    5, -5, (1, 2, 3), (Ellipsis, Ellipsis), (None,) * 80, 1.5, "a", b"a", {}, 1j, object(), numpy.array(1.0), numpy.float64(1),
    ["a"], [b""], [None], [slice(2)], [0.5], [1 << 80], (0, "a"), ([0], 0.5), umem.zeros(2), umem.zeros(())])
def test_wrong_indices(key):
    array = umem.zeros((4, 4), ghosts=1)
    with pytest.raises(IndexError):
        numpy.zeros((4, 4))[numpy.asarray(key) if isinstance(key, umem.Array) else key]
    with pytest.raises(umem.IndexError):
        array[key]
    with pytest.raises(umem.IndexError):
        array[key] = 3
    if not isinstance(key, list):
        with pytest.raises(umem.IndexError):
            array.ghosts[(0, 0, 0) if key is Ellipsis else key]


def test_an_index_raises_its_own_exception():
    class Index:
        def __index__(self):
            raise KeyboardInterrupt

    for use in umem.zeros(3).__getitem__, umem.zeros(3).item, umem.zeros, umem.zeros(3, ghosts=1).ghosts.__getitem__:
        with pytest.raises(KeyboardInterrupt):
            use(Index())


@pytest.mark.parametrize("use, message", [
    (lambda a: a.reshape(5, 5), "12"), (lambda a: a.T.reshape(12), "stride|view"), (lambda a: a.reshape(-1, -1), "one"),
    (lambda a: a.reshape(-1, 5), "fit"), (lambda a: a.transpose(0, 0), "permutation|axes"),
    (lambda a: a.transpose(0), "axes"), (lambda a: a.__setitem__(0, [1, 2]), r"\(2,\).*\(4,\)"),
    (lambda a: a.item(), "one element"), (lambda a: umem.copy(a, umem.zeros((4, 3))), "shape|elements"),
])
def test_wrong_shapes_say_which(use, message):
    with pytest.raises(umem.ValueError, match=message):
        use(umem.zeros((3, 4)))


def test_views_share_the_memory_and_keep_it(place):
    array = umem.zeros((4, 6), place=place)
    view = array[1:3, ::2]
    view[...] = 5
    address = array.address
    assert view.address >= address and array[1, 2].item() == 5 and array[0, 0].item() == 0
    del array
    assert view.tolist() == [[5] * 3] * 2


def test_overlapping_parts_are_copied_as_numpy_does():
    array, expected = umem.arange(10), numpy.arange(10)
    array[1:], expected[1:] = array[:-1], expected[:-1].copy()
    array[::-1], expected[::-1] = array, expected.copy()
    assert same(array, expected)


def random_part(random, steps):
    """A function that takes a part of an array, by so many slices and transposes."""
    kinds = [random.randrange(3) for _ in range(steps)]
    cuts = [random.choice([slice(None), slice(1, None), slice(None, -1), slice(None, None, -1), slice(None, None, 2)])
            for _ in range(2 * steps)]

    def part(x):
        for n, kind in enumerate(kinds):
            x = x.T if kind == 0 else x[cuts[2 * n]] if kind == 1 else x[cuts[2 * n], cuts[2 * n + 1]]
        return x

    return part


@some
@given(st.randoms(use_true_random=False), st.sampled_from(["int8", "float64", "complex128"]))
def test_assignments_within_an_array_are_those_of_numpy(random, dtype):
    expected = numbers((random.randint(2, 7), random.randint(2, 7)), dtype)
    array = umem.asarray(expected, copy=True)
    for _ in range(4):
        to, of = random_part(random, 2), random_part(random, 2)
        extents = [min(sides) for sides in zip(to(expected).shape, of(expected).shape)]
        corner = tuple(slice(0, extent) for extent in extents)
        to(expected)[corner] = of(expected)[corner]
        to(array)[corner] = of(array)[corner]
        assert array.tolist() == expected.tolist()


def test_assignments_within_an_array_on_every_place(place):
    expected = numbers((6, 6), "int32")
    array = umem.asarray(expected, copy=True, place=place)
    for x in (expected, array):
        x[...] = x.T
        x[1:] = x[:-1]
        x[:, :-2] = x[:, 2:]
        x[:] = x[::-1]
        x[2:4] = x[1]
    assert array.tolist() == expected.tolist()


def test_assignments_within_an_array_take_nothing_of_its_file(tmp_path):
    path = tmp_path / "a.bin"
    array = umem.asarray(numbers((6, 6)), copy=True, place=umem.File(path, "w+"))
    length = path.stat().st_size
    array[...] = array.T
    array[1:] = array[:-1]
    assert path.stat().st_size == length


def test_arrays_have_lengths_and_parts():
    array = umem.asarray([[1, 2], [3, 4]])
    assert len(array) == 2 and [row.tolist() for row in array] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError):
        len(umem.zeros(()))


# ---- numbers ----

def test_numbers_of_python():
    assert umem.full((), 7, "int8").item() == 7 and isinstance(umem.full((), 7, "int8").item(), int)
    assert float(umem.full(1, 2.5)) == 2.5 and int(umem.full(1, 2.5)) == 2 and bool(umem.zeros(1)) is False
    assert complex(umem.full(1, 1 + 2j)) == 1 + 2j and [10, 20][umem.full((), 1)] == 20
    assert umem.full((), 2**63 + 5, "uint64").item() == 2**63 + 5
    assert umem.full((), -(2**63), "int64").item() == -(2**63)
    assert umem.full(2, numpy.float32(1.5)).tolist() == [1.5] * 2
    assert umem.zeros(2, "bool")[0].item() is False


@pytest.mark.parametrize("dtype, value", [("int8", 128), ("uint8", -1), ("uint8", 256), ("int64", 2**63),
                                          ("uint64", 2**64), ("uint64", -1)])
def test_integers_that_do_not_fit(dtype, value):
    array = umem.zeros(3, dtype)
    with pytest.raises(OverflowError, match=dtype):
        array[0] = value
    assert array.tolist() == [0] * 3


def test_a_complex_number_is_no_real_one():
    with pytest.raises(umem.TypeError):
        umem.zeros(3)[0] = 1j


@pytest.mark.parametrize("src", TYPES)
@pytest.mark.parametrize("dst", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128"])
def test_conversion_is_that_of_numpy(src, dst):
    expected = numbers((3, 7), src)
    loses = src.startswith("complex") and not dst.startswith("complex") and dst != "bool"
    with pytest.warns(numpy.exceptions.ComplexWarning) if loses else contextlib.nullcontext():
        found = umem.asarray(expected).astype(dst)
    with warnings.catch_warnings(action="ignore"):
        assert same(found, expected.astype(dst))


def test_random_numbers_are_the_same_on_every_place(place):
    one, other = umem.empty((5, 7)), umem.empty((5, 7), place=place)
    for name, parameters in (("random_uniform", (-1, 3, 11)), ("random_normal", (2, 0.5, 12))):
        getattr(one, name)(*parameters)
        getattr(other, name)(*parameters)
        assert one.tolist() == other.tolist()
    with pytest.raises(umem.TypeError):
        umem.zeros(3, "int32").random_uniform()


# ---- other places ----

def test_to_returns_the_array_if_it_is_there(place):
    array = umem.arange(6, place=place)
    assert array.to(place) is array
    there = array.to(umem.host())
    assert (there is array) == (place.kind == "host") and there.place == umem.host() and there.tolist() == list(range(6))
    assert there.to(place).tolist() == list(range(6))
    assert array.astype("int8", umem.host()).tolist() == list(range(6))


@pytest.mark.parametrize("name", ["fixed", "limit", "binning"])
def test_a_failed_array_leaves_nothing(name, tmp_path):
    with umem.Stats(umem.Host()) as stats:
        limit = umem.Limit(stats, "1K")
        array = umem.zeros(100, place=limit)
        with pytest.raises(umem.MemoryError):
            array.copy()
        del array
        assert stats.figures["current_count"] == 0


def test_failures_of_every_step(tmp_path):
    """Each allocation and copy of a sequence fails once: the exception arrives, and nothing is leaked."""
    calls = "alloc calloc aligned set copy-to copy-from synchronize".split()
    with umem.Stats(umem.Host()) as stats:
        for nth in range(1, 40):
            fault = umem.Fault(stats, calls=calls, status="IOError", nth=nth)
            try:
                array = umem.full((3, 4), 2, "int32", fault)
                array[1] = umem.arange(4)
                array.T.copy().astype("float32").tolist()
                fine = True
            except umem.OSError:
                fine = False
            array = None
            assert fault.failures == (not fine)
            fault.close()
            if fine:
                break
        assert fine and stats.figures["current_count"] == 0


# ---- text ----

def test_a_small_array_in_ram_shows_its_values():
    array = umem.asarray([[1.0, 2.0], [3.0, 4.5]])
    assert repr(array) == "<umem.Array: [[1.  2. ]\n              [3.  4.5]], float64, <umem.Host: host>>"
    assert "<pre>[[1.  2. ]\n [3.  4.5]]</pre>" in array._repr_html_() and "<td>(2, 2)</td>" in array._repr_html_()
    with array.lock():
        assert repr(array) == "<umem.Array: locked, <umem.Host: host>>"


def test_others_show_shape_type_and_place(place):
    array = umem.zeros((3, 4), "int16", place)
    if place.kind != "host":
        assert repr(array) == f"<umem.Array: shape (3, 4), int16, {place!r}>"
        assert "<pre>" not in array._repr_html_()
    assert "<td>int16</td>" in array._repr_html_() and "&lt;umem." in array._repr_html_()
    array.release()
    assert repr(array) == "<umem.Array: released>" and "released" in array._repr_html_()
    assert repr(umem.zeros(1000)).startswith("<umem.Array: shape (1000,)") and repr(umem.zeros(2, "bfloat16"))


def test_hints_change_no_byte(tmp_path):
    for place in umem.Host(), umem.MMap(tmp_path / "a.bin", "w+"), umem.Limit(umem.File(), "1M"):
        array = umem.arange(10_000, dtype="f4", place=place)
        for advice in "normal", "sequential", "random", "unneeded", "prefetch":
            array[10:].advise(advice)
        assert array.sum() == 49_995_000
        with pytest.raises(umem.NotSupportedError, match='knows no hint "prefetch" for GPU 0'):
            array.advise("prefetch", 0)
    with pytest.raises(umem.ValueError, match="known are normal, sequential"):
        array.advise("faster")
    with pytest.raises(umem.ValueError, match="gaps"):
        array[::2].advise("normal")
