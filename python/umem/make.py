"""New arrays: empty, zeros, full, arange, asarray."""
from __future__ import annotations


from . import _core, exchange
from ._options import fail
from ._array import Array
from .places import Place, default

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._typing import AsArray, Make, Shape



def _make(function: Any) -> Make:
    """Lets type checkers know the elements that dtype names."""
    return function  # type: ignore[no-any-return]


def _as_array(function: Any) -> AsArray:
    return function  # type: ignore[no-any-return]


def _with_ghosts(zero: bool, shape: Any, dtype: Any, place: Any, ghosts: Any) -> Array:
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    widths = (ghosts,) * len(extents) if isinstance(ghosts, int) else tuple(ghosts)
    if len(widths) != len(extents) or any(not isinstance(width, int) or width < 0 for width in widths):
        fail(f"ghosts is {ghosts!r}: expected a number from 0, or one for each of {len(extents)} dimensions")
    whole = (_core.zeros if zero else _core.empty)(
        tuple(extent + 2 * width for extent, width in zip(extents, widths)), dtype, place)
    inner: Array = whole[tuple(slice(width, width + extent) for extent, width in zip(extents, widths))]
    inner._whole, inner._ghost_widths = whole, widths
    return inner


@_make
def empty(shape: Shape, dtype: Any = None, place: Place | str | None = None, *, ghosts: Shape | None = None) -> Array:
    """A new array, not initialised.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : umem.DType, str, type or NumPy dtype, optional
        Default: float64.
    place : Place or str, optional
        Where it is, or the name of a new place, as of umem.open. Default: umem.default(), which is RAM at first. Functions
        that write elements make the file of a name without a mode, and refuse one that is there.
    ghosts : int or sequence of int, optional
        Ghost cells before and after the elements of each dimension: see Array.ghosts.

    Raises
    ------
    umem.MemoryError
        The place has not enough memory. A full disk is a umem.OSError.
    umem.TypeError, umem.ValueError
        dtype is no type of elements; shape is impossible.
    """
    if place is None:
        place = default()
    return _core.empty(shape, dtype, place) if ghosts is None else _with_ghosts(False, shape, dtype, place, ghosts)


@_make
def zeros(shape: Shape, dtype: Any = None, place: Place | str | None = None, *, ghosts: Shape | None = None) -> Array:
    """A new array with every element zero, also of ghost cells. Parameters and errors as of umem.empty."""
    if place is None:
        place = default()
    return _core.zeros(shape, dtype, place) if ghosts is None else _with_ghosts(True, shape, dtype, place, ghosts)


def full(shape: Shape, value: Any, dtype: Any = None, place: Place | str | None = None, *,
         ghosts: Shape | None = None) -> Array:
    """A new array with every element, also of ghost cells, equal to a number.

    Parameters and errors as of umem.empty. Without dtype the elements are bool, int64, float64 or complex128, as the
    value is.
    """
    if dtype is None:
        dtype = exchange.find(value)[0].dtype
    if place is not None:
        place = _core._find_new_place(place)
    array = empty(shape, dtype, place, ghosts=ghosts)
    array.ghosts.whole.fill(value)
    return array


@_make
def ones(shape: Shape, dtype: Any = None, place: Place | str | None = None, *, ghosts: Shape | None = None) -> Array:
    """A new array with every element one, also of ghost cells. Parameters and errors as of umem.empty."""
    return full(shape, 1, "float64" if dtype is None else dtype, place, ghosts=ghosts)


def _like(array: Any, dtype: Any, place: Place | str | None) -> tuple[Any, Any, Place | str]:
    found, shared = exchange.find(array)
    if place is None:
        place = found._place_of_result() if shared else default()
    return found.shape, found.dtype if dtype is None else dtype, place


def empty_like(array: Any, dtype: Any = None, place: Place | str | None = None) -> Array:
    """A new array of the shape and type of another one, not initialised, where its copy() would be or on place."""
    return empty(*_like(array, dtype, place))


def zeros_like(array: Any, dtype: Any = None, place: Place | str | None = None) -> Array:
    """A new array of the shape and type of another one, every element zero, where its copy() would be or on place."""
    return zeros(*_like(array, dtype, place))


def ones_like(array: Any, dtype: Any = None, place: Place | str | None = None) -> Array:
    """A new array of the shape and type of another one, every element one, where its copy() would be or on place."""
    return full_like(array, 1, dtype, place)


def full_like(array: Any, value: Any, dtype: Any = None, place: Place | str | None = None) -> Array:
    """A new array of the shape and type of another one, every element a number, where its copy() would be or on place."""
    shape, dtype, place = _like(array, dtype, place)
    return full(shape, value, dtype, place)


def _joined_type(arrays: list[Array]) -> Any:
    first = arrays[0].dtype
    if first.isnative and all(array.dtype == first for array in arrays):
        return first
    import numpy

    return numpy.result_type(*(array.dtype.dtype for array in arrays))


def concatenate(arrays: Sequence[Any], axis: int = 0, out: Array | None = None, *, dtype: Any = None,
                place: Place | str | None = None) -> Array:
    """The elements of arrays one after the other along a dimension: as numpy.concatenate, on any place.

    Each array is copied once, to where it belongs in the result.

    Parameters
    ----------
    arrays : sequence of Array or what umem.asarray takes
        Of the same extents in all other dimensions, on any places.
    axis : int, optional
    out : Array, optional
        Where the result goes. Default: a new array.
    dtype : dtype, optional
        Of a new array. Default: one that holds all elements.
    place : Place, optional
        Of a new array. Default: umem.default().
    """
    found = [exchange.find(array)[0] for array in arrays]
    if not found:
        fail("there is no array to concatenate")
    at = found[0]._axis(axis)
    for array in found:
        if array.ndim != found[0].ndim or any(
                one != other for k, (one, other) in enumerate(zip(array.shape, found[0].shape)) if k != at):
            fail(f"arrays of shapes {found[0].shape} and {array.shape} do not fit together along axis {at}")
    shape = list(found[0].shape)
    shape[at] = sum(array.shape[at] for array in found)
    if out is None:
        out = empty(shape, _joined_type(found) if dtype is None else dtype,
                    None if place is None else _core._find_new_place(place))
    elif out.shape != tuple(shape):
        fail(f"out has shape {out.shape}, the result {tuple(shape)}")
    first = 0
    for array in found:
        end = first + array.shape[at]
        out[(slice(None),) * at + (slice(first, end),)] = array
        first = end
    return out


def stack(arrays: Sequence[Any], axis: int = 0, out: Array | None = None, *, dtype: Any = None,
          place: Place | str | None = None) -> Array:
    """Arrays of one shape along a new dimension: as numpy.stack, on any place. Parameters as of umem.concatenate."""
    found = [exchange.find(array)[0] for array in arrays]
    if any(array.shape != found[0].shape for array in found):
        fail("all arrays of a stack have the same shape")
    rank = found[0].ndim + 1 if found else 1
    if not -rank <= axis < rank:
        fail(f"axis {axis} is outside of {rank} dimensions", 6)
    new = (slice(None),) * (axis % rank) + (None,)
    return concatenate([array[new] for array in found], axis, out, dtype=dtype, place=place)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None,
           place: Place | str | None = None) -> Array:
    """A new array of start, start + step, ... before stop; of 0, 1, ... before start, if stop is None.

    Without dtype the elements are int64, or float64 if one of the three numbers is a float.
    """
    if stop is None:
        start, stop = 0, start
    numbers = (start, stop, step)
    kinds = [_core._kind_of_number(number) for number in numbers]
    if not all(0 <= kind <= 2 for kind in kinds):
        fail("arange needs real numbers", 5)
    whole = max(kinds) < 2
    start, stop, step = (int(number) if whole else float(number) for number in numbers)
    if step == 0:
        fail("the step of arange is 0")
    if dtype is None:
        dtype = "int64" if whole else "float64"
    return _core._arange(start, stop, step, whole, dtype, default() if place is None else _core._find_new_place(place))


@_as_array
def asarray(value: Any, dtype: Any = None, place: Place | str | None = None, *, copy: bool | None = None) -> Array:
    """An array of what value holds, without a copy where that is possible.

    Parameters
    ----------
    value : Array, or an object with DLPack, the buffer protocol, __array_interface__, __cuda_array_interface__ or
            __array__, or a number, or nested lists of numbers
    dtype : umem.DType, str, type or NumPy dtype, optional
        Default: that of value.
    place : Place or str, optional
        Default: where value is. Lists become arrays on umem.default(); copies of arrays in files, shared memory and other
        processes are in RAM.
    copy : bool, optional
        True: always a copy. False: raises umem.ValueError where a copy is needed. None: a copy where it is needed.

    Raises
    ------
    umem.TypeError
        value is nothing of that, or dtype is no type of elements.
    """
    if type(value) is list and dtype is None and place is None and copy is not False:
        made = _core._from_list(value)
        if made is not None:
            where = default()
            return made if where is made.place else made.to(where)
    if place is not None:
        place = _core._find_new_place(place)
    found, shared = exchange.find(value, dtype, place)
    if place is None and not shared:
        place = default()
    target = found.place if place is None else place
    same_type = dtype is None or found.dtype == dtype
    if shared and not copy and same_type and target is found.place:
        return found
    if not shared and same_type and target is found.place:
        return fail("a copy is needed, but copy is False") if copy is False else found
    if copy is False:
        fail("a copy is needed, but copy is False")
    return found.astype(found.dtype if same_type else dtype, place)


def array(value: Any, dtype: Any = None, place: Place | str | None = None, *, copy: bool | None = True) -> Array:
    """As asarray, but a copy unless copy says otherwise."""
    return asarray(value, dtype, place, copy=copy)


from_dlpack = _core.from_dlpack

_core._set_source(exchange.make_source, exchange.convert)
