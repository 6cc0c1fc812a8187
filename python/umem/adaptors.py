"""Adaptors that watch, limit and test the place below: Limit, Stats, Track, Debug, Log, Fault, Guarded."""
from __future__ import annotations

from contextlib import contextmanager

from . import _core
from ._options import fail
from .places import Path, Place, Size

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ._array import Array

class Limit(Place):
    """At most `limit` bytes are live at the same time; requests beyond raise umem.MemoryError.

    Parameters
    ----------
    upstream : Place
    limit : int or str
        Bytes: 4096, "8G", or "50%" of what is free in upstream.
    """

    _kind = "limit"

    def __init__(self, upstream: Place | str, limit: Size) -> None:
        super().__init__(upstream, limit=limit)

    @property
    def used(self) -> int:
        """Bytes that are live now."""
        return _core._limit_used(self)


class Stats(Place):
    """Counts the blocks and bytes that are allocated from the place below."""

    _kind = "stats"

    def __init__(self, upstream: Place | str) -> None:
        super().__init__(upstream)

    @property
    def figures(self) -> dict[str, int]:
        """current, peak and total, each of bytes and of blocks (count), since the place was made."""
        return _core._stats_get(self)

    @contextmanager
    def scope(self) -> Iterator[dict[str, int]]:
        """Figures of a with block, which begin at 0. The dict is filled when the block ends.

        Scopes nest, and count what all threads do.
        """
        figures: dict[str, int] = {}
        _core._stats_push(self)
        try:
            yield figures
        finally:
            figures.update(_core._stats_pop(self))

    def reset(self) -> None:
        """Sets peaks to the current figures and totals to 0."""
        _core._stats_reset(self)


class Track(Place):
    """Has a record of every live block: finds leaks, wrong frees, and the block of an address.

    Parameters
    ----------
    upstream : Place
    frames : int, optional
        How many frames of C code to record for each allocation: at most 32.
    """

    _kind = "track"

    def __init__(self, upstream: Place | str, *, frames: int | None = None) -> None:
        super().__init__(upstream, frames=frames)

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The live blocks in the order of their addresses: address, nbytes, number (from 1), trace (addresses)."""
        return _core._track_blocks(self)

    def set_block_label(self, address: int, label: str) -> None:
        """Gives the live block that begins at an address a label, until it is freed; "" removes the label."""
        self._set_block_label(address, label)

    def find(self, address: int) -> dict[str, Any] | None:
        """The live block that contains an address, or None."""
        return _core._track_find(self, address)


class Debug(Place):
    """Finds wrong writes around blocks and to freed ones, and wrong frees: umem.IndexError, umem.ValueError.

    Parameters
    ----------
    upstream : Place
    guard : int or str, optional
        The least bytes on either side of a block.
    kept, blocks : int or str, optional
        How many bytes and how many blocks to keep after they were freed.
    frames : int, optional
        As of Track.
    """

    _kind = "debug"

    def __init__(self, upstream: Place | str, *, guard: Size | None = None, kept: Size | None = None,
                 blocks: int | None = None, frames: int | None = None) -> None:
        super().__init__(upstream, guard=guard, kept=kept, blocks=blocks, frames=frames)

    def check(self) -> None:
        """Checks all blocks. Raises umem.IndexError for wrong writes that were not reported yet."""
        _core._debug_check(self)

    @property
    def figures(self) -> dict[str, int]:
        """findings so far, and live and kept blocks and bytes."""
        return _core._debug_get(self)


class Log(Place):
    """Writes a record of each allocation, free, set and copy to a file for umem-trace.

    Parameters
    ----------
    upstream : Place
    file : str or os.PathLike
        A new file, or an old log, which is replaced.
    max : int or str, optional
        Bytes of the file, which is a ring. Default: 16 MiB.
    each_process : bool
        Whether each process has a file, with its number behind the name.
    """

    _kind = "log"

    def __init__(self, upstream: Place | str, file: Path, *, max: Size | None = None, each_process: bool = False) -> None:
        super().__init__(upstream, file=file, max=max, each_process="yes" if each_process else None)

    @property
    def number(self) -> int:
        """The number of the place in the records of its file, from 1."""
        return _core._log_number(self)


_CALLS = ("alloc calloc aligned realloc free set copy-to copy-from synchronize wait flush trim").split()
_ALLOCATIONS = 0b1111


class Fault(Place):
    """Makes chosen calls fail, to test how a program handles it.

    Parameters
    ----------
    upstream : Place
    calls : str or iterable of str, optional
        Which calls: "alloc", "copy-to", ..., "allocations" (the default), "copies", "all".
    status : str, optional
        The status of the failures. Default: "MemoryError".
    nth, times : int, optional
        The first call that fails, from 1, and how many in a row.
    share : float, optional
        The share of calls that fails at random, from 0 to 1.
    seed : int, optional
        Of the random numbers.
    """

    _kind = "fault"

    def __init__(self, upstream: Place | str, *, calls: str | Iterable[str] | None = None, status: str | None = None,
                 nth: int | None = None, times: int | None = None, share: float | None = None,
                 seed: int | None = None) -> None:
        super().__init__(upstream, calls=calls, status=status, nth=nth, times=times, share=share, seed=seed)

    def fail_next(self, nth: int = 1, times: int = 1) -> None:
        """Starts another plan: allocation number `nth` from now, and `times` in a row, raise umem.MemoryError."""
        _core._fault_set_plan(self, _ALLOCATIONS, 1, nth, times, 0.0, 0)

    def count(self, *calls: str) -> int:
        """The calls of these kinds (all without arguments) since the plan began, failed ones included."""
        for call in calls:
            if call not in _CALLS:
                fail(f"there is no call {call!r}; there are: {', '.join(_CALLS)}")
        return _core._fault_count(self, sum(1 << _CALLS.index(call) for call in calls or _CALLS))

    @property
    def failures(self) -> int:
        """How many calls have failed on purpose since the plan began."""
        return _core._fault_failures(self)


_ACCESSES = ("closed", "read", "write")


class Guarded(Place):
    """Traps accesses to closed memory, for tests: a read or write of a closed array by the CPU ends the process by SIGSEGV.

    Over RAM each array has pages of its own; over other places nothing is closed. umem's own copies work on closed
    arrays, too.

    Parameters
    ----------
    upstream : Place
    """

    _kind = "guarded"

    def __init__(self, upstream: Place | str) -> None:
        super().__init__(upstream)

    def protect(self, array: Array, access: str) -> None:
        """Changes what NumPy and other libraries may do with a whole array of this place.

        access : "closed", "read" or "write" (both, as new arrays).
        """
        if access not in _ACCESSES:
            fail(f"there is no access {access!r}; there are: {', '.join(_ACCESSES)}")
        _core._guarded_protect(self, array.address, array.nbytes, _ACCESSES.index(access))

    def access(self, array: Array) -> str:
        """What they may do with it now."""
        return _ACCESSES[_core._guarded_access(self, array.address)]

    @staticmethod
    def report(on: bool = True) -> None:
        """Whether SIGSEGV for such memory first prints on stderr which array it hit."""
        _core._guarded_report(on)
