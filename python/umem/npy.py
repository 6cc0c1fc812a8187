"""Arrays in NumPy's .npy files, without NumPy."""
from __future__ import annotations

import os
import re

from . import _core, _options, dtypes, exchange
from ._options import fail
from ._array import Array
from .places import File, MMap, Path, Place

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any, Literal

_MAGIC = b"\x93NUMPY"


def header(kind: dtypes.DType, shape: tuple[int, ...], length: int | None = None) -> bytes:
    """The bytes before the elements: so many, or as few as there can be."""
    descr: Any = kind.str
    if not kind._has_format:
        from numpy.lib.format import dtype_to_descr

        described = kind.dtype
        descr = dtype_to_descr(described) if kind._named is not None else descr
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode("latin1")
    room = -(len(_MAGIC) + 4 + len(text) + 1) % 64 if length is None else length - len(_MAGIC) - 4 - len(text) - 1
    if room < 0:
        fail("its header has no room for more rows: umem.save makes a new file")
    text += b" " * room + b"\n"
    return _MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text


def save(path: Path, array: Any, *, durable: bool = False, reserve: str | None = None,
         direct: str | None = None) -> None:
    """Writes an array of any place to a .npy file.

    The file appears, or replaces an old one, when it is complete: whatever fails or interrupts the call leaves the old
    one as it was. A place without pointers needs no memory of the host for all of it.

    Parameters
    ----------
    path : str or os.PathLike
    array : Array, or what umem.asarray takes
    durable : bool
        Wait until the disk has the file, so that it outlives a power cut. That takes as long as the disk does.
    reserve : {"auto", "none"}, optional
        Disk space before the first byte is written, or as the bytes are.
    direct : {"auto", "on", "off"}, optional
        Long writes around the page cache. "on" fails where the file system cannot do that.

    Raises
    ------
    umem.OSError
        The file cannot be written, or the disk is full.
    umem.TypeError
        NumPy has no elements of this type. Those of ml_dtypes are of type "V2" or "V1" there: see Array.view.
    """
    reserves, directs = _options.words("file", {"reserve": reserve, "direct": direct})
    given = exchange.find(array)[0]
    _core._save(_options.path(path), header(given.dtype, given.shape), given, reserves, directs, durable)


def _read_header(where: Place, path: Path, name: str) -> tuple[Any, ...]:
    """The type, shape and strides of the elements, where they begin, and their bytes."""
    try:
        number, *rest, _ = _core._read_npy_header(where, name)
        if number:
            return dtypes._make(number), *rest
    except TypeError:  # of another order of bytes, or records
        pass
    from numpy.lib.format import open_memmap

    try:
        mapped = open_memmap(os.fsdecode(path), mode="r")
    except ValueError as error:
        return fail(f"{name}: {error}", 5)
    with open(path, "rb") as file:
        if re.search(rb"descr['\"]\s*:\s*\(", file.read(mapped.offset)):
            fail(f"{name}: its type has a shape, which belongs to arrays", 5)
    return dtypes.dtype(mapped.dtype), mapped.shape, mapped.strides, mapped.offset, mapped.nbytes


def load(path: Path, place: Place | str | None = None, *, mode: Literal["r", "r+"] = "r") -> Array:
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
        It is no .npy file, or shorter than its header says. Bytes behind the elements are left alone, as by NumPy.
    umem.TypeError
        Its elements are objects of Python.
    """
    if mode not in ("r", "r+"):
        fail(f"mode is {mode!r}; known are 'r', 'r+'")
    array, _ = open_array(path, mode if place is None else "r", MMap if place is None else File)
    return array if place is None else array.copy(place)


def open_array(path: Path, mode: Any, cls: type[File]) -> tuple[Array, int]:
    """The array of a file on a place of a class, and the byte at which its elements begin."""
    name = repr(os.fsdecode(path))
    with File(path, "r") as file:
        kind, shape, strides, offset, nbytes = _read_header(file, path, name)
    where = cls(path, mode)
    begin = _core._take_block(where, offset + nbytes)
    return _core._borrow(where, begin + offset, kind, shape, strides, None, mode == "r"), offset
