"""Nested lists of numbers to arrays and back, without NumPy."""
from __future__ import annotations


from . import _core
from ._options import fail

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ._array import Array

_ORDER = "bool", "int64", "float64", "complex128"  # a number of one type fits into those after it
_MAX_RANK = 32


def _shape(values: Any) -> tuple[int, ...]:
    shape = []
    while isinstance(values, (list, tuple)):
        shape.append(len(values))
        if len(shape) > _MAX_RANK:
            fail(f"arrays have at most {_MAX_RANK} dimensions")
        if not values:
            break
        values = values[0]
    return tuple(shape)


def _flat(values: Any, shape: tuple[int, ...]) -> Iterator[Any]:
    is_list = isinstance(values, (list, tuple))
    if is_list != bool(shape) or (is_list and len(values) != shape[0]):
        fail("the lists are not of equal lengths")
    if not is_list:
        yield values
        return
    for value in values:
        yield from _flat(value, shape[1:])


def _kind(number: Any) -> int:
    kind = _core._kind_of_number(number)
    return kind if kind >= 0 else fail(f"a number is expected, not {type(number).__name__}", 5)


def from_lists(values: Any, dtype: Any = None) -> Array:
    """An array in RAM of a number or of nested lists or tuples of numbers.

    Without dtype the elements are bool, int64, float64 or complex128: the first of these that can hold all numbers.
    """
    shape = _shape(values)
    numbers = list(_flat(values, shape))
    rank = max(map(_kind, numbers), default=2)
    if dtype is None and rank == 1 and any(int(number) > 2**63 - 1 for number in numbers):
        dtype = "uint64"
    made = _core.empty(shape, _ORDER[rank] if dtype is None else dtype)
    from array import array as buffer

    flat = made.reshape(len(numbers))
    if numbers and rank < 3 and made.dtype == _ORDER[max(rank, 1)] and {*map(type, numbers)} <= {bool, int, float}:
        elements = memoryview(flat)
        elements[:] = buffer(elements.format, numbers)
    else:
        for i, number in enumerate(numbers):
            flat[i] = number
    return made


def to_list(array: Any) -> Any:
    """The elements of an array as nested lists of Python numbers."""
    kind = array.dtype.kind
    if _core._is_stored(array.dtype):
        return array.numpy(copy=True).tolist()
    if kind == "c":
        flat = array.astype("complex128", _core._host()).reshape(-1)
        parts = _core._borrow(flat.place, flat.address, "float64", (flat.size, 2), None, flat, True)
        pairs: Iterable[Any] = memoryview(parts).tolist()
        return _nest(iter(pairs), array.shape)
    to = {"b": "bool", "i": "int64", "u": "uint64"}.get(kind, "float64")
    return memoryview(array.astype(to, _core._host())).tolist()


def _nest(pairs: Iterator[Any], shape: tuple[int, ...]) -> Any:
    return [_nest(pairs, shape[1:]) for _ in range(shape[0])] if shape else complex(*next(pairs))
