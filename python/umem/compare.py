"""Whether the elements of arrays are equal or close, on any places, without a copy of all of them."""
from __future__ import annotations

from . import _core, _lists, exchange
from ._options import real
from ._array import Array
from .reductions import each

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any


def _array(value: Any, beside: Any) -> Array:
    """An array of an operand. A number of Python is rounded as the elements beside it are, if these are not integers."""
    if type(value) in (int, float, complex) and isinstance(beside, Array):
        kind = beside.dtype.kind
        if kind == "c" or (kind in "fV" and type(value) is not complex):
            return _lists.from_lists(value, beside.dtype)
    found: Array = exchange.find(value)[0]
    return found


def _is_number(value: Any) -> bool:
    return not isinstance(value, Array) and _core._kind_of_number(value) >= 0


def _is_same_in_numpy(one: Array, other: Array, equal_nan: bool) -> bool:
    """all_equal of elements that umem only stores."""
    import numpy

    options = {"equal_nan": True} if equal_nan and one.dtype.kind not in "SUV" else {}

    def is_same(key: Any, part: Any) -> bool:
        return numpy.array_equal(part, other[key].numpy(copy=True), **options)

    return one.shape == other.shape and all(same for _, same in each(one, is_same))


def _is_all_same(one: Any, other: Any, close: bool, relative: float, absolute: float, equal_nan: bool) -> bool:
    first = _array(one, other)
    second = _array(other, first)
    if not close and _core._is_stored(first.dtype) and first.dtype == second.dtype:
        return _is_same_in_numpy(first, second, equal_nan)
    return _core._is_all_same(first, second, _is_number(one), _is_number(other), close, relative, absolute,
                              bool(equal_nan))


def all_equal(one: Any, other: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape, and all of their elements are equal.

    Types and places may differ. Integers of different types are compared by their values; of other numbers of different
    types the nearest float64 counts. The elements pass through RAM in pieces of 512 KiB.

    Parameters
    ----------
    one, other : Array, or what umem.asarray takes
        A number is compared with every element.
    equal_nan : bool, optional
        Whether NaN equals NaN.

    Raises
    ------
    umem.TypeError
        An operand is no array and no number.
    """
    return _is_all_same(one, other, False, 0, 0, equal_nan)


def all_close(one: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape, and all of their elements are close: ``abs(x - y) <= atol + rtol * abs(y)``.

    Infinite numbers are close to themselves alone. Operands and errors as of umem.all_equal.

    Parameters
    ----------
    one, other : Array, or what umem.asarray takes
    rtol, atol : float, optional
        The tolerance relative to the elements of other, and the absolute one.
    equal_nan : bool, optional
        Whether NaN is close to NaN.
    """
    return _is_all_same(one, other, True, real(rtol, "rtol"), real(atol, "atol"), equal_nan)
