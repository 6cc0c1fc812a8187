"""Regions of arrays that are stored in chunks: what a selection means, and which chunks it meets."""
from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence

from . import _core, dtypes
from ._options import fail
from ._array import Array

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

Region = tuple[range, ...]  # indices along each dimension, rising
Span = tuple[int, int, int]  # number of a chunk, and from where to where in a range its indices are


def _axis(key: Any, extent: int) -> range:
    """The indices that a slice or an integer stands for."""
    if isinstance(key, slice):
        return range(*key.indices(extent))
    if isinstance(key, bool) or not hasattr(key, "__index__"):
        fail(f"a region has integers, slices and ..., and no {key!r}", 5)
    index = operator.index(key)
    if not -extent <= index < extent:
        fail(f"index {index} is outside of {extent} elements", 6)
    index %= extent
    return range(index, index + 1)


def _keys(selection: Any, ndim: int) -> list[Any]:
    """A slice or an integer for each dimension."""
    keys = list(selection) if isinstance(selection, tuple) else [selection]
    dots = [k for k, key in enumerate(keys) if key is Ellipsis]
    if len(dots) > 1 or len(keys) - len(dots) > ndim:
        fail(f"the region {selection!r} is none of {ndim} dimensions", 6)
    first = dots[0] if dots else len(keys)
    return keys[:first] + [slice(None)] * (ndim - len(keys) + len(dots)) + keys[first + 1:]


class Selection:
    """What is selected of an array: ranges that rise, the shape without dimensions of integers, and what is turned round."""

    def __init__(self, selection: Any, shape: tuple[int, ...]) -> None:
        keys = _keys(selection, len(shape))
        given = [_axis(key, extent) for key, extent in zip(keys, shape)]
        self.region: Region = tuple(axis if axis.step > 0 else axis[::-1] for axis in given)
        self._turned = tuple(slice(None, None, 1 if axis.step > 0 else -1) for axis in given)
        self._kept = [isinstance(key, slice) for key in keys]
        self.shape = tuple(len(axis) for axis, kept in zip(given, self._kept) if kept)

    def whole(self, array: Array, kind: dtypes.DType) -> Array:
        """The elements of an array of this shape, as of a type, with a dimension for each range."""
        strides = iter(array.strides)
        steps = [next(strides) if kept else array.itemsize for kept in self._kept]
        shape = [len(axis) for axis in self.region]
        same: Array = _core._borrow(array.place, array._hand_out(), kind, shape, steps, array, array.read_only)
        return same[self._turned] if shape else same


def spans_of(axis: range, extent: int) -> list[Span]:
    """The chunks of an extent along a dimension that have some of the indices."""
    found, begin = [], 0
    while begin < len(axis):
        chunk = axis[begin] // extent
        end = min(len(axis), -((axis.start - (chunk + 1) * extent) // axis.step))
        found.append((chunk, begin, end))
        begin = end
    return found


def chunks_of(region: Region, extents: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], Region]]:
    """The chunks that a region meets: numbers, which part of the region, and which indices in the chunk."""
    for spans in itertools.product(*map(spans_of, region, extents)):
        part = tuple(slice(begin, end) for _, begin, end in spans)
        inside = tuple(range(cut.start - chunk * extent, cut.stop - chunk * extent, cut.step)
                       for axis, extent, (chunk, begin, end) in zip(region, extents, spans) for cut in (axis[begin:end],))
        yield tuple(chunk for chunk, _, _ in spans), part, inside


def slices_of(region: Region) -> tuple[slice, ...]:
    return tuple(slice(axis.start, axis[-1] + 1, axis.step) for axis in region)


def count(region: Region) -> int:
    return math.prod(map(len, region))


def blocks_of(region: Region, extents: Sequence[int], most: int) -> Iterator[tuple[tuple[slice, ...], Region]]:
    """Cuts a region between chunks into parts of at most so many elements, where one chunk has no more."""
    spans = [spans_of(axis, extent) for axis, extent in zip(region, extents)]
    yield from _halves(region, spans, [(0, len(axis)) for axis in region], most)


def _halves(region: Region, spans: list[list[Span]], ends: list[tuple[int, int]],
            most: int) -> Iterator[tuple[tuple[slice, ...], Region]]:
    long = next((k for k, of_axis in enumerate(spans) if len(of_axis) > 1), None)
    if long is None or math.prod(end - begin for begin, end in ends) <= most:
        yield (tuple(slice(begin, end) for begin, end in ends),
               tuple(axis[begin:end] for axis, (begin, end) in zip(region, ends)))
        return
    middle = len(spans[long]) // 2
    for half in (spans[long][:middle], spans[long][middle:]):
        yield from _halves(region, [*spans[:long], half, *spans[long + 1:]],
                           [*ends[:long], (half[0][1], half[-1][2]), *ends[long + 1:]], most)
