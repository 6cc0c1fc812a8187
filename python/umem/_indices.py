"""Indices that are masks or lists of integers, as NumPy has them."""
from __future__ import annotations

from . import _core, exchange
from ._options import fail

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ._array import Array

_WHOLE = slice(None)


def _read(part: Any) -> Array:
    """An array in RAM, in C order: of bool for a mask, else of int64."""
    try:
        found: Array = exchange.find(part)[0]
    except (OverflowError, TypeError):
        fail(f"an index is an integer, a slice, an ellipsis, None, or a mask or list of integers, not {part!r}", 6)
    if not found.size and isinstance(part, (list, tuple)):  # such as [], of no type
        return _core.empty(found.shape, "int64")
    if found.dtype.kind not in "biu":
        fail(f"an array of indices has integers or bool, not {found.dtype}", 6)
    return found.astype("bool" if found.dtype.kind == "b" else "int64", _core._host())


def _broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    result: list[int] = []
    for shape in shapes:
        result[:0] = [1] * (len(shape) - len(result))
        for k, extent in enumerate(reversed(shape), 1):
            if result[-k] == 1:
                result[-k] = extent
            elif extent not in (1, result[-k]):
                fail(f"lists of indices of shapes {tuple(result)} and {shape} do not fit together", 6)
    return tuple(result)


class Selection:
    """The elements of an array that a key with masks or lists names.

    Attributes
    ----------
    shape : tuple of int
        Of the elements. The lists share one shape, which replaces their dimensions, or comes first if other keys are
        between the lists.
    """

    def __init__(self, array: Array, key: Any) -> None:
        self._array = array
        self._basic: list[Any] = []
        self._dims: list[int] = []
        self._lists: list[Array] = []
        self._source = 0  # the dimension of the array that is next
        parts = key if isinstance(key, tuple) else (key,)
        read = [part if part is None or part is Ellipsis or isinstance(part, slice) else _read(part) for part in parts]
        named = sum(self._named(part) for part in read)
        if named > array.ndim:
            fail(f"too many indices: the array has {array.ndim} dimensions, the key {named}", 6)
        if sum(part is Ellipsis for part in read) > 1:
            fail("an index can have only one ellipsis (...)", 6)
        places = [i for i, part in enumerate(read) if hasattr(part, "dtype")]
        for part in read:
            self._add(part, array.ndim - named)
        self._view = array[tuple(self._basic)]
        shape = _broadcast(one.shape for one in self._lists)
        self._at = self._dims[0] if places[-1] - places[0] < len(places) else 0
        rest = [extent for dim, extent in enumerate(self._view.shape) if dim not in self._dims]
        self.shape = (*rest[:self._at], *shape, *rest[self._at:])
        self._lists = [self._spread(one, shape) for one in self._lists]

    @staticmethod
    def _named(part: Any) -> int:
        """How many dimensions of the array a part of the key stands for."""
        if part is None or part is Ellipsis:
            return 0
        return part.ndim if hasattr(part, "dtype") and part.dtype == "bool" else 1

    @staticmethod
    def _spread(one: Array, shape: tuple[int, ...]) -> Array:
        if one.shape == shape:
            return one
        wide = _core.empty(shape, "int64")
        wide[...] = one
        return wide

    def _add(self, part: Any, rest: int) -> None:
        if part is Ellipsis:
            self._basic += [_WHOLE] * rest
            self._source += rest
        elif part is None or isinstance(part, slice):
            self._basic.append(part)
            self._source += part is not None
        elif part.dtype != "bool":
            self._add_list(part, _WHOLE)
        elif part.ndim == 0:  # a new dimension of one element, or of none
            self._add_list(_core.zeros(int(bool(part)), "int64"), None)
        else:
            extents = self._array.shape[self._source:self._source + part.ndim]
            if part.shape != extents:
                fail(f"a mask of shape {part.shape} does not fit into dimensions of {extents}", 6)
            for one in _core._find_true(part):
                self._add_list(one, _WHOLE)

    def _add_list(self, one: Array, basic: Any) -> None:
        if basic is not None:
            _core._check_indices(one, self._array.shape[self._source], self._source)
            self._source += 1
        self._dims.append(len(self._basic))
        self._basic.append(basic)
        self._lists.append(one)

    def read(self, out: Array | None = None) -> Array:
        """The elements as a new array where copy() would put them, or in out."""
        if out is None:
            out = _core.empty(self.shape, self._array.dtype, self._array._place_of_result())
        elif out.shape != self.shape or out.dtype != self._array.dtype:
            fail(f"out has shape {out.shape} and {out.dtype}, the result {self.shape} and {self._array.dtype}")
        self._move(out, False)
        return out

    def write(self, value: Any) -> None:
        """Sets the elements; of those that are named more than once the last value remains."""
        dense = _core.empty(self.shape, self._array.dtype)
        dense[...] = value
        self._move(dense, True)

    def _move(self, dense: Array, into: bool) -> None:
        _core._move_chosen(self._view, tuple(self._dims), tuple(self._lists), dense, self._at, into)


_core._set_indices(lambda array, key: Selection(array, key).read(),
                   lambda array, key, value: Selection(array, key).write(value))
