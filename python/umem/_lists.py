"""Nested lists of numbers to arrays and back, without NumPy."""
from __future__ import annotations


from . import _core
from ._options import fail

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .array import Array

_ORDER = (bool, int, float, complex)  # a number of one type fits into those after it


def _shape(values: Any) -> tuple[int, ...]:
    shape = []
    while isinstance(values, (list, tuple)):
        shape.append(len(values))
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
    for rank, cls in enumerate(_ORDER):
        if isinstance(number, cls):
            return rank
    for rank, method in ((1, "__index__"), (2, "__float__"), (3, "__complex__")):
        if hasattr(number, method):
            return rank
    return fail(f"{number!r} is no number", 5)


def from_lists(values: Any, dtype: Any = None) -> Array:
    """An array in RAM of a number or of nested lists or tuples of numbers.

    Without dtype the elements are bool, int64, float64 or complex128: the first of these that can hold all numbers.
    """
    shape = _shape(values)
    numbers = list(_flat(values, shape))
    rank = max(map(_kind, numbers), default=2)
    if dtype is None and rank == 1 and any(number > 2**63 - 1 for number in numbers):
        dtype = "uint64"
    made = _core.empty(shape, ("bool", "int64", "float64", "complex128")[rank] if dtype is None else dtype)
    from array import array as buffer

    flat = made.reshape(len(numbers))
    if made.dtype == ("int64", "int64", "float64", None)[rank] and numbers:
        memoryview(flat)[:] = buffer("q" if rank < 2 else "d", numbers)
    else:
        for i, number in enumerate(numbers):
            flat[i] = number
    return made


def to_list(array: Any) -> Any:
    """The elements of an array as nested lists of Python numbers."""
    kind = array.dtype.kind
    if kind == "c":
        flat = array.astype("complex128", _core._host()).reshape(-1)
        parts = _core._borrow(flat.place, flat.address, "float64", (flat.size, 2), None, flat, True)
        pairs: Iterable[Any] = memoryview(parts).tolist()
        return _nest(iter(pairs), array.shape)
    to = {"b": "bool", "i": "int64", "u": "uint64"}.get(kind, "float64")
    return memoryview(array.astype(to, _core._host())).tolist()


def _nest(pairs: Iterator[Any], shape: tuple[int, ...]) -> Any:
    return [_nest(pairs, shape[1:]) for _ in range(shape[0])] if shape else complex(*next(pairs))
