"""Reductions of arrays on any place: sum, mean, min, ... Each is a method of umem.Array.

NumPy reduces the memory itself where the CPU can read it. Elsewhere the elements pass through RAM in pieces, which several
threads read and reduce: those of an array of plain numbers, of which all dimensions go away, in C++ and without the GIL, in
python/src/array_reduce.cpp; all others by NumPy. The pieces, and the order in which their results are joined, depend on the
array alone: so does the rounding. On a GPU CuPy or PyTorch reduces the elements.
"""
from __future__ import annotations

import builtins
import math
from contextlib import closing

from . import _core, dtypes
from ._options import fail
from .places import CONCURRENT, DEVICE_ACCESSIBLE

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any

    from ._array import Array

    Axis = int | Sequence[int] | None
    Key = tuple[slice, ...]

_PIECE = 1 << 22  # bytes that NumPy reduces at a time: fewer would take the GIL too often
_CACHED_PIECE = 1 << 19  # bytes that C++ reduces at a time: they remain in the cache of a processor
_MOST_THREADS = 16  # so that the pieces take 64 MiB at most


# ---- the pieces of an array ----

def _keys(shape: tuple[int, ...], itemsize: int) -> Iterator[Key]:
    """The ranges of the pieces of an array along all dimensions, in C order."""
    row = itemsize * math.prod(shape[1:])
    if not shape:
        yield ()
    elif row <= _PIECE:
        whole = tuple(slice(0, extent) for extent in shape[1:])
        step = builtins.max(1, _PIECE // builtins.max(1, row))
        for first in range(0, shape[0], step):
            yield (slice(first, builtins.min(first + step, shape[0])), *whole)
    else:
        for i in range(shape[0]):
            for key in _keys(shape[1:], itemsize):
                yield (slice(i, i + 1), *key)


class _Workers:
    """Computes work(key) of all keys in several threads, the calling one included, which take the next key by themselves.

    At most so many results wait for the caller, who gets them in the order of the keys.
    """

    def __init__(self, work: Callable[[Key], Any], keys: Iterator[Key], threads: int, around: Callable[[], Any]) -> None:
        from threading import Condition, Lock  # takes longer to import than umem

        self._work, self._keys, self._threads, self._around = work, keys, threads, around
        self._most = 4 * threads
        self._lock = Lock()  # of all below
        self._changed = Condition(self._lock)
        self._results: dict[int, tuple[Any, BaseException | None]] = {}
        self._taken = self._given = 0  # numbers of the next key, and of the next result for the caller
        self._ended = False  # no key is left, or the caller needs no more
        self.is_wanted = True  # until the caller needs no more

    def _take(self, waits: bool) -> tuple[int, Key] | None:
        """The next key and its number; None if there is none, or not yet."""
        with self._lock:
            while waits and not self._ended and self._taken - self._given >= self._most:
                self._changed.wait()
            if self._ended or self._taken - self._given >= self._most:
                return None
            key = next(self._keys, None)
            if key is None:
                self._ended = True
                return None
            self._taken += 1
            return self._taken - 1, key

    def _compute(self, number: int, key: Key, is_caller: bool = False) -> None:
        try:
            result: tuple[Any, BaseException | None] = self._work(key), None
        except BaseException as error:
            if is_caller and not isinstance(error, Exception):  # such as that of Ctrl-C, which waits for no other result
                raise
            result = None, error
        with self._lock:
            self._results[number] = result
            if number == self._given:
                self._changed.notify_all()

    def _run(self) -> None:
        with self._around():
            while (taken := self._take(True)) is not None:
                self._compute(*taken)

    def _next(self) -> tuple[Any, BaseException | None] | None:
        """The next result for the caller; None if it is not there yet."""
        with self._lock:
            result = self._results.pop(self._given, None)
            if result is not None:
                self._given += 1
                if self._taken - self._given == self._most - 1:
                    self._changed.notify_all()
            return result

    def _wait(self) -> bool:
        """Waits for the next result. False: there is none."""
        with self._lock:
            while self._given not in self._results and self._given < self._taken:
                self._changed.wait()
            return self._given < self._taken

    def _begin(self) -> list[Any]:
        from contextvars import copy_context
        from threading import Thread

        begun: list[Thread] = []
        try:
            for _ in range(self._threads - 1):  # with the variables of the caller; Python ends also if it keeps the iterator
                thread = Thread(target=copy_context().run, args=(self._run,), name="umem-reduce", daemon=True)
                thread.start()
                begun.append(thread)
        except RuntimeError:  # no more threads can start, or Python is about to end
            pass
        return begun

    def results(self) -> Iterator[Any]:
        begun = self._begin()
        try:
            while True:
                found = self._next()
                if found is None:
                    taken = self._take(False)
                    if taken is not None:
                        with self._around():
                            self._compute(*taken, True)
                    elif not self._wait():
                        return
                    continue
                result, error = found
                if error is not None:
                    raise error
                yield result
        finally:
            with self._lock:
                self._ended, self.is_wanted = True, False
                self._changed.notify_all()
            for thread in begun:
                thread.join()


def each(array: Array, function: Callable[[Key, Any], Any], width: int = 0) -> Iterator[tuple[Key, Any]]:
    """The pieces of an array in C order: their ranges along all dimensions, and function(ranges, elements in an array of NumPy).

    Several threads call function. Its result must not share memory with the elements. width: bytes that it makes of an element.
    """
    import numpy

    from .make import empty
    from .transfer import copy

    # Of the caller, which NumPy 1 keeps by thread, as the function of the rules "call" and "log".
    rules: Any = {**numpy.geterr(), "call": numpy.geterrcall()}
    width = builtins.max(width, array.itemsize)
    whole = array.numpy() if array._is_host else None
    buffers: list[Array] = []  # those in which no thread works

    def work(key: Key) -> tuple[Key, Any]:
        index: Any = (*key, ...)
        if whole is not None:
            return key, function(key, whole[index])
        piece = array[index]
        try:
            buffer = buffers.pop()
        except IndexError:
            buffer = empty(builtins.max(1, _PIECE // width), array.dtype, _core._host())
        room = buffer[:piece.size].reshape(piece.shape)
        copy(room, piece, progress=lambda *_: workers.is_wanted)  # a server may be silent
        result = function(key, room.numpy())
        buffers.append(buffer)
        return key, result

    threads = builtins.min(_core._get_threads(), _MOST_THREADS, array.nbytes // _PIECE + 1)
    if not array.place.capabilities & CONCURRENT:
        threads = 1
    workers = _Workers(work, _keys(array.shape, width), threads, lambda: numpy.errstate(**rules))
    return workers.results()


# ---- one reduction ----

class _Reduction:
    """Which dimensions go away, and the shape of the result, in which these have one element."""

    def __init__(self, array: Array, axis: Axis) -> None:
        import numpy

        ndim = array.ndim
        if ndim == 0 and hasattr(axis, "__index__") and axis in (0, -1):  # as in NumPy
            axis = None
        given: Sequence[int] = range(ndim) if axis is None else [axis] if hasattr(axis, "__index__") else axis  # type: ignore[list-item]
        for one in given:
            if not -ndim <= one < ndim:
                raise numpy.exceptions.AxisError(one, ndim)
        self.array = array
        self.axes = tuple(one % ndim for one in given)
        if len({*self.axes}) < len(self.axes):
            fail("an axis is named twice")
        self.shape = tuple(1 if k in self.axes else extent for k, extent in enumerate(array.shape))
        self.count = math.prod(array.shape[k] for k in self.axes)

    def each(self, function: Callable[[Any], Any], width: int = 0) -> Generator[tuple[Key, Key, Any, bool], None, None]:
        """The ranges of each piece, those of its result, function(the elements), and whether it is the first with that result."""
        for key, found in each(self.array, lambda _, part: function(part), width):
            at = tuple(slice(0, 1) if k in self.axes else one for k, one in enumerate(key))
            yield key, at, found, not builtins.any(key[k].start for k in self.axes)

    def combine(self, reduce: Callable[[Any], Any], join: Callable[[Any, Any], Any]) -> Any:
        """The results of all pieces, joined; with one element along the dimensions that go away."""
        import numpy

        result = None
        with closing(self.each(reduce)) as pieces:
            for _, at, found, is_first in pieces:
                if result is None:
                    result = numpy.empty(self.shape, found.dtype)
                result[at] = found if is_first else join(result[at], found)
        return result

    def find(self, is_better: Callable[[Any, Any], Any], name: str, flat: bool) -> Any:
        """The indices of the best elements: along the axis, or in C order of the whole array."""
        import numpy

        def best_of(part: Any) -> tuple[Any, Any]:
            index = getattr(part, name)(axis=None if flat else self.axes[0], keepdims=True)
            return index, part.ravel()[index] if flat else numpy.take_along_axis(part, index, self.axes[0])

        best = where = None
        with closing(self.each(best_of)) as pieces:
            for key, at, (index, value), is_first in pieces:
                index = index + (self._offset(key) if flat else key[self.axes[0]].start)
                if best is None or where is None:
                    best, where = numpy.empty(self.shape, value.dtype), numpy.empty(self.shape, numpy.intp)
                wins = numpy.ones(value.shape, bool) if is_first else self._wins(value, best[at], is_better)
                numpy.copyto(best[at], value, where=wins)
                numpy.copyto(where[at], index, where=wins)
        return where

    @staticmethod
    def _wins(value: Any, before: Any, is_better: Callable[[Any, Any], Any]) -> Any:
        no_number, was_none = value != value, before != before  # the first NaN or NaT wins
        return (no_number | is_better(value, before)) & ~was_none

    def _offset(self, key: tuple[slice, ...]) -> int:
        offset = 0
        for extent, part in zip(self.array.shape, key):
            offset = offset * extent + part.start
        return offset

    def spread(self, dtype: Any) -> Any:
        """The sums of the squares of the distances from the mean, by the formula of Chan, Golub and LeVeque (1979)."""
        import numpy

        def measure(part: Any) -> tuple[int, Any, Any]:
            middle = part.mean(axis=self.axes, dtype=dtype, keepdims=True)
            away = part - middle
            spread = (away.real ** 2 + away.imag ** 2 if away.dtype.kind == "c" else numpy.multiply(away, away, away))
            return part.size // middle.size, middle, spread.sum(axis=self.axes, keepdims=True)

        wide = numpy.result_type(dtype, numpy.float64)
        count = numpy.zeros(self.shape)
        mean, squares = numpy.zeros(self.shape, wide), numpy.zeros(self.shape)
        with closing(self.each(measure, self.array.itemsize + numpy.dtype(dtype).itemsize)) as pieces:
            for _, at, (number, middle, spread), _ in pieces:
                distance = middle.astype(wide) - mean[at]
                total = count[at] + number
                mean[at] += distance * (number / total)
                squares[at] += spread + abs(distance) ** 2 * (count[at] * number / total)
                count[at] = total
        return squares


def _finish(result: Any, axes: tuple[int, ...], keepdims: bool, out: Any) -> Any:
    if not keepdims:
        result = result.reshape([extent for k, extent in enumerate(result.shape) if k not in axes])
    if out is None:
        return result[()]
    if tuple(out.shape) != result.shape:
        fail(f"out has shape {tuple(out.shape)}, the result {result.shape}")
    out[...] = result
    return out


# ---- where it is computed ----

def _on_gpu(array: Array, name: str, axis: Axis, dtype: Any, ddof: float) -> Any:
    from importlib import import_module

    kind = array.dtype.dtype
    if kind.kind not in "biufc" or not kind.isnative:
        fail(f"{name} of the memory of a GPU ({array.place!r}) has no elements of type {kind}; "
             f"a.numpy(copy=True).{name}() computes on the CPU", 5)
    for library, function in (("cupy", _in_cupy), ("torch", _in_torch)):
        try:
            module = import_module(library)
        except ImportError:
            continue
        return function(module, array, name, _Reduction(array, axis).axes, dtype, ddof)
    return fail(f"{name} of the memory of a GPU ({array.place!r}) needs CuPy or PyTorch, which are not installed; "
                f"a.numpy(copy=True).{name}() computes on the CPU", 5)


def _in_cupy(cupy: Any, array: Array, name: str, axes: tuple[int, ...], dtype: Any, ddof: float) -> Any:
    x = cupy.asarray(array)
    if name == "count_nonzero":
        return cupy.asnumpy((x != 0).sum(axis=axes, keepdims=True))
    options = {} if dtype is None else {"dtype": dtype}
    if name in ("std", "var"):
        options["ddof"] = ddof
    if name in ("argmin", "argmax"):
        flat = len(axes) == x.ndim
        found = cupy.asnumpy(getattr(x, name)(axis=None if flat else axes[0]))
        return found.reshape([1 if k in axes else extent for k, extent in enumerate(array.shape)])
    return cupy.asnumpy(getattr(x, name)(axis=axes, keepdims=True, **options))


def _in_torch(torch: Any, array: Array, name: str, axes: tuple[int, ...], dtype: Any, ddof: float) -> Any:
    x = torch.from_dlpack(array)
    if name in ("mean", "std", "var") and not (x.is_floating_point() or x.is_complex()):
        x = x.to(torch.float64)
    if dtype is not None:
        x = x.to(getattr(torch, str(dtypes.dtype(dtype))))
    if name in ("any", "all", "count_nonzero"):
        found = (x != 0).sum(dim=axes, keepdim=True)
        found = found if name == "count_nonzero" else found > 0 if name == "any" else found == math.prod(
            array.shape[k] for k in axes)
    elif name in ("argmin", "argmax"):
        found = getattr(torch, name)(x, dim=axes[0] if len(axes) == 1 else None)
        found = found.reshape([1 if k in axes else extent for k, extent in enumerate(array.shape)])
    elif name in ("std", "var"):
        found = getattr(torch, name)(x, dim=axes, correction=ddof, keepdim=True)
    else:
        found = getattr(torch, {"min": "amin", "max": "amax"}.get(name, name))(x, dim=axes, keepdim=True)
    return found.cpu().numpy()


def _without_gil(task: _Reduction, name: str, dtype: Any, ddof: float) -> Any:
    """The result for plain numbers in C order, if all dimensions go away; None for others, and for other types of a result."""
    import numpy

    own = task.array.dtype.dtype
    if len(task.axes) < len(task.shape) or own.kind not in "biuf":
        return None
    wide = own if own.kind == "f" else numpy.dtype("uint64" if own.kind == "u" and name == "sum" else
                                                   "int64" if name == "sum" else "float64")
    wanted = wide if dtype is None else numpy.dtype(dtype)
    if wanted not in (wide, numpy.float64):
        return None
    work = {"mean": "sum", "var": "std"}.get(name, name)
    if work == "sum" and own.kind == "b":
        work = "count_nonzero"
    far = task.array.place.kind in ("url", "http", "https", "s3")  # each piece is a request
    found = _core._reduce(task.array, work, wanted == numpy.float64, _PIECE if far else _CACHED_PIECE)
    if found is None:
        return None
    value, overflows, is_invalid = found
    if name in ("sum", "mean", "std", "var"):
        _report(overflows, is_invalid)
    if name == "mean":
        value = numpy.divide(value, task.count)
    elif name in ("std", "var"):
        value = numpy.divide(value, builtins.max(task.count - ddof, 0))
        value = value if name == "var" else numpy.sqrt(value)
    kind = {"min": own, "max": own, "any": bool, "all": bool, "argmin": numpy.intp, "argmax": numpy.intp,
            "count_nonzero": numpy.intp}.get(name, wanted)
    return numpy.full((1,) * len(task.shape), value, kind)


def _report(overflows: bool, is_invalid: bool) -> None:
    """Does as NumPy's sum does when a number overflows or is invalid, by the rules of numpy.errstate."""
    import numpy

    if overflows:
        numpy.full(2, numpy.finfo(float).max).sum()
    if is_invalid:
        numpy.array([math.inf, -math.inf]).sum()


def _in_pieces(task: _Reduction, name: str, dtype: Any, ddof: float) -> Any:
    import numpy

    found = _without_gil(task, name, dtype, ddof)
    if found is not None:
        return found
    own = task.array.dtype.dtype
    narrow = own == numpy.float16 and dtype is None  # its sums are of float32
    if name == "count_nonzero":
        return task.combine(lambda x: _count(x, task.axes), numpy.add)
    if name in ("min", "max", "any", "all"):
        join = {"min": numpy.minimum, "max": numpy.maximum, "any": numpy.logical_or, "all": numpy.logical_and}[name]
        return task.combine(lambda x: getattr(x, name)(axis=task.axes, keepdims=True), join)
    if name in ("argmin", "argmax"):
        flat = len(task.axes) == len(task.shape)
        return task.find(numpy.less if name == "argmin" else numpy.greater, name, flat)
    if name == "sum":
        wide = numpy.float32 if narrow else dtype
        found = task.combine(lambda x: x.sum(axis=task.axes, dtype=wide, keepdims=True), numpy.add)
        return found.astype(own) if narrow else found
    wide = numpy.float32 if narrow else numpy.float64 if dtype is None and own.kind in "biu" else dtype
    if name == "mean":
        found = task.combine(lambda x: x.sum(axis=task.axes, dtype=wide, keepdims=True), numpy.add) / task.count
    else:
        wide = own if wide is None else numpy.dtype(wide)
        found = task.spread(wide) / builtins.max(task.count - ddof, 0)
        found = (found if name == "var" else numpy.sqrt(found)).astype(wide.type(0).real.dtype)
    return found.astype(own) if narrow else found


def _reduce(array: Array, name: str, axis: Axis, out: Any, keepdims: bool, dtype: Any = None, ddof: float = 0,
            more: dict[str, Any] | None = None) -> Any:
    task = _Reduction(array, axis)
    if more and not array._is_host:
        fail(f"{name}() of {array.place!r} has no argument {next(iter(more))!r}: use numpy.{name}(a.numpy(copy=True), ...)", 5)
    if not array._is_host and array.size and array.place.capabilities & DEVICE_ACCESSIBLE:
        return _finish(_on_gpu(array, name, axis, dtype, ddof), task.axes, keepdims, out)
    # Of all of it NumPy would make a copy for these.
    in_place = array._is_host and (bool(more) or name not in ("std", "var", "count_nonzero"))
    if in_place or array.nbytes <= _PIECE or not array.ndim:
        x = array.numpy(copy=not array._is_host)
        if name == "count_nonzero":
            return _finish(_count(x, task.axes), task.axes, keepdims, out)
        options = dict(more or {})
        options.update({} if dtype is None else {"dtype": dtype}, **({"ddof": ddof} if ddof else {}))
        where = axis if name in ("argmin", "argmax") else task.axes
        return _finish(_dense(getattr(x, name)(axis=where, keepdims=True, **options)), task.axes, keepdims, out)
    return _finish(_in_pieces(task, name, dtype, ddof), task.axes, keepdims, out)


def _dense(value: Any) -> Any:
    import numpy

    return numpy.asarray(value)


def _count(x: Any, axes: tuple[int, ...]) -> Any:
    import numpy

    if x.dtype.kind in "iufc":
        x = x != 0  # while NumPy counts other than truth values no other thread has the GIL
    if len(axes) == x.ndim:
        return numpy.asarray(numpy.count_nonzero(x)).reshape((1,) * x.ndim)
    return numpy.count_nonzero(x, axis=axes, keepdims=True)


# ---- the methods ----

def sum(self: Array, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **more: Any) -> Any:
    """The sum, where the elements are: as numpy.sum, without a copy of all.

    Parameters
    ----------
    axis : int or sequence of int, optional
        The dimensions that go away. Default: all.
    dtype : dtype of NumPy, optional
        Of the result, and of the numbers that are added.
    out : Array or array of NumPy, optional
        Where the result goes. Default: a number or an array of NumPy.
    keepdims : bool, optional
        Whether the result has dimensions of one element for those that go away.

    Raises
    ------
    umem.TypeError
        The elements are on a GPU, and neither CuPy nor PyTorch is installed.
    """
    return _reduce(self, "sum", axis, out, keepdims, dtype, more=more)


def mean(self: Array, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **more: Any) -> Any:
    """The arithmetic mean; parameters and errors as of sum."""
    return _reduce(self, "mean", axis, out, keepdims, dtype, more=more)


def std(self: Array, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False,
        **more: Any) -> Any:
    """The standard deviation, in one passage; parameters and errors as of sum. The divisor is the count minus ddof."""
    return _reduce(self, "std", axis, out, keepdims, dtype, ddof, more)


def var(self: Array, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False,
        **more: Any) -> Any:
    """The variance: as std."""
    return _reduce(self, "var", axis, out, keepdims, dtype, ddof, more)


def min(self: Array, axis: Axis = None, out: Any = None, keepdims: bool = False, **more: Any) -> Any:
    """The least element; parameters and errors as of sum. NaN, if there is one."""
    return _reduce(self, "min", axis, out, keepdims, more=more)


def max(self: Array, axis: Axis = None, out: Any = None, keepdims: bool = False, **more: Any) -> Any:
    """The greatest element; parameters and errors as of sum. NaN, if there is one."""
    return _reduce(self, "max", axis, out, keepdims, more=more)


def argmin(self: Array, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The index of the first of the least elements: along an axis, or in C order. Otherwise as min."""
    return _reduce(self, "argmin", axis, out, keepdims)


def argmax(self: Array, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The index of the first of the greatest elements: along an axis, or in C order. Otherwise as max."""
    return _reduce(self, "argmax", axis, out, keepdims)


def any(self: Array, axis: Axis = None, out: Any = None, keepdims: bool = False, **more: Any) -> Any:
    """Whether an element is true; parameters and errors as of sum."""
    return _reduce(self, "any", axis, out, keepdims, more=more)


def all(self: Array, axis: Axis = None, out: Any = None, keepdims: bool = False, **more: Any) -> Any:
    """Whether all elements are true; parameters and errors as of sum."""
    return _reduce(self, "all", axis, out, keepdims, more=more)


def count_nonzero(self: Array, axis: Axis = None, keepdims: bool = False) -> Any:
    """The number of elements that are not zero; parameters and errors as of sum."""
    return _reduce(self, "count_nonzero", axis, None, keepdims)
