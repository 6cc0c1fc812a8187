"""Regions of zarr arrays, from and to any place.

The package zarr opens arrays, and its codecs read and write chunks. Only chunks that are stored as plain elements in files of
this machine go by umem: from their file to the place, and back, as parts of files in one list of copies.
"""
from __future__ import annotations

import collections
import dataclasses
import errno
import functools
import itertools
import math
import operator
import os
import sys
import threading
import uuid
from collections.abc import Callable, Sequence

from . import _core, dtypes, exchange, transfer
from ._options import fail
from ._regions import Region, Selection, blocks_of, chunks_of, count, slices_of, spans_of
from ._array import Array
from .errors import Error, FileNotFoundError, OSError
from .files import at
from .places import File, Place

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

_BLOCK = 64 << 20  # bytes of RAM for a block on its way to another place
_DECODED, _READERS = 16 << 20, 4  # bytes of one that zarr decodes, and how many at a time: it has no pause between them
_FILES, _COPIES = 64, 4096  # of a list at most
_GOING = 8  # long copies on their way at a time: one file after the other reaches a GPU at half of the speed
_LONG_RUN = 32 << 10  # bytes: a list of shorter runs takes longer than a copy of the part as a whole
_PART = 1 << 20  # bytes: a shorter copy is done sooner than it is handed to another thread
_MISSING = (1 << 64) - 1  # offset and bytes of a chunk that a shard has not


# ---- how chunks are stored ----

@dataclasses.dataclass(frozen=True)
class _Shard:
    """The index of a shard."""

    inner: tuple[int, ...]  # how many chunks along each dimension
    order: str  # of the bytes of its numbers
    has_sum: bool
    at_end: bool

    @property
    def nbytes(self) -> int:
        return 16 * math.prod(self.inner) + (4 if self.has_sum else 0)

    def read(self, file: File, name: str) -> Any:
        """Offsets and bytes of the chunks of a shard, checked as a whole."""
        import numpy

        length = file.info.capacity or 0
        if length < self.nbytes:
            fail(f"{name}: a shard of {length} bytes has no index of {self.nbytes} bytes")
        text = at(file, length - self.nbytes if self.at_end else 0, self.nbytes, "uint8").tobytes()
        if self.has_sum:
            text, told = text[:-4], int.from_bytes(text[-4:], "little")
            if _checksum(text) != told:
                fail(f"{name}: the index of the shard has another checksum than crc32c says")
        return numpy.frombuffer(text, f"{self.order}u8").reshape(*self.inner, 2)

    def write(self, numbers: Any) -> bytes:
        text: bytes = numbers.astype(f"{self.order}u8").tobytes()
        return text + (_checksum(text).to_bytes(4, "little") if self.has_sum else b"")


def _checksum(text: bytes) -> int:
    from importlib import import_module

    try:
        return int(import_module("google_crc32c").value(text))
    except ImportError:  # older versions of zarr need another package
        return int(import_module("crc32c").crc32c(text))


@dataclasses.dataclass(frozen=True)
class _Plain:
    """Where the elements of an array are that is stored without compression in files of this machine."""

    array: Any
    folder: str
    stored: Any  # the type of NumPy of the elements in the files
    extents: tuple[int, ...]  # of what a file has
    chunk: tuple[int, ...]  # of what is stored as one run: of a chunk in a shard, else extents
    strides: tuple[int, ...]
    shard: _Shard | None

    @property
    def nbytes(self) -> int:
        """Of a chunk."""
        return math.prod(self.chunk) * int(self.stored.itemsize)

    @functools.cached_property
    def kind(self) -> dtypes.DType:
        return dtypes.dtype(self.stored)

    def path(self, numbers: tuple[int, ...]) -> str:
        return os.path.join(self.folder, self.array.metadata.encode_chunk_key(numbers))

    def chunk_at(self, file: File, offset: int) -> Array:
        chunk: Array = _core._borrow(file, offset, self.kind, self.chunk, self.strides, None, False)
        return chunk

    def fill_value(self) -> Any:
        """The value of missing chunks, as an array of NumPy without dimensions."""
        import numpy

        value = self.array.fill_value
        if value is None:  # of the second version of the format
            value = "NaT" if self.stored.kind in "mM" else numpy.zeros((), self.stored)[()]
        return numpy.asarray(value).astype(self.stored)


def _run_of(codecs: list[Any], ndim: int) -> tuple[list[int], str] | None:
    """In which order the dimensions of a chunk are stored, the last one without gaps, and the order of the bytes. None: not
    as plain elements."""
    order = list(range(ndim))
    for codec in codecs[:-1]:
        turn = codec.get("configuration", {}).get("order")
        if codec["name"] != "transpose" or not isinstance(turn, (list, tuple)) or sorted(turn) != list(range(ndim)):
            return None
        order = [order[k] for k in turn]
    if not codecs or codecs[-1]["name"] != "bytes":
        return None
    return order, ">" if codecs[-1].get("configuration", {}).get("endian") == "big" else "<"


def _shard_of(codecs: list[Any], extents: tuple[int, ...]) -> tuple[list[Any], tuple[int, ...], _Shard] | None:
    """The codecs and extents of the chunks of a shard, and its index. None: one that umem does not read."""
    options = codecs[0]["configuration"]
    chunk, index = tuple(options["chunk_shape"]), list(options["index_codecs"])
    has_sum = len(index) == 2 and index[1]["name"] == "crc32c"
    numbers = _run_of(index[:1], 0)
    if len(codecs) > 1 or numbers is None or len(index) != 1 + has_sum or any(map(operator.mod, extents, chunk)):
        return None
    inner = tuple(map(operator.floordiv, extents, chunk))
    return list(options["codecs"]), chunk, _Shard(inner, numbers[1], has_sum, options.get("index_location") != "start")


def _strides_of(chunk: tuple[int, ...], order: list[int], itemsize: int) -> tuple[int, ...]:
    strides, step = [0] * len(chunk), itemsize
    for k in reversed(order):
        strides[k], step = step, step * chunk[k]
    return tuple(strides)


def _grid(array: Any) -> tuple[int, ...] | None:
    """The extents of what a key of the store has. None: not all are the same."""
    described = array.metadata.to_dict()
    if array.metadata.zarr_format == 2:
        extents = tuple(described["chunks"])
    elif described["chunk_grid"]["name"] == "regular":
        extents = tuple(described["chunk_grid"]["configuration"]["chunk_shape"])
    else:
        return None
    return extents if all(extents) else None


def _plain_v2(described: dict[str, Any], dtype: Any, ndim: int) -> tuple[list[int], Any] | None:
    if described.get("compressor") is not None or described.get("filters"):
        return None
    return list(range(ndim))[::-1 if described["order"] == "F" else 1], dtype


def _find_plain(array: Any) -> _Plain | None:
    """None if chunks of the array are not plain elements in files of this machine: then zarr reads and writes them."""
    from importlib import import_module

    store, described, grid = array.store_path.store, array.metadata.to_dict(), _grid(array)
    if type(store) is not import_module("zarr.storage").LocalStore or grid is None or not array.dtype.itemsize:
        return None
    folder, chunk, shard = os.path.join(store.root, array.store_path.path), grid, None
    if array.metadata.zarr_format == 2:
        run = _plain_v2(described, array.dtype, len(grid))
    else:
        codecs = list(described["codecs"])
        if described.get("storage_transformers") or array.dtype.kind not in "biufcmM":
            return None
        if codecs[0]["name"] == "sharding_indexed":
            found = _shard_of(codecs, grid)
            if found is None:
                return None
            codecs, chunk, shard = found
        elements = _run_of(codecs, len(grid))
        run = elements and (elements[0], array.dtype.newbyteorder(elements[1]))
    if run is None:
        return None
    return _Plain(array, folder, run[1], grid, chunk, _strides_of(chunk, run[0], array.dtype.itemsize), shard)


# ---- plain chunks ----

class _Copies:
    """Long copies on their way, several at a time, and lists of short ones. A context manager, which waits for all at its end."""

    def __init__(self) -> None:
        self._files, self._pairs = 0, list[tuple[Array, Array]]()
        self._going = collections.deque[transfer.Transfer]()

    def add_file(self) -> None:
        self._files += 1

    def add(self, dst: Array, src: Array) -> None:
        if dst.nbytes >= _PART:
            self._start(transfer.start(dst, src))
        elif _run(dst.shape, dst.itemsize, dst.strides, src.strides) < min(_LONG_RUN, dst.nbytes):
            transfer.copy(dst, src)
        else:
            self._pairs.append((dst, src))
            if self._files >= _FILES or len(self._pairs) >= _COPIES:
                self._copy_list()

    def _copy_list(self) -> None:
        pairs, self._pairs, self._files = self._pairs, [], 0
        if pairs:
            transfer.copy_many(pairs)

    def _start(self, started: transfer.Transfer) -> None:
        self._going.append(started)
        if len(self._going) > _GOING:
            self._going.popleft().wait()

    def __enter__(self) -> _Copies:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self._copy_list()
        for started in self._going:
            if kind is not None:
                started.cancel()
        while self._going:
            started = self._going.popleft()
            try:
                started.wait()
            except Error:
                if kind is None:
                    raise


def _run(shape: Sequence[int], itemsize: int, strides: Sequence[int], others: Sequence[int]) -> int:
    """How many bytes follow one another in two arrays of these strides."""
    nbytes = itemsize
    for extent, *steps in zip(shape[::-1], strides[::-1], others[::-1]):
        if extent > 1 and steps != [nbytes, nbytes]:
            break
        nbytes *= extent
    return nbytes


def _open(path: str) -> File | None:
    """The file of a chunk. None: there is none, or a folder in its place, or a file in that of its folder, as zarr has it."""
    try:
        return File(path, "r")
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ENOTDIR or os.path.isdir(path):
            return None
        raise


def _read_plain(plain: _Plain, region: Region, dst: Array) -> None:
    """Reads a region. dst: has a type of the bytes in the files."""
    fill = plain.fill_value()
    with _Copies() as copies:
        for numbers, part, inside in chunks_of(region, plain.extents):
            path = plain.path(numbers)
            file = _open(path)
            if file is None:
                dst[part] = fill
                continue
            copies.add_file()
            if plain.shard:
                _read_shard(plain, plain.shard, file, path, inside, dst[part] if part else dst, fill, copies)
                continue
            if file.info.capacity != plain.nbytes:
                fail(f"{path}: a chunk of {file.info.capacity} bytes, expected {plain.nbytes}")
            _add_part(copies, dst, part, plain.chunk_at(file, 0), inside)


def _add_part(copies: _Copies, dst: Array, part: tuple[slice, ...], chunk: Array, inside: Region) -> None:
    """To a part of dst from a part of a chunk. Arrays without dimensions have no parts."""
    copies.add(dst[part] if part else dst, chunk[slices_of(inside)] if part else chunk)


def _read_shard(plain: _Plain, shard: _Shard, file: File, path: str, region: Region, dst: Array, fill: Any,
                copies: _Copies) -> None:
    index, length = shard.read(file, path), file.info.capacity or 0
    for numbers, part, inside in chunks_of(region, plain.chunk):
        offset, nbytes = map(int, index[numbers])
        if offset == nbytes == _MISSING:
            dst[part] = fill
            continue
        if nbytes != plain.nbytes or offset + nbytes > length:
            fail(f"{path}: chunk {numbers} of the shard has {nbytes} bytes at {offset}, expected {plain.nbytes} of {length}")
        _add_part(copies, dst, part, plain.chunk_at(file, offset), inside)


def _interior(axis: range, extent: int, size: int) -> list[tuple[int, int, bool]]:
    """Cuts the indices along a dimension of a size into those of whole chunks, and those before and behind."""
    spans = spans_of(axis, extent)
    whole = [axis.step == 1 and axis[begin] == chunk * extent and (end - begin == extent or axis[end - 1] == size - 1)
             for chunk, begin, end in spans]
    first = whole.index(True) if any(whole) else len(spans)
    last = len(spans) - whole[::-1].index(True) if any(whole) else len(spans)
    ends = [0, *(end for _, _, end in spans)]
    cuts = (ends[0], ends[first], False), (ends[first], ends[last], True), (ends[last], ends[-1], False)
    return [cut for cut in cuts if cut[0] < cut[1]]


def _write_plain(plain: _Plain, region: Region, src: Array) -> None:
    """Writes chunks that a region has as a whole: each file appears, or replaces an old one, when it is complete."""
    chunks = chunks_of(region, plain.extents)
    while some := list(itertools.islice(chunks, _FILES)):
        written: list[tuple[str, str]] = []
        try:
            with _Copies() as copies:
                files = [_fill_file(plain, plain.path(numbers), written, copies, inside, src[part] if part else src)
                         for numbers, part, inside in some]
            for file in files:
                file.close()
            while written:
                os.replace(*written[0])
                written.pop(0)
        finally:
            for name, _ in written:
                os.unlink(name)


def _fill_file(plain: _Plain, path: str, written: list[tuple[str, str]], copies: _Copies, region: Region, src: Array) -> File:
    """A new file that shall have a path later, and copies of the chunks that it has."""
    import numpy

    folder, base = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    name = os.path.join(folder, f".{base}.{uuid.uuid4().hex}.partial")
    chunks = list(chunks_of(region, plain.chunk)) if region else [((), (), ())]
    index, head = plain.shard, plain.shard.nbytes if plain.shard else 0
    begin = 0 if index is None or index.at_end else head
    file = File(name, "w+")
    written.append((name, path))
    _core._take_block(file, plain.nbytes * len(chunks) + head)
    for k, (_, part, inside) in enumerate(chunks):
        chunk = plain.chunk_at(file, begin + k * plain.nbytes)
        if count(inside) < math.prod(plain.chunk):
            chunk[...] = plain.fill_value()
        copies.add(chunk[slices_of(inside)] if part else chunk, src[part] if part else src)
    if index is not None:
        numbers = numpy.full((*index.inner, 2), _MISSING, "u8")
        for k, (position, _, _) in enumerate(chunks):
            numbers[position] = begin + k * plain.nbytes, plain.nbytes
        text = index.write(numbers)
        at(file, len(chunks) * plain.nbytes if index.at_end else 0, len(text), "uint8")[...] = numpy.frombuffer(text, "u1")
    return file


# ---- by zarr ----

def _cpu() -> Any:
    """What zarr calls its buffers in RAM, also where zarr.config.enable_gpu() has chosen others."""
    from importlib import import_module

    return import_module("zarr.buffer.cpu")


def _read_by_zarr(array: Any, region: Region, dst: Any) -> None:
    """Reads a region into an array of NumPy."""
    cpu = _cpu()
    array.get_basic_selection(slices_of(region), out=cpu.NDBuffer.from_numpy_array(dst), prototype=cpu.buffer_prototype)


def _write_by_zarr(array: Any, region: Region, src: Array) -> None:
    """Writes a region, a block after the other; the next one is brought to RAM while zarr writes."""
    extents, most = _grid(array) or (1,) * len(region), _BLOCK // src.itemsize
    blocks = [(src[part] if part else src, inside) for part, inside in blocks_of(region, extents, most)]
    if src._is_host:
        blocks = [(src, region)]
    coming: list[tuple[Array, Any]] = []

    def fetch(block: Array) -> None:
        if block._is_host:
            coming.append((block, None))
            return
        room = _core.empty(block.shape, block.dtype, _core._host())
        coming.append((room, transfer.start(room, block)))

    fetch(blocks[0][0])
    for k, (_, inside) in enumerate(blocks):
        room, transferred = coming.pop()
        if transferred is not None:
            transferred.wait()
        if k + 1 < len(blocks):
            fetch(blocks[k + 1][0])
        elements = exchange.to_numpy(room, False).astype(array.dtype, copy=False)
        array.set_basic_selection(slices_of(inside), elements, prototype=_cpu().buffer_prototype)


# ---- both ----

def _read_host(array: Any, plain: _Plain | None, region: Region, dst: Array) -> None:
    """Reads a region into an array that the CPU can use."""
    if plain is None:
        _read_by_zarr(array, region, exchange.to_numpy(dst, False))
    elif dst.dtype == plain.stored:
        _read_plain(plain, region, dst)
    else:
        _read_plain(plain, region, dst.view(plain.kind) if dst.is_contiguous else _as_stored(plain, dst))
        exchange.to_numpy(dst, False).byteswap(inplace=True)


def _as_stored(plain: _Plain, dst: Array) -> Array:
    same: Array = _core._borrow(dst.place, dst._hand_out(), plain.kind, dst.shape, dst.strides, dst, dst.read_only)
    return same


def _is_scattered(plain: _Plain, dst: Array) -> bool:
    """Whether chunks are small, and their rows short: they are put together in RAM sooner than on another place."""
    shape = tuple(map(min, plain.chunk, dst.shape))
    run = _run(shape, dst.itemsize, dst.strides, plain.strides)
    return plain.nbytes < _PART and run < min(_LONG_RUN, math.prod(shape) * dst.itemsize)


class _Reading:
    """A block that another thread reads into an array in RAM. Python may end before it does."""

    def __init__(self, read: Callable[[], None]) -> None:
        self._read, self._error = read, list[BaseException]()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as error:
            self._error.append(error)

    def wait(self) -> None:
        self._thread.join()
        if self._error:
            raise self._error[0]


def _read_staged(array: Any, plain: _Plain | None, region: Region, dst: Array) -> None:
    """Reads a region through blocks in RAM, which are used again: several are decoded while others go to their place."""
    extents = _grid(array) or (1,) * len(region)
    most, readers = (_BLOCK, 1) if plain else (_DECODED, _READERS)
    reading, going = collections.deque[tuple[Array, Array, _Reading | None]](), collections.deque[tuple[Array, transfer.Transfer]]()
    free: list[Array] = []

    def send() -> None:
        there, room, block = reading.popleft()
        if block:
            block.wait()
        going.append((room, transfer.start(there, room)))
        if len(going) > 1:
            free.append(going[0][0])
            going.popleft()[1].wait()

    for part, inside in blocks_of(region, extents, most // dst.itemsize):
        shape = tuple(map(len, inside))
        free = [room for room in free if room.shape == shape]
        room = free.pop() if free else _core.empty(shape, dst.dtype, _core._host())
        read = functools.partial(_read_host, array, plain, inside, room)
        if plain:
            read()
        reading.append((dst[part] if part else dst, room, None if plain else _Reading(read)))
        if len(reading) == readers:
            send()
    while reading:
        send()
    for _, last in going:
        last.wait()


def _check_array(array: Any) -> None:
    zarr: Any = sys.modules.get("zarr")
    if zarr is None or not isinstance(array, zarr.Array):
        fail(f"{type(array).__name__} is no zarr.Array, such as zarr.open_array returns", 5)


def _native(array: Any) -> Any:
    """The type of NumPy that elements have in memory."""
    return array.dtype.newbyteorder("=") if array.dtype.kind in "biufcmMSU" else array.dtype


def from_zarr(array: Any, selection: Any = ..., place: Place | str | None = None, *, out: Array | None = None) -> Array:
    """A region of a zarr array, as a new array on a place.

    Chunks that are stored without compression in files of this machine, also in shards, go from the file to the place; only
    the part that is selected is read. Of all others zarr reads and decodes several chunks at a time; if the CPU cannot use the
    place, through five blocks in RAM of 16 MiB, or of a chunk where one is larger. Missing chunks have the fill value.

    Parameters
    ----------
    array : zarr.Array
        Of any store and of both versions of the format.
    selection : int, slice, Ellipsis, or tuple of these, optional
        As of NumPy: negative integers and steps, too. Default: the whole array.
    place : Place or str, optional
        Default: umem.host().
    out : Array, optional
        Where the elements go instead: of the shape of the region, and of its type or of that in the files.

    Returns
    -------
    Array
        Its numbers have the order of bytes of this machine, whatever the order in the files is.

    Raises
    ------
    umem.ValueError
        A file has another length than its chunk, or the index of a shard contradicts itself or its file.
    umem.TypeError
        umem has no elements of this type, such as texts of any length.
    Exception
        What zarr, its codecs and its store raise arrives as it is. Parts of out may have changed then.
    """
    _check_array(array)
    chosen, kind = Selection(selection, array.shape), dtypes.dtype(_native(array))
    if out is None:
        out = _core.empty(chosen.shape, kind, _core._find_new_place("host:" if place is None else place))
    elif place is not None:
        fail("give a place or out: the elements go to one of them")
    plain = _find_plain(array)
    if out.shape != chosen.shape:
        fail(f"out has the shape {out.shape}, and the region {chosen.shape}")
    if out.dtype != kind and (plain is None or out.dtype != plain.stored):
        fail(f"out has elements of {out.dtype}, and the region of {kind}", 5)
    if out.size:
        dst = chosen.whole(out, out.dtype)
        if plain is not None and dst.dtype == plain.stored and (dst._is_host or not _is_scattered(plain, dst)):
            _read_plain(plain, chosen.region, dst)
        else:
            (_read_host if dst._is_host else _read_staged)(array, plain, chosen.region, dst)
    return out


def to_zarr(source: Any, array: Any, selection: Any = ...) -> None:
    """Writes elements of any place to a region of a zarr array.

    Chunks that are written as a whole, stored without compression in files of this machine, come from the place; shards, too. Each
    file appears, or replaces an old one, when it is complete. All other chunks are written by zarr, which reads them first if the
    region has a part of them; from places that the CPU cannot use through blocks in RAM, as of from_zarr. Chunks that have
    only the fill value may be written, too.

    Parameters
    ----------
    source : Array, or what umem.asarray takes
        Of the shape of the region, and of the type of the array.
    array : zarr.Array
    selection : int, slice, Ellipsis, or tuple of these, optional
        As of from_zarr.

    Raises
    ------
    umem.ValueError
        The shapes differ, or the store can only be read.
    umem.OSError
        A file cannot be written, or the disk is full. Some chunks may be new then, and none is half.
    Exception
        What zarr, its codecs and its store raise arrives as it is.
    """
    _check_array(array)
    chosen, kind = Selection(selection, array.shape), dtypes.dtype(_native(array))
    given = exchange.find(source, kind if isinstance(source, (bool, int, float, complex, list, tuple)) else None)[0]
    if array.read_only:
        fail("the store of the zarr array was opened to read only")
    if given.shape != chosen.shape:
        fail(f"the source has the shape {given.shape}, and the region {chosen.shape}")
    if given.dtype != kind:
        fail(f"the source has elements of {given.dtype}, and the zarr array of {kind}: astype() converts them", 5)
    if not given.size:
        return
    plain, src = _find_plain(array), chosen.whole(given, kind)
    if plain is None or plain.kind != kind:
        _write_by_zarr(array, chosen.region, src)
        return
    cuts = map(_interior, chosen.region, plain.extents, array.shape)
    for boxes in itertools.product(*cuts):
        part = tuple(slice(begin, end) for begin, end, _ in boxes)
        inside, piece = tuple(axis[cut] for axis, cut in zip(chosen.region, part)), src[part] if part else src
        if all(whole for _, _, whole in boxes):
            _write_plain(plain, inside, piece)
        else:
            _write_by_zarr(array, inside, piece)
