"""Arrays in NumPy's .npy files, without NumPy."""
from __future__ import annotations

import builtins
import os

from . import _core, _options
from ._options import fail
from .array import Array
from .dtypes import dtype
from .places import File, MMap, Path, Place

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

_MAGIC = b"\x93NUMPY"


def _header(array: Array) -> bytes:
    kind = array.dtype.kind
    if kind == "V":
        fail(f"a .npy file has no elements of {array.dtype}", 5)
    fields = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': {array.shape!r}, }}"
    text = fields.encode("latin1")
    text += b" " * (-(len(_MAGIC) + 4 + len(text) + 1) % 64) + b"\n"
    return _MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text


def save(path: Path, array: Array, *, reserve: str | None = None, direct: str | None = None) -> None:
    """Writes an array of any place to a .npy file.

    The file appears, or replaces an old one, when it is complete: whatever fails or interrupts the call leaves the old
    one as it was. A place without pointers needs no memory of the host for all of it.

    Parameters
    ----------
    path : str or os.PathLike
    array : Array
    reserve : {"auto", "none"}, optional
        Disk space before the first byte is written, or as the bytes are.
    direct : {"auto", "on", "off"}, optional
        Long writes around the page cache. "on" fails where the file system cannot do that.

    Raises
    ------
    umem.OSError
        The file cannot be written.
    umem.TypeError
        NumPy has no elements of this type.
    """
    words = _options.words("file", {"reserve": reserve, "direct": direct})
    _core._save(_options.path(path), _header(array), array, *words)


def _read_header(path: Path) -> tuple[int, str, tuple[int, ...], bool]:
    """Where the elements begin, their type, the shape, and whether they are in Fortran's order."""
    with builtins.open(path, "rb") as file:
        start = file.read(12)
        if start[:6] != _MAGIC or len(start) < 12 or start[6] not in (1, 2, 3):
            fail(f"{os.fsdecode(path)!r} is no .npy file of version 1, 2 or 3")
        begin = 10 if start[6] == 1 else 12
        length = int.from_bytes(start[8:begin], "little")
        file.seek(begin)
        text = file.read(length).decode("utf-8" if start[6] == 3 else "latin1")
    import ast

    try:
        fields = ast.literal_eval(text)
        descr, shape, fortran = fields["descr"], tuple(fields["shape"]), bool(fields["fortran_order"])
    except (KeyError, SyntaxError, TypeError, ValueError):
        fail(f"{os.fsdecode(path)!r} has a malformed header")
    if not isinstance(descr, str):
        fail(f"{os.fsdecode(path)!r} has records, which no umem.Array can hold", 5)
    return begin + length, descr, shape, fortran


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for extent in shape:
        strides.append(itemsize)
        itemsize *= extent
    return tuple(strides)


def load(path: Path, place: Place | None = None, *, mode: str = "r") -> Array:
    """An array of a .npy file.

    Parameters
    ----------
    path : str or os.PathLike
    place : Place, optional
        Where the array shall be: the elements are copied from the file. Default: none; the file is mapped into memory,
        nothing is read before it is used, and the array is on a umem.MMap.
    mode : {"r", "r+"}
        Of the mapping. "r": the array is read-only. "r+": writes change the file.

    Raises
    ------
    umem.ValueError
        It is no .npy file, or shorter than its header says.
    umem.TypeError
        Its elements are of a type that umem does not have, or in another order of bytes.
    """
    if mode not in ("r", "r+"):
        fail(f"mode is {mode!r}; known are 'r', 'r+'")
    offset, descr, shape, fortran = _read_header(path)
    kind = dtype(descr)
    nbytes = kind.itemsize
    for extent in shape:
        nbytes *= extent
    if os.stat(path).st_size < offset + nbytes:
        fail(f"{os.fsdecode(path)!r} is shorter than its header says: it should have {offset + nbytes} bytes")
    where = MMap(path, mode) if place is None else File(path, "r")
    begin = _core._take_block(where, offset + nbytes)
    strides = _strides(shape, kind.itemsize) if fortran else None
    array = _core._borrow(where, begin + offset, kind, shape, strides, None, mode == "r")
    return array if place is None else array.copy(place)
