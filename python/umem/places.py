"""Places where arrays are: RAM, files, GPUs, and adaptors over them."""
from __future__ import annotations

import os
from contextvars import ContextVar

from . import _core
from ._options import fail, read, size

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, Literal, TypeVar

    from ._array import Array

    _P = TypeVar("_P", bound="Place")
    FileMode = Literal["r", "r+", "w", "w+", "a", "a+"]

Path = str | bytes | os.PathLike[str]
Size = int | str

# umemCapability
CPU_READABLE, CPU_WRITABLE, DEVICE_ACCESSIBLE, READABLE, WRITABLE, ORDERED, CONCURRENT, OFFSETS = (
    1 << bit for bit in range(8))


class Info:
    """What a place knows about itself; sizes in bytes, None for what it does not know."""

    __slots__ = ("alignment", "available", "capacity", "name", "nodes", "ordinal", "page_size", "stream")
    name: str
    capacity: int | None
    available: int | None
    page_size: int | None
    alignment: int
    ordinal: int | None
    stream: int | None
    nodes: tuple[int, ...] | None

    def __init__(self, *values: Any) -> None:
        names = ("name", "capacity", "available", "page_size", "alignment", "ordinal", "stream")
        for name, value in zip(names, values):
            setattr(self, name, value)
        nodes = values[-1]
        self.nodes = None if nodes is None else tuple(n for n in range(64) if nodes >> n & 1)

    def __repr__(self) -> str:
        return f"Info({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class Place(_core.Place):
    """The base of all places. Make one of the classes below, or use `umem.open`.

    A place is a context manager: `close` ends it. Without that it ends when neither the program nor an array nor
    another place uses it any more. Adaptors keep the place below alive, and arrays their place.

    Any thread may use a place. Calls that may block release the GIL.
    """

    _upstream: Place | None
    _kind = ""

    def __init__(self, upstream: Place | str | None, where: Any = None, **options: Any) -> None:
        place, values = read(self._kind, where, options)
        super().__init__(self._kind, upstream, place, values)

    def __enter__(self: _P) -> _P:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    @property
    def upstream(self) -> Place | None:
        """The place below; None where there is none."""
        below = self._upstream
        return self._layer_below() if below is None else below

    def layer(self, kind: str) -> Place:
        """The first place of a kind, such as "stats", in the stack of this place: itself, or one below.

        Raises
        ------
        umem.ValueError
            The stack has no such layer.
        """
        found: Place | None = self
        while found is not None and found.kind != kind:
            found = found.upstream
        return fail(f"{self!r} has no layer {kind!r}") if found is None else found

    @property
    def info(self) -> Info:
        """Name, sizes in bytes, number of the GPU and stream, as far as the place knows them."""
        return Info(*self._info())

    @property
    def stack(self) -> str:
        """The kinds of all layers, as in umem.open: "pool+stats+host"."""
        below = self.upstream
        return self.kind if below is None else f"{self.kind}+{below.stack}"

    def _describe(self) -> str:
        info = self.info
        where = f" {info.name!r}" if info.name else "" if info.ordinal is None else f" {info.ordinal}"
        label = f" labelled {self.label!r}" if self.label else ""
        return f"{self.stack}{where}{label}"

    def __repr__(self) -> str:
        return f"<umem.{type(self).__name__}: {'closed' if self.closed else self._describe()}>"

    def __eq__(self, other: object) -> bool:
        """Whether both are the same memory: an address means the same byte."""
        if self is other or not isinstance(other, Place):
            return self is other
        return not (self.closed or other.closed) and self.is_same_memory(other)

    def __hash__(self) -> int:
        return hash(Place)  # places of one memory may be of several kinds

    def __reduce__(self) -> Any:
        fail("a place cannot be pickled: open it in the other process", 5)


class Host(Place):
    """RAM. All without parameters are the same memory: `umem.Host() == umem.host()`, and `to` makes no copy between them.

    With parameters the memory is on chosen nodes of the machine (NUMA), or on pages of a chosen size. Each array then has
    whole pages of its own: put a Pool over it for small arrays.

    Parameters
    ----------
    nodes : int or str, optional
        Numbers and ranges, as in "0,2-3".
    policy : {"default", "bind", "prefer", "interleave", "first-touch"}, optional
        On these nodes alone; on one node as long as it has memory; page after page on all of them; or each page on the
        node of the thread that touches it first. Default: with nodes "bind", else that of the process.
    pages : {"default", "2M", "1G"}, optional
        Huge pages, which the administrator has set aside.

    Raises
    ------
    umem.ValueError
        The process may not use these nodes.
    umem.NotSupportedError
        The kernel has no NUMA or no such pages, or a container forbids its calls.
    """

    _kind = "host"

    def __init__(self, *, nodes: int | str | None = None, policy: str | None = None, pages: str | None = None) -> None:
        super().__init__(None, nodes=None if nodes is None else str(nodes), policy=policy, pages=pages)


class File(Place):
    """Arrays in a file, which umem reads and writes with system calls. The CPU has no pointers to them.

    Arrays follow one another from the beginning of the file in the order in which they are made, so a program that
    makes the same arrays again finds them again.

    Parameters
    ----------
    path : str, os.PathLike or None
        None: a file without a name, which ends with the place.
    mode : {"r", "r+", "w", "w+", "a", "a+"}, optional
        As of open(). Default: "r+", without a path "w+".
    reserve : {"auto", "none"}, optional
        Disk space when an array is made, or when it is written.
    direct : {"auto", "on", "off"}, optional
        Long transfers around the page cache.
    reuse : bool
        In a file with a path, an array that ends leaves its bytes there: no later array takes them while the file is
        open. `Array.release` gives them free. True: the end of an array does so, too.

    Raises
    ------
    umem.OSError
        The file cannot be opened, is no regular file, or has a writer already.
    """

    _kind = "file"

    def __init__(self, path: Path | None = None, mode: FileMode | None = None, *,
                 reserve: Literal["auto", "none"] | None = None, direct: Literal["auto", "on", "off"] | None = None,
                 reuse: bool = False) -> None:
        super().__init__(None, path, mode=mode, reserve=reserve, direct=direct, reuse="yes" if reuse else None)


class MMap(File):
    """Arrays in a file that is mapped into memory: NumPy uses them without copies. Parameters as of File."""

    _kind = "mmap"


class Shm(Place):
    """Memory that several processes of this machine share.

    Its arrays pickle to handles: multiprocessing passes them to other processes without a copy, through queues, pipes and
    arguments. There they are arrays on a Host, over the same memory. An array does not know who else uses its memory:
    keep it until the other processes are done with theirs.

    Parameters
    ----------
    name : str or None
        Under which processes open the same memory. None: only processes that are given its arrays have it.
    size : int or str
        Bytes for all arrays, as "64M". May be left out for a name that exists.
    blocks : int, optional
        The most arrays at a time. Default: one for each 4 KiB.
    how : {"open-or-create", "create", "open"}, optional
        What is done about the name.
    pages : {"default", "advise", "2M", "1G"}, optional
        Huge pages.
    access : {"user", "group", "all"}, optional
        Who may open a new name. Default: "user".
    sparse : bool
        Take memory when it is used, and not now.
    trust : {"user", "group", "all"}, optional
        Whose memory is opened: that of this user that nobody else may write, also that of a group, or that of everybody.
        Default: as ``access``.
    incomplete : bool
        New arrays are incomplete until ``complete`` is called: a reader can tell if their writer was killed before.

    Raises
    ------
    umem.MemoryError
        There is not so much memory.
    umem.OSError
        The name cannot be opened, or belongs to a user who is not trusted.
    """

    _kind = "shm"

    def __init__(self, name: str | None = None, size: Size | None = None, *, blocks: int | None = None,
                 how: str | None = None, pages: str | None = None, access: str | None = None,
                 sparse: bool = False, trust: str | None = None, incomplete: bool = False) -> None:
        super().__init__(None, name, size=size, blocks=blocks, how=how, pages=pages, access=access,
                         sparse="yes" if sparse else None, trust=trust, incomplete="yes" if incomplete else None)

    @staticmethod
    def complete(array: Array) -> None:
        """Say that the elements of an array are written. `umem cp` reads no incomplete array."""
        _core._complete_shm(array)

    @staticmethod
    def is_complete(array: Array) -> bool:
        """Whether the writer of an array has said that its elements are written."""
        return _core._is_complete_shm(array)

    @staticmethod
    def remove(name: str) -> None:
        """Remove a name. Processes that have the memory keep it."""
        _core._remove_shm(name)


class Cuda(Place):
    """Memory of a GPU, in the order of CUDA's legacy default stream.

    Parameters
    ----------
    device : int
        The number of the GPU, from 0.

    Raises
    ------
    umem.NotSupportedError
        This build has no CUDA, or this machine no driver or no GPU.
    """

    _kind = "cuda"

    def __init__(self, device: int = 0) -> None:
        super().__init__(None, device)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The stream of the place, as the protocol of that name says: version 0, and the number."""
        stream = self.info.stream
        return 0, (0 if stream is None else stream)


class CudaHost(Place):
    """Pinned host memory, which GPUs copy at the speed of the link.

    Parameters
    ----------
    write_combined : bool
        Memory around the caches of the CPU, which is very slow to read.
    """

    _kind = "cuda-host"

    def __init__(self, *, write_combined: bool = False) -> None:
        super().__init__(None, flags="write-combined" if write_combined else None)


class CudaManaged(Cuda):
    """Memory that the CPU and all GPUs address, and the driver moves.

    Parameters
    ----------
    device : int
        The GPU for which the hints are.
    flags : str or iterable of str, optional
        Of "prefer-device", "read-mostly", "accessed-by-device", "prefetch".
    oversubscribe : bool
        Live arrays may have more bytes than the GPU has memory; the rest is in RAM.
    """

    _kind = "cuda-managed"

    def __init__(self, device: int = 0, *, flags: str | Iterable[str] | None = None,
                 oversubscribe: bool = False) -> None:
        Place.__init__(self, None, device, flags=flags, oversubscribe="yes" if oversubscribe else None)


class CudaAsync(Cuda):
    """Memory of a GPU in the order of a stream of its own.

    Parameters
    ----------
    device : int
    stream : {"new", "legacy"}, int, or object with __cuda_stream__
        "new": the place makes a stream. A number is a cudaStream_t of the program, which must live longer than the
        place; the place keeps an object with `__cuda_stream__` alive.
    max, keep : int or str, optional
        Bytes that the driver's pool may hold, and that it keeps when they are unused.
    share : bool
        The arrays pickle to handles: multiprocessing passes them to other processes without a copy. There they are arrays
        on a Cuda, over the same memory. Keep an array until the other processes are done with theirs.
    """

    _kind = "cuda-async"

    def __init__(self, device: int = 0, *, stream: Any = "new", max: Size | None = None,
                 keep: Size | None = None, share: bool = False) -> None:
        if isinstance(stream, str):
            Place.__init__(self, None, device, stream=stream, max=max, keep=keep, share="yes" if share else None)
            return
        number = stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else size(stream, "stream")
        limits = [None if value is None else size(value, "max or keep") for value in (max, keep)]
        self._stream = stream
        _core.Place.__init__(self, self._kind, None, None, (), (size(device, "device"), number, *limits, share))


class CudaPrefetch(Place):
    """An adaptor over managed memory that moves each new array to the GPU before its first use."""

    _kind = "cuda-prefetch"

    def __init__(self, upstream: Place | str) -> None:
        super().__init__(upstream)


class Pool(Place):
    """Makes many arrays of few large blocks of another place, and keeps freed ones for later.

    Parameters
    ----------
    upstream : Place
    initial : int or str, optional
        Bytes that it takes at once: 4096, "1G", or "50%" of what is free in upstream.
    growth : int or str, optional
        The least bytes of each further block. Default: as many as it has, from 1 to 64 MiB.
    max : int or str, optional
        The most bytes that it ever holds, also in percent. Default: no bound.
    memory : {"pages", "chunks"}, optional
        "pages", the default, takes as little memory as possible, where the upstream can map pages. "chunks" take less
        time for large blocks of sizes that vary.
    spare : int, optional
        With pages, in percent of the most bytes that were ever in use at once: a pool that moves pages may have so many
        beyond those, to move fewer. With 0 it has at most 1.6 percent, and takes longer. Default: 10.
    """

    _kind = "pool"

    def __init__(self, upstream: Place | str, *, initial: Size | None = None, growth: Size | None = None,
                 max: Size | None = None, memory: str | None = None, spare: int | None = None) -> None:
        super().__init__(upstream, initial=initial, growth=growth, max=max, memory=memory, spare=spare)

    @property
    def figures(self) -> dict[str, Any]:
        """Bytes used and reserved, their peaks and the factor between these, the largest free block, fragmentation (0
        to 1), counts."""
        return _core._pool_stats(self)

    @property
    def regions(self) -> list[dict[str, Any]]:
        """The chunks, and runs of pages, in the order of their addresses: bytes in all, used, and of the largest free
        range; the number of large blocks and spans; the age in chunks that came after, None for pages."""
        return _core._pool_regions(self)


class PoolOn(Place):
    """A view of a pool in the order of a queue, such as a CudaAsync.

    Parameters
    ----------
    pool : Pool
    queue : Place
        In the same memory as the pool.
    """

    _kind = "pool-on"

    def __init__(self, pool: Pool, queue: Place) -> None:
        _core.Place.__init__(self, self._kind, pool, None, (), [(0, queue)])


class Fixed(Place):
    """Blocks of one size.

    Parameters
    ----------
    upstream : Place
    block : int or str
        Bytes of every block; larger requests raise umem.MemoryError.
    alignment, initial, growth, max : int or str, optional
        Bytes, as of Pool.
    """

    _kind = "fixed"

    def __init__(self, upstream: Place | str, block: Size, *, alignment: Size | None = None, initial: Size | None = None,
                 growth: Size | None = None, max: Size | None = None) -> None:
        super().__init__(upstream, block=block, alignment=alignment, initial=initial, growth=growth, max=max)

    @property
    def figures(self) -> dict[str, Any]:
        """The size of a block, live and held blocks, bytes reserved and their peak, chunks."""
        return _core._fixed_stats(self)


class Binning(Place):
    """Sends each request to one of several places, by its size.

    Parameters
    ----------
    upstream : Place
        For requests larger than those of all bins.
    bins : iterable of (int or str, Place)
        The largest request in bytes that goes to a place, the smallest first. All in the memory of upstream.
    """

    _kind = "binning"

    def __init__(self, upstream: Place | str, bins: Iterable[tuple[Size, Place]]) -> None:
        parts = [(size(largest, "a bin"), place) for largest, place in bins]
        _core.Place.__init__(self, self._kind, upstream, None, (), parts)

    def add(self, largest: Size, place: Place) -> None:
        """Adds a bin while arrays live. Allocations from now on go there if it is the first that suffices."""
        _core._binning_add(self, size(largest, "a bin"), place)


class Retry(Place):
    """Calls a function when the place below is out of memory, and tries again.

    Parameters
    ----------
    upstream : Place
    callback : callable
        `callback(nbytes, alignment, attempt)` frees memory and returns True, or gives up and returns False. attempt
        counts from 1. An exception arrives at the caller of the allocation.
    """

    _kind = "retry"

    def __init__(self, upstream: Place | str, callback: Callable[[int, int, int], bool]) -> None:
        if not callable(callback):
            fail(f"the callback of Retry is {callback!r}, which is not callable", 5)
        self._callback = callback
        _core.Place.__init__(self, self._kind, upstream, None, (), [])


class External(Place):
    """Arrays in the memory of an allocator that umem does not know. `umem.place_of` makes it of allocators of others.

    Parameters
    ----------
    upstream : Place
        A place for the same memory, which copies the bytes: Host, Cuda, CudaAsync, CudaHost, CudaManaged.
    allocate : callable
        `allocate(nbytes, alignment, stream)` returns the address of a new block, or None if there is none. An exception
        arrives at the caller of the allocation. stream: that of a CudaAsync, an integer; only work that is queued there
        later uses the block. None: the CPU and all streams may use the block at once.
    deallocate : callable
        `deallocate(address, nbytes, alignment, stream)` takes a block back. Any thread may call it.
    alignment : int, optional
        Bytes, a power of two: every block is at a multiple. Default: as of upstream.
    aligns : bool
        Whether allocate can align further. If not, umem allocates more bytes and aligns in them.

    The place keeps both functions until its last array has ended. Both run with the GIL.
    """

    _kind = "external"

    def __init__(self, upstream: Place | str, allocate: Callable[[int, int, int | None], int | None],
                 deallocate: Callable[[int, int, int, int | None], object], *, alignment: int = 0,
                 aligns: bool = True) -> None:
        for function in allocate, deallocate:
            if not callable(function):
                fail(f"an allocator of External is {function!r}, which is not callable", 5)
        _core.Place.__init__(self, self._kind, upstream, None, (), (allocate, deallocate, size(alignment, "alignment"), aligns))


def open(name: str) -> Place:
    """Makes the place, with all its layers, that a text names: "pool+cuda:0?max=8G", "file:a.bin?mode=w+".

    Raises
    ------
    umem.ValueError
        The name is malformed, or has unknown kinds or options; the message lists the known ones.
    """
    return _core._open(name)


# ---- the default place ----

_using: ContextVar[Place | None] = ContextVar("umem.place", default=None)
_default: Place | None = None


def _initial() -> Place:
    """What UMEM_DEFAULT names, or the RAM of umem.host()."""
    return _core._default(-1) if os.environ.get("UMEM_DEFAULT") else _core._host()


def default(device: int | None = None) -> Place:
    """The place of arrays that name none, or with a number that of a GPU.

    It is what the innermost `umem.using` of this thread or task has set, else what `umem.set_default` has set, else what the
    environment variable UMEM_DEFAULT names, else RAM: `umem.host()`. That of a GPU lives as long as the process.
    """
    global _default
    if device is not None:
        return _core._default(device)
    place = _using.get()
    if place is None:
        place = _default
        if place is None:
            place = _default = _initial()
    return place


def set_default(place: Place | str | None) -> None:
    """Makes arrays on a place that name none, in all threads; None: as at the start of the process.

    Functions of C and C++ in this process use it, too, where they ask for the default.
    """
    global _default
    found = None if place is None else _core._find_place(place)
    _core._set_default(found)
    _default = found


class using:
    """Makes arrays on a place that name none, for a with block, in this thread and the tasks that it begins there.

    As contextvars do it: tasks of asyncio that begin in the block have the place, and other threads do not.
    """

    def __init__(self, place: Place | str) -> None:
        self.place: Place = _core._find_place(place)
        self._tokens: list[Any] = []

    def __enter__(self) -> Place:
        self._tokens.append(_using.set(self.place))
        return self.place

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        _using.reset(self._tokens.pop())
