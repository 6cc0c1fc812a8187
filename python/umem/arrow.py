"""Columns of Arrow: arrays of one dimension to and from pyarrow, polars, pandas and others."""
from __future__ import annotations

from . import _core
from ._options import fail
from .exchange import _device_place
from .places import DEVICE_ACCESSIBLE, Place

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any, Literal, overload

    from ._array import Array

_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}  # Arrow's letters


# ---- to Arrow ----

def _format_of(array: Array) -> str | None:
    """Arrow's format of a type that only NumPy has; None for one of umem."""
    named = array.dtype._named
    if named is None:
        return None
    letters = {unit: letter for letter, unit in _UNITS.items()}
    unit = str(named)[str(named).find("[") + 1:-1] if named.kind in "mM" else ""
    if named.isnative and unit in letters:
        return f"ts{letters[unit]}:" if named.kind == "M" else f"tD{letters[unit]}"
    if named.kind == "S":
        return f"w:{named.itemsize}"
    return fail(f"Arrow has no elements of {named}: convert them with astype()", 5)


def to_arrow(array: Array, with_device: bool) -> Any:
    """What `__arrow_c_array__` and `__arrow_c_device_array__` return: over the same memory where that has pointers."""
    if not array._is_host and array.place.capabilities & DEVICE_ACCESSIBLE:
        if not with_device:
            fail(f"the CPU cannot read the memory of {array.place!r}: use __arrow_c_device_array__, or a.to(umem.host())", 8)
    elif not array._is_host:
        array = array.to(_core._host())
    if array.ndim != 1:
        fail(f"Arrow has one dimension, and the array {array.ndim}: a.reshape(-1), or one of its rows")
    flat = array if array.is_contiguous or array.dtype == "bool" else array.copy()
    form = _format_of(flat)
    return _core._arrow_export(flat, with_device, form, None)


# ---- from Arrow ----

def _with_type(array: Array, form: str) -> Array:
    """The array with the type of NumPy that dates and durations have."""
    if form.startswith("ts"):
        return array.view(f"M8[{_UNITS[form[2]]}]")
    if form.startswith("tD"):
        return array.view(f"m8[{_UNITS[form[2]]}]")
    if form == "tdm":
        return array.view("M8[ms]")
    return array.view(f"S{form[2:]}") if form.startswith("w:") else array


def _columns(value: Any) -> list[tuple[Any, Any]]:
    """The capsules of value: one pair, or those of its chunks, of which there is at least one."""
    if hasattr(value, "__arrow_c_device_array__"):
        return [value.__arrow_c_device_array__()]
    if hasattr(value, "__arrow_c_array__"):
        return [value.__arrow_c_array__()]
    if not hasattr(value, "__arrow_c_stream__"):
        fail(f"{type(value).__name__} is no column of Arrow: it has no __arrow_c_array__ and no __arrow_c_stream__", 5)
    schema, columns = _core._arrow_stream(value.__arrow_c_stream__())
    if not columns:
        fail(f"{type(value).__name__} is a stream of format {_core._arrow_format(schema)!r} without a column")
    return columns


def _join(parts: list[Array], place: Place | None) -> Array:
    if len(parts) == 1:
        return parts[0] if place is None or place is parts[0].place else parts[0].to(place)
    from .make import concatenate

    return concatenate(parts, dtype=parts[0].dtype, place=place or parts[0].place)


def _whole_validity(parts: list[tuple[Array, Array | None]], place: Place | None) -> Array | None:
    if all(flags is None for _, flags in parts):
        return None
    from .make import ones

    return _join([ones(array.shape, "bool") if flags is None else flags for array, flags in parts], place)


if TYPE_CHECKING:
    @overload
    def from_arrow(column: Any, place: Place | str | None = None) -> Array: ...
    @overload
    def from_arrow(column: Any, place: Place | str | None = None, *, validity: Literal[False]) -> Array: ...
    @overload
    def from_arrow(column: Any, place: Place | str | None = None, *,
                   validity: Literal[True]) -> tuple[Array, Array | None]: ...


def from_arrow(column: Any, place: Place | str | None = None, *,
               validity: bool = False) -> Array | tuple[Array, Array | None]:
    """An array of a column of Arrow, whose elements have a fixed width.

    It is over the memory of the column, and read-only, if the column is in one piece and no other place is named. Chunks
    are copied one after the other, each once, to where they belong. Booleans are copied, as Arrow has them as bits.

    Parameters
    ----------
    column : object with __arrow_c_device_array__, __arrow_c_array__ or __arrow_c_stream__
        Such as an Array or a ChunkedArray of pyarrow, or a Series of polars.
    place : Place or str, optional
        Where the array is. Default: where the column is, and RAM for several chunks.
    validity : bool, optional
        Whether to return which elements are there, too: an array of bool, or None if all are.

    Raises
    ------
    umem.NotSupportedError
        Elements are missing, and validity is False; or the column has a dictionary.
    umem.TypeError
        column is no column, or its elements have no fixed width.
    """
    where: Place | None = None if place is None else _core._find_new_place(place)
    pairs = _columns(column)
    form = _core._arrow_format(pairs[0][0]) or ""
    if form == "+s":
        fail(f"{type(column).__name__} has several columns: take one by its name", 5)
    parts = [_core._arrow_import(*pair, _device_place, validity) for pair in pairs]
    array = _join([_with_type(part, form) for part, _ in parts], where)
    return (array, _whole_validity(parts, where)) if validity else array


__all__ = ["from_arrow"]
