"""Copies with progress, blocks of arrays larger than memory, threads, failures, and the ledger of all copies."""
from __future__ import annotations

import os
from collections.abc import Mapping

from . import _core
from ._options import fail, size
from ._array import Array
from .exchange import find as find_array
from .errors import Error
from .places import Place, Size

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from types import TracebackType
    from typing import Any

    Progress = Callable[[int, int], Any]


Route = _core.Route
Mapping.register(Route)


def _as_function(progress: Any) -> Progress | None:
    """A function of (done, total) of what the program gives: such a function, or a bar like tqdm's."""
    if progress is None or not hasattr(progress, "update"):
        return progress  # type: ignore[no-any-return]
    seen = 0

    def update(done: int, total: int) -> None:
        nonlocal seen
        if progress.total != total:
            progress.total = total
        progress.update(done - seen)
        seen = done

    return update


def _as_target(value: Any) -> Array:
    """The array of what is written: over the memory of value."""
    found, shared = find_array(value)
    return found if shared else fail(f"{type(value).__name__} has no memory to write to: give an array", 5)


def _as_source(value: Any, dst: Array) -> Array:
    """The array of what is read: numbers of Python take the type of the destination."""
    return find_array(value, dst.dtype if isinstance(value, (bool, int, float, complex, list, tuple)) else None)[0]


copy = _core.copy


def _copy_others(dst: Any, src: Any, progress: Any, step: Size) -> Route:
    """umem.copy of what is more than a short copy between arrays in RAM."""
    if type(dst) is not Array or type(src) is not Array:
        dst = _as_target(dst)
        src = _as_source(src, dst)
    return _core._copy(dst, src, None if progress is None else _as_function(progress), size(step, "step") if step else 0)


_core._set_copy(_copy_others)


def copy_many(pairs: Iterable[tuple[Any, Any]], *, progress: Any = None,
              step: Size = 0) -> Route:
    """Copies many arrays in one call: for each pair (dst, src) the elements of src to dst, in any order.

    Short pieces take less time than by as many calls of copy. Those of a file are read by several threads. Ctrl-C ends a long
    list.

    Parameters
    ----------
    pairs : iterable of tuple of Array, or of what umem.asarray takes
        Both of one type and shape, on any two places. They may be parts of arrays, such as `u[7]` and `v[0, 2:5]`.
    progress : callable or object with update and total, optional
        As of copy: `progress(done, total)` in bytes of all pairs; False cancels the rest.
    step : int or str, optional
        Bytes from call to call. Default: 64 MiB.

    Returns
    -------
    Route
        bytes, seconds, route as a text, and its legs, as of copy.

    Raises
    ------
    umem.CancelledError
        progress has returned False. Some pairs are copied.
    umem.ValueError
        The shapes differ, or a dst has memory in common with another pair. Then nothing has changed.
    """
    return _core._copy_many(_pairs(pairs), _as_function(progress), size(step, "step"))


def _pairs(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Array, Array]]:
    """The pairs as a list, each with two arrays of umem."""
    found = []
    for dst, src in pairs:
        target = _as_target(dst)
        found.append((target, _as_source(src, target)))
    return found


class Transfer(_core.Transfer):
    """A copy that goes on while the program does other work: see umem.start and umem.start_many.

    `await` and `async with` wait for it without a thread; a task that is cancelled cancels the copy, and waits for its end.
    At the end of `with` the copy has ended, too: it is cancelled if the block raises. The object keeps all arrays, and waits
    when nothing refers to it any more; Ctrl-C then cancels it. A failure that no one has waited for goes to sys.unraisablehook.
    """

    async def _end(self, cancels: bool = True) -> None:
        import asyncio  # takes longer to import than umem
        loop = asyncio.get_running_loop()
        if self.done:
            return
        ended = loop.create_future()
        descriptor = os.dup(self.fileno())  # several tasks may wait

        def end() -> None:
            if not ended.done():
                ended.set_result(None)
        loop.add_reader(descriptor, end)
        try:
            await ended
        except asyncio.CancelledError:
            if cancels:
                self.cancel()
                await self._end(False)
            raise
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    async def _wait(self) -> None:
        await self._end()
        self.wait()

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def __aenter__(self) -> Transfer:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        if kind is None:
            await self
        else:
            self.cancel()
            await self._end()

    def __enter__(self) -> Transfer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is not None:
            self.cancel()
        try:
            self.wait()
        except Error:
            if kind is None:
                raise

    def __repr__(self) -> str:
        done, total = self.progress
        return f"<umem.Transfer: {done} of {total} bytes{', ended' if self.done else ''}>"


def start(dst: Any, src: Any) -> Transfer:
    """Begins to copy all elements of src to dst, of the same type and shape, on any two places, and returns at once.

    Wait for the end by `transfer.wait()`, `await transfer`, or a with block. Until then do not write to src, nor use dst.
    Short copies between arrays in RAM are done at once. An array on a CudaAsync is copied in the order of its stream.
    Any number of copies may go on at the same time.

    Parameters
    ----------
    dst, src : Array, or what umem.asarray takes
        Their memory may overlap: src is then read before dst is written.
    """
    dst = _as_target(dst)
    return Transfer(dst, _as_source(src, dst))


def start_many(pairs: Iterable[tuple[Any, Any]]) -> Transfer:
    """Begins to copy many arrays, for each pair (dst, src) the elements of src to dst, in any order, and returns at once.

    One transfer stands for all of them: wait for it as for that of umem.start. Until then do not write to a src, nor use a dst.

    Parameters
    ----------
    pairs : iterable of tuple of Array, or of what umem.asarray takes
        As of copy_many.

    Raises
    ------
    umem.ValueError
        The shapes differ, or a dst has memory in common with another pair. Then nothing has changed.
    """
    return Transfer(_pairs(pairs))


class Block:
    """Rows of an array on a place. Its arrays are released when the next block begins.

    Attributes
    ----------
    array : Array
        The rows of the block.
    whole : Array
        They, and the ghost rows before and after them.
    out : Array
        Where the results go: memory of its own, or array.
    first, rows, before, after, number : int
        The row of the whole array with which it begins, the number of rows, of ghost rows before and after, and of
        the block, from 0.
    """

    __slots__ = ("after", "array", "before", "first", "number", "out", "rows", "whole")

    def __init__(self, whole: Array, out: Array | None, first: int, rows: int, before: int, after: int,
                 number: int) -> None:
        self.whole = whole
        self.array: Array = whole[before:before + rows]
        self.out = self.array if out is None else out
        self.first, self.rows, self.before, self.after, self.number = first, rows, before, after, number

    def __repr__(self) -> str:
        return f"<umem.Block {self.number}: rows {self.first} to {self.first + self.rows - 1}>"


class Blocks(_core.Blocks):
    """The blocks of an array, one after the other: see umem.blocks. A context manager, which ends them."""

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        return Block(*self._next())

    def __enter__(self) -> Blocks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def blocks(array: Any, place: Place | str, *, budget: Size = 0, destination: Any = None, rows: int = 0,
           depth: int = 0, before: int = 0, after: int = 0, clamped: bool = False, apart: bool = False,
           progress: Any = None) -> Blocks:
    """Streams an array through a place that is smaller than it: an iterator over blocks of rows.

    While the program works on a block, umem reads the next ones and writes those before it. A block is written when the
    next one is asked for. Memory of a block is used again for later ones: copy what shall stay.

    Parameters
    ----------
    array : Array, or what umem.asarray takes
        What is read. The elements of a row must follow one another.
    place : Place or str
        Where the program works on the blocks.
    budget : int or str, optional
        The most bytes that all blocks take on the place. Default: 64 MiB, or any if rows is given.
    destination : Array, optional
        Where the blocks are written to, for example array itself. Default: nowhere.
    rows, depth : int, optional
        Rows of a block, and blocks in memory at once. Default: umem chooses.
    before, after : int, optional
        Ghost rows that a block holds, too, with their values before the first block was written.
    clamped : bool, optional
        Whether the ghost rows beyond the array are copies of its first and last row; else they are left out.
    apart : bool, optional
        Whether the results have memory of their own (Block.out).
    progress : callable or object with update and total, optional
        As of umem.copy, in rows.
    """
    where: Place = _core._find_new_place(place)
    return Blocks(find_array(array)[0], where, None if destination is None else _as_target(destination), size(budget, "budget"), rows, depth, before, after, clamped, apart,
                  _as_function(progress))


def set_failure_hook(function: Callable[[str, str, str], Any] | None) -> Callable[[str, str, str], Any] | None:
    """Sets the function that sees each failure when umem records it; None: none. Returns the one before.

    `function(status, message, kind)` runs in the thread that failed, which may be a thread of umem. What it raises
    arrives at the caller of the call that failed, in place of that failure.
    """
    if function is not None and not callable(function):
        fail(f"the failure hook is {function!r}, which is not callable", 5)
    old: Callable[[str, str, str], Any] | None = _core._set_failure_hook(function)
    return old


_LEVELS = "none", "fallbacks", "memory", "copies"


def log_decisions(file: str | os.PathLike[str] | int | None, level: str = "copies") -> None:
    """Appends a line for each decision of umem to a file, such as who moves the bytes of a copy; None: no more.

    Parameters
    ----------
    file : path, int or None
        A path, or the number of an open file: 2 is stderr. umem has its own handle of it.
    level : {"fallbacks", "memory", "copies"}
        Each includes those before: slower ways, as a better one is missing; what pools take and give back; how copies are made.
    """
    if level not in _LEVELS[1:]:
        fail(f"the level is {level!r}: it must be 'fallbacks', 'memory' or 'copies'")
    if isinstance(file, int):
        _core._log_decisions(file, _LEVELS.index(level))
        return
    with open(os.devnull if file is None else file, "ab") as stream:
        _core._log_decisions(stream.fileno(), 0 if file is None else _LEVELS.index(level))


def set_threads(count: int = 0) -> None:
    """Sets how many threads umem may use for a copy or a loop, the calling one included; 0: the default."""
    _core._set_threads(count)


def get_threads() -> int:
    """How many threads umem may use for the copies of one thread, that thread included."""
    return _core._get_threads()
