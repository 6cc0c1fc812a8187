"""What people who know NumPy call: operators, shapes, new arrays like others, joined arrays, scalars, and NumPy's own functions."""
import operator

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import umem

numpy = pytest.importorskip("numpy")
few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)


def numbers(shape, dtype="float64"):
    return numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype)


@st.composite
def shapes(draw, least=0):
    return tuple(draw(st.lists(st.integers(1, 3), min_size=least, max_size=4)))


def check_views(shape, data, place):
    x = numbers(shape)
    a = umem.asarray(x, place=place, copy=True)
    flips = data.draw(st.booleans())
    x, a = (x.T, a.T) if flips else (x, a)
    assert a.ravel().tolist() == x.ravel().tolist() and a.squeeze().shape == x.squeeze().shape
    one, other = (data.draw(st.integers(-x.ndim, x.ndim - 1)) for _ in range(2))
    assert a.swapaxes(one, other).tolist() == x.swapaxes(one, other).tolist()
    if x.shape[one] == 1:
        assert a.squeeze(one).tolist() == x.squeeze(one).tolist()
    else:
        with pytest.raises(ValueError, match="only one"):
            a.squeeze(one)
    assert [row.tolist() for row in a] == x.tolist() and a.swapaxes(one, other).numpy(copy=True).tolist() == x.swapaxes(one, other).tolist()
    if not flips:
        assert a.view("u1").tolist() == x.view("u1").tolist() and a.view("i8").tolist() == x.view("i8").tolist()


def test_shapes_are_those_of_numpy(place):
    few(given(shapes(1), st.data())(lambda shape, data: check_views(shape, data, place)))()


def check_joined(shape, count, data, place):
    arrays = [numbers(shape, data.draw(st.sampled_from(["f4", "i8", "f8"]))) + i for i in range(count)]
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    mixed = [umem.asarray(one, place=place, copy=True) if i % 2 else one for i, one in enumerate(arrays)]
    for ours, theirs in ((umem.concatenate, numpy.concatenate), (umem.stack, numpy.stack)):
        found, expected = ours(mixed, axis, place=place), theirs(arrays, axis)
        assert found.place is place and found.dtype == expected.dtype and found.tolist() == expected.tolist()
        out = umem.zeros(expected.shape, "f4", place)
        assert ours(mixed, axis, out) is out and out.tolist() == expected.tolist()


def test_arrays_are_joined_as_by_numpy(place):
    few(given(shapes(1), st.integers(1, 3), st.data())(
        lambda shape, count, data: check_joined(shape, count, data, place)))()


def test_arrays_that_do_not_fit_together():
    for call in (lambda: umem.concatenate([]), lambda: umem.stack([]), lambda: umem.concatenate([umem.zeros((2, 3)), umem.zeros((2, 4))]),
                 lambda: umem.concatenate([umem.zeros(3), umem.zeros((3, 1))]), lambda: umem.stack([umem.zeros(3), umem.zeros(4)]),
                 lambda: umem.concatenate([umem.zeros(3)], 0, umem.zeros(4)), lambda: umem.concatenate([umem.zeros(3)], 1),
                 lambda: umem.stack([umem.zeros(3)], 3), lambda: umem.zeros(3).ravel("F"), lambda: umem.zeros(3).view("i2x4")):
        with pytest.raises((ValueError, IndexError, TypeError)):
            call()


def test_new_arrays_like_others(place):
    like = umem.asarray(numbers((2, 3), "i2"), place=place, copy=True)
    assert umem.ones((2, 2), "f4", place).tolist() == [[1, 1], [1, 1]] and umem.ones(2).dtype == "f8"
    for made, value in ((umem.zeros_like(like), 0), (umem.ones_like(like), 1), (umem.full_like(like, 7), 7)):
        assert made.place is like.copy().place and made.dtype == "i2" and made.tolist() == [[value] * 3] * 2
    assert umem.empty_like(like, "f8", place).place is place and umem.empty_like(like, "f8").shape == (2, 3)
    assert umem.zeros_like(numpy.ones((2, 1), "c8")).dtype == "c8"


def test_an_array_without_dimensions_is_a_number(place):
    a = umem.asarray(numpy.array([3, 4.5]), place=place, copy=True)
    assert a[0] + 1 == 4 and 1 + a[0] == 4 and a[1] - a[0] == 1.5 and 2 * a[1] == 9 and a[1] / 2 == 2.25 and a[0] ** 2 == 9 and a[1] // 2 == 2
    assert 1 - a[0] == -2 and 9 / a[0] == 3 and 10 % a[1] == 1 and 7 // a[0] == 2 and 2 ** a[0] == 8 and a[1] % 2 == 0.5
    assert round(a[1]) == 4 and round(a[1], 1) == 4.5 and type(round(a[0])) is int
    assert a[0] < a[1] <= 4.5 and a[1] > 3 and 5 >= a[1]
    assert f"{a[1]:.2f}" == "4.50" and f"{a}" == repr(a) and f"{a[0]}" == repr(a[0]) and list(a[0:1])[0].item() == 3
    with pytest.raises(TypeError):
        f"{a:.2f}"


# ---- NumPy's functions ----

def test_numpy_reads_every_place_that_no_gpu_has(place):
    x = numbers((3, 4))
    a = umem.asarray(x, place=place, copy=True)
    shares = bool(place.capabilities & umem.places.CPU_READABLE)
    if not shares and place.capabilities & umem.places.DEVICE_ACCESSIBLE:
        for read in (numpy.asarray, numpy.sqrt, lambda a: numpy.add(x, a)):
            with pytest.raises(umem.TypeError, match=r"numpy\(copy=True\).*cupy\.asarray"):
                read(a)
        return
    assert numpy.asarray(a).tolist() == x.tolist() and numpy.array(a, "f4").dtype == "f4"
    assert numpy.asarray(a, dtype="f4").tolist() == x.tolist() and numpy.asarray(a[:, ::2]).tolist() == x[:, ::2].tolist()
    has_copy = int(numpy.__version__.split(".")[0]) >= 2  # an argument of asarray
    if shares:
        assert numpy.shares_memory(numpy.asarray(a), numpy.asarray(a, **({"copy": False} if has_copy else {})))
        assert not numpy.shares_memory(numpy.array(a, copy=True), numpy.asarray(a))
    elif has_copy:
        with pytest.raises(umem.ValueError, match="copy is False"):
            numpy.asarray(a, copy=False)
    assert (x + a).tolist() == (x * 2).tolist() and numpy.sqrt(a).tolist() == numpy.sqrt(x).tolist()
    assert numpy.concatenate([a, x]).shape == (6, 4) and numpy.sort(a, axis=0).tolist() == x.tolist()
    assert numpy.squeeze(a[:1]).tolist() == x[0].tolist() and numpy.swapaxes(a, 0, 1).shape == (4, 3)
    assert isinstance(numpy.add(a, 1), numpy.ndarray) and (x @ a.T == x @ x.T).all()


def test_results_of_numpy_go_to_an_array(place):
    x = numbers((3, 4))
    a = umem.zeros((3, 4), "f4", place)
    assert numpy.sqrt(x, out=a) is a and a.tolist() == numpy.sqrt(x).astype("f4").tolist()
    with pytest.raises(TypeError):
        numpy.sqrt(x, out=umem.zeros((3, 4), "i4", place))
    a[...] = x * 2 + 1
    assert a.tolist() == (x * 2 + 1).tolist()
    if place.capabilities & umem.places.DEVICE_ACCESSIBLE and not place.capabilities & umem.places.CPU_READABLE:
        return
    numpy.multiply(a, 2, out=a)
    numpy.negative(x, out=a, where=x > 5)
    assert a.tolist() == numpy.where(x > 5, -x, x * 4 + 2).tolist()
    whole = umem.zeros((3, 4), place=place)
    found = numpy.divmod(x, 5, out=(whole, None))
    assert found[0] is whole and whole.tolist() == (x // 5).tolist() and found[1].tolist() == (x % 5).tolist()
    numpy.add.at(a, ([0, 0], [0, 0]), 1)
    assert a[0, 0].item() == 4 and numpy.add.reduce(a, axis=0).shape == (4,)
    x += a
    assert isinstance(x, numpy.ndarray)


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
             operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le, operator.gt,
             operator.ge, divmod]
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.imod, operator.ipow, operator.iand,
            operator.ior, operator.ixor, operator.ilshift, operator.irshift]


def is_on_gpu(place):
    return bool(place.capabilities & umem.places.DEVICE_ACCESSIBLE and not place.capabilities & umem.places.CPU_READABLE)


@pytest.mark.parametrize("function", OPERATORS, ids=lambda one: one.__name__)
def test_operators_are_those_of_numpy(function, place):
    x, y = numbers((2, 3), "int32") + 1, numbers(3, "int32") + 2
    a, b = (umem.asarray(one, place=place, copy=True) for one in (x, y))
    for one, two, expected in ((a, 2, function(x, 2)), (3, a, function(3, x)), (a, b, function(x, y)), (a, y, function(x, y)),
                               (y, a, function(y, x)), (a, b[1], function(x, 3)), (b[1], a, function(3, x))):
        if is_on_gpu(place):
            with pytest.raises(umem.TypeError, match="NumPy reads no memory of a GPU"):
                function(one, two)
            continue
        found = function(one, two)
        assert numpy.array_equal(found, expected) and numpy.asarray(found).dtype == numpy.asarray(expected).dtype
    assert function(b[0], 3) == function(2, 3) and function(3, b[0]) == function(3, 2)


def test_operators_of_one_operand_and_products_of_matrices():
    for place in umem.host(), umem.File():
        x = numbers((2, 3), "int16") - 3
        a = umem.asarray(x, place=place, copy=True)
        for function in operator.neg, operator.pos, operator.abs, operator.invert:
            assert function(a).tolist() == function(x).tolist() and function(a[0, 1]) == function(int(x[0, 1]))
        assert (a @ a.T).tolist() == (x @ a.T).tolist() == (a @ x.T).tolist() == (x @ x.T).tolist()
        assert a[a > -2].tolist() == x[x > -2].tolist()
        a[a < 0] = 0
        assert a.tolist() == [[0, 0, 0], [0, 1, 2]]


@pytest.mark.parametrize("function", IN_PLACE, ids=lambda one: one.__name__)
def test_operators_in_place_change_the_elements(function, place):
    if is_on_gpu(place):
        return
    x = numbers((2, 3), "int32") + 1
    a = umem.asarray(x, place=place, copy=True)
    view, same = a[:, 1:], a
    same = function(same, 2)
    assert same is a and view.tolist() == function(x, 2)[:, 1:].tolist()
    assert a.place is place and a.dtype == "int32"


def test_what_an_operator_in_place_refuses_changes_nothing(place):
    a = umem.arange(3, dtype="int32", place=place)
    with pytest.raises(TypeError):
        a += 0.5
    a.read_only = True
    with pytest.raises((ValueError, TypeError, umem.NotSupportedError)):
        a += 1
    assert a.tolist() == [0, 1, 2]


def test_a_number_that_is_changed_is_none_of_the_array(place):
    a = umem.arange(3, place=place)
    number = a[1]
    number += 5
    assert number == 6 and a.tolist() == [0, 1, 2]
    a[1] += 5
    assert a.tolist() == [0, 6, 2]


def test_items_are_those_of_numpy(place):
    x = numbers((2, 3), "int64")
    a = umem.asarray(x, place=place, copy=True)
    for index in ((4,), (-1,), (1, 2), ((0, 1),), (-2, 0)):
        assert a.item(*index) == x.item(*index) and type(a.item(*index)) is int
    assert a.T.item(1) == x.T.item(1) and a[0, 1].item() == 1
    for index, message in (((6,), "index 6 is outside of an array of 6"), ((-7,), "index -7"), ((2, 0), "index 2 is outside")):
        with pytest.raises(umem.IndexError, match=message):
            a.item(*index)
    with pytest.raises(umem.ValueError, match="this one has 6"):
        a.item()
    with pytest.raises(umem.ValueError, match="this one has 3"):
        a.item((0,))


def test_flat_copies_and_bytes_are_those_of_numpy(place):
    x = numbers((2, 3), "float32")
    a = umem.asarray(x, place=place, copy=True)
    flat = a.T.flatten()
    assert flat.tolist() == x.T.flatten().tolist() and flat.place is a.copy().place
    if not is_on_gpu(place):
        assert a.T.tobytes() == x.T.tobytes()
    a.flatten()[...] = 7
    assert a.tolist() == x.tolist()


def test_a_type_has_the_attributes_of_numpys():
    a = umem.zeros(2, "int16")
    assert a.dtype.char == "h" and a.dtype.type is numpy.int16 and a.dtype.names is None and a.dtype.isnative
    assert numpy.iinfo(a.dtype).max == 32767 and numpy.finfo(umem.zeros(1, "f4").dtype).bits == 32
    assert umem.zeros(2, [("x", "f4"), ("y", "i8")]).dtype.names == ("x", "y") and not hasattr(a.dtype, "nothing")
    assert not hasattr(umem.dtype("int8x4"), "char") or umem.dtype("int8x4").dtype is not None
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.4.0":
        assert numpy.result_type(a, numpy.float32) == "float32" and numpy.promote_types(a.dtype, "i4") == "int32"


def test_lists_are_copied_as_elements_of_the_destination(place):
    a = umem.zeros((2, 3), "float32", place)
    umem.copy(a, [[1, 2, 3], [4, 5, 6]])
    assert a.tolist() == [[1, 2, 3], [4, 5, 6]]
    umem.copy_many([(a[0], [7, 8, 9]), (a[1], (1, 2, 3))])
    assert a.tolist() == [[7, 8, 9], [1, 2, 3]]
    umem.start(a, [[1, 2, 3]] * 2).wait()
    assert a.tolist() == [[1, 2, 3]] * 2
    with pytest.raises(umem.TypeError, match=r"^umem\.copy: the destination has elements of float32, expected float64"):
        umem.copy(a, numpy.zeros((2, 3)))


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">M8[s]", [("a", "i4"), ("b", ">f8")], "S3", "<U2", "?"])
def test_what_is_joined_has_the_byte_order_of_the_machine(dtype):
    here = numpy.zeros((2, 2), dtype)
    here[1] = numpy.ones(2, "i8").astype(here.dtype)
    array = umem.asarray(here, place=umem.File(), copy=True)
    for own, theirs in ((umem.concatenate, numpy.concatenate), (umem.stack, numpy.stack)):
        made, wanted = own([array, array]), theirs([here, here])
        assert made.dtype == wanted.dtype and made.dtype.isnative and numpy.asarray(made).tobytes() == wanted.tobytes()
