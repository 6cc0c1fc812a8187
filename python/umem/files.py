"""Arrays over bytes that others wrote, and arrays of files that grow."""
from __future__ import annotations

import os

from . import _core, dtypes, exchange, npy
from ._options import fail
from ._array import Array
from .places import File, MMap, Path, Place

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    Shape = int | Sequence[int]
    Mode = Literal["r", "r+", "w+", "c", "readonly", "readwrite", "write", "copyonwrite"]

_MODES = {"readonly": "r", "readwrite": "r+", "write": "w+", "copyonwrite": "c"}


def _extents(shape: Any) -> tuple[int, ...]:
    return (shape.__index__(),) if hasattr(shape, "__index__") else tuple(shape)


def _product(extents: Any) -> int:
    result = 1
    for extent in extents:
        result *= extent
    return result


def _strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...] | None:
    if order not in ("C", "F"):
        fail(f"order is {order!r}; known are 'C', 'F'")
    return None if order == "C" else tuple(itemsize * _product(shape[:k]) for k in range(len(shape)))


def at(place: Place | str, address: int, shape: Shape, dtype: Any = None, strides: Sequence[int] | None = None,
       order: str = "C") -> Array:
    """An array over bytes that are on a place already: memory of another library, or a part of a file.

    Nothing is checked but the form: the bytes must be there as long as the array is used. On a File it reads any bytes, and
    writes only those that are in an array of the place.

    Parameters
    ----------
    place : Place or str
    address : int
        Of the first element, as Array.address: a pointer, or an offset in a file. Any number: there is no alignment.
    shape : int or sequence of int
    dtype : umem.DType, str, type or NumPy dtype, optional
        Default: float64.
    strides : sequence of int, optional
        Bytes from element to element along each dimension. Default: those of order.
    order : {"C", "F"}
        Whether the last or the first index changes fastest.
    """
    where, extents = _core._find_place(place), _extents(shape)
    kind = dtypes.dtype("float64" if dtype is None else dtype)
    steps = _strides(extents, kind.itemsize, order) if strides is None else tuple(strides)
    return _core._borrow(where, address, kind, extents, steps, None, False)


def memmap(filename: Path, dtype: Any = "uint8", mode: Mode = "r+", offset: int = 0, shape: Shape | None = None,
           order: str = "C") -> Array:
    """An array of bytes of a file, which is mapped into memory: arguments and modes of numpy.memmap.

    Parameters
    ----------
    filename : str or os.PathLike
    dtype : umem.DType, str, type or NumPy dtype
    mode : {"r", "r+", "w+", "c"}
        To read; to read and write, which makes a file longer that is too short; a new file, or an old one emptied; to write
        to memory alone, which leaves the file as it is.
    offset : int
        Bytes before the first element. Any number: there is no alignment.
    shape : int or sequence of int, optional
        Default: as many elements as the file has behind offset.
    order : {"C", "F"}

    Raises
    ------
    umem.OSError
        The file cannot be opened, or another program writes it already.
    umem.ValueError
        The file has not so many bytes.
    """
    access: Any = _MODES.get(mode, mode)
    if access not in _MODES.values():
        fail(f"mode is {mode!r}; known are 'r', 'r+', 'w+', 'c'")
    if offset < 0:
        fail(f"offset is {offset}: it must be from 0")
    kind, length = dtypes.dtype(dtype), 0
    if access != "w+":
        with File(filename, "r") as file:
            length = file.info.capacity or 0
    elif shape is None:
        fail("mode 'w+' needs a shape")
    if shape is None:
        count, rest = divmod(max(length - offset, 0), kind.itemsize)
        if rest:
            fail(f"{length} bytes without the first {offset} are no whole number of elements of {kind}")
        shape = count
    extents = _extents(shape)
    end = offset + kind.itemsize * _product(extents)
    if access in "rc" and end > length:
        fail(f"{os.fsdecode(filename)!r} has {length} bytes, and {end} are needed")
    steps = _strides(extents, kind.itemsize, order)
    if access == "c":
        return _private(filename, kind, extents, steps, offset, end)
    place = MMap(filename, access)
    begin = _core._take_block(place, max(end, 1))
    return _core._borrow(place, begin + offset, kind, extents, steps, None, access == "r")


def _private(filename: Path, kind: Any, shape: tuple[int, ...], strides: Any, offset: int, end: int) -> Array:
    """An array in RAM over a mapping of a file that no write reaches."""
    import mmap

    if end == offset:
        return _core.empty(shape, kind)
    fd = os.open(filename, os.O_RDONLY | os.O_CLOEXEC)
    try:
        mapping = memoryview(mmap.mmap(fd, end, access=mmap.ACCESS_COPY))
    finally:
        os.close(fd)
    return _core._borrow(_core._host(), _core._buffer_address(mapping) + offset, kind, shape, strides, mapping, False)


# ---- arrays that grow ----

class _Rows:
    """The header before an array that may grow, and where it is in its file."""

    def __init__(self, path: Path, length: int) -> None:
        self.length = length
        self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        os.close(self._fd)

    def text(self, array: Array, rows: int) -> bytes:
        return npy.header(array.dtype, (rows, *array.shape[1:]), self.length)

    def write(self, array: Array, rows: int) -> None:
        """One call of the system: whoever kills the process finds the old header or the new one."""
        os.pwrite(self._fd, self.text(array, rows), 0)


def _check_growing(array: Array, rows: int) -> int:
    """The bytes before the array in its block."""
    if not array.ndim or not array.is_contiguous or getattr(array, "_whole", None) is not None:
        fail("only an array of rows without gaps and ghost cells can grow")
    if array.place.kind not in ("file", "mmap") or not array.place.info.name or array.read_only:
        fail("only an array of a umem.File or umem.MMap with a name, and that can be written, can grow", 8)
    if rows < 0:
        fail(f"an array cannot have {rows} rows")
    header = getattr(array, "_rows", None)
    return 0 if header is None else header.length


def _set_rows(array: Array, rows: int) -> None:
    """Resizes the block of the array. The header, if there is one, stays as it is."""
    before = _check_growing(array, rows)
    place, row = array.place, array.itemsize * _product(array.shape[1:])
    block, old, new = array.address - before, before + array.nbytes, before + row * rows
    shape, kind, owner = (rows, *array.shape[1:]), array.dtype, getattr(array, "_owner", None)
    owner = array[:] if owner is None else owner
    if new != old and not _core._resize_block(place, block, old, max(new, 1)):
        fail("the array is not the last one of its file: it cannot grow", 8)
    array._become(_core._borrow(place, block + before, kind, shape, None, owner, False))
    array._owner = owner


def resize(array: Array, rows: int) -> None:
    """See Array.resize."""
    _check_growing(array, rows)
    header, now = getattr(array, "_rows", None), array.shape[0]
    if header is not None and rows < now:
        header.write(array, rows)
    _set_rows(array, rows)
    if rows > now:
        array[now:] = 0
        if header is not None:
            header.write(array, rows)


def append(array: Array, rows: Any) -> None:
    """See Array.append."""
    given = exchange.find(rows, array.dtype)[0]
    _check_growing(array, 0)
    if given.shape[1:] != array.shape[1:] or not given.ndim:
        fail(f"rows of shape {given.shape[1:]} cannot follow those of shape {array.shape[1:]}")
    before = array.shape[0]
    after = before + given.shape[0]
    _set_rows(array, after)
    try:
        array[before:] = given
    except BaseException:
        _set_rows(array, before)
        raise
    header = getattr(array, "_rows", None)
    if header is not None:
        header.write(array, after)


def create_npy(path: Path, shape: Shape, dtype: Any = None, *, mapped: bool = True) -> Array:
    """A new .npy file of zeros, as an array that can be written, and that grows with append and resize.

    The file appears, or replaces an old one, with its header. From then on the header is always true, whenever the process
    is killed.

    Parameters
    ----------
    path : str or os.PathLike
    shape : int or sequence of int
        The first extent may be 0.
    dtype : umem.DType, str, type or NumPy dtype, optional
        Default: float64.
    mapped : bool
        Whether the array is on a umem.MMap, which NumPy uses without copies, or on a umem.File.
    """
    from .errors import of_system

    kind, extents = dtypes.dtype("float64" if dtype is None else dtype), _extents(shape)
    text = npy.header(kind, extents, 128 if len(extents) < 4 else 512)
    name = os.path.realpath(os.fsdecode(path))
    try:
        _replace(name, text, len(text) + kind.itemsize * _product(extents))
    except OSError as error:
        raise of_system(error, name) from None
    return open_npy(path, "r+", mapped=mapped)


def _replace(name: str, text: bytes, size: int) -> None:
    """Puts a file of size bytes, which begins with text, in the place of name, at once."""
    from tempfile import NamedTemporaryFile

    folder, base = os.path.split(name)
    with NamedTemporaryFile(dir=folder, prefix=f".{base}-", delete=False) as file:
        try:
            file.write(text)
            file.truncate(size)
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
            os.replace(file.name, name)
        except BaseException:
            os.unlink(file.name)
            raise


def open_npy(path: Path, mode: Literal["r", "r+", "a"] = "r", *, mapped: bool = True) -> Array:
    """The array of a .npy file, where it is: writes change the file.

    Parameters
    ----------
    path : str or os.PathLike
    mode : {"r", "r+", "a"}
        To read; to read and write, also to append rows. "a": "r+", and raises umem.ValueError now if rows cannot be
        appended.
    mapped : bool
        As of create_npy.
    """
    if mode not in ("r", "r+", "a"):
        fail(f"mode is {mode!r}; known are 'r', 'r+', 'a'")
    array, offset = npy.open_array(path, "r" if mode == "r" else "r+", MMap if mapped else File)
    if mode == "r":
        return array
    try:
        if not array.ndim or not array.is_contiguous:
            fail("an array without rows, or in Fortran's order, cannot grow")
        rows = _Rows(path, offset)
        rows.text(array, array.shape[0])
        array._rows = rows
    except ValueError as error:
        if mode == "a":
            fail(f"cannot append to {os.fsdecode(path)!r}: {error}")
    return array
