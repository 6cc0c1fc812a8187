"""umem.Array: one class over all types, ranks and places."""
from __future__ import annotations

import operator
from contextlib import contextmanager

from . import _core, _indices, dtypes, exchange, reductions
from ._lists import to_list
from ._options import fail
from .places import DEVICE_ACCESSIBLE, ORDERED, Cuda, Place

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any, Literal, NoReturn

    from ._typing import Convert, Element, NumpyArray

    Mode = Literal["r", "w", "rw"]
else:
    Element = None

_MODES = "r", "w", "rw"


def _operand(value: Any) -> Any:
    """What NumPy computes with, or Python for an array without dimensions."""
    if not isinstance(value, Array):
        return value
    return exchange.array_protocol(value, None, None) if value.ndim else value.item()


def _operator(function: Callable[[Any, Any], Any], reflected: bool = False) -> Callable[[Any, Any], Any]:
    """A method of an operator, whose result is NumPy's."""

    def apply(self: Array, other: Any) -> Any:
        one, two = _operand(self), _operand(other)
        return function(two, one) if reflected else function(one, two)

    return apply


def _sign(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A method of an operator of one operand."""
    return lambda self: function(_operand(self))


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A method of an operator such as +=, which changes the elements where they are."""

    def apply(self: Array, other: Any) -> Any:
        if not self.ndim:  # as a number of NumPy, a[1, 2] does not change with what is made of it
            return NotImplemented
        elements = _operand(self)
        function(elements, _operand(other))
        if not self._is_host:
            self[...] = elements
        return self

    return apply


def _conversion(function: Any) -> Convert:
    """Lets type checkers know the elements that dtype names."""
    return function  # type: ignore[no-any-return]


_ADVICES = "normal", "sequential", "random", "unneeded", "prefetch", "prefer", "read-mostly", "accessed-by"


class Array(_core.Array[Element]):
    """An array on a place. Make one with `umem.empty`, `zeros`, `full`, `arange`, `asarray`, `load`, `from_dlpack`.

    Integers and slices give views of the same memory. Masks and lists of integers give a new array where copy() would put
    it, as in NumPy, and `a[mask] = 3` sets what they name; one call of umem moves all elements. An index of all dimensions gives an array without dimensions:
    `a[1, 2].item()` is its number, and `a[1, 2] = 3` sets it. An array keeps its place alive, and views the memory.

    NumPy computes `a + b`, `a < b` and other expressions, and gives arrays of NumPy; those of files are read for that, and of
    GPUs it is a umem.TypeError. `a += b` changes the elements where they are. But an array equals itself alone: `a == b` raises
    umem.TypeError for any other object but None. See umem.all_equal and all_close. An array without dimensions is as its number.

    An array in RAM pickles with its elements, from protocol 5 on without a copy of them; one of a Shm, or of a CudaAsync that
    shares, to a handle: see these classes.

    NumPy, PyTorch, JAX, CuPy and others take it without a copy through the buffer protocol, DLPack,
    `__array_interface__` or `__cuda_array_interface__`.
    """

    __slots__ = ("_ghost_widths", "_owner", "_rows", "_whole")

    _whole: Array
    _ghost_widths: tuple[int, ...]
    _owner: Array  # of the block of an array that has grown
    _rows: Any  # the header of one in a .npy file

    def __init__(self) -> None:
        fail("make an array with umem.empty, zeros, full, arange, asarray, load or from_dlpack", 5)

    if TYPE_CHECKING:

        def __buffer__(self, flags: int, /) -> memoryview: ...

    # ---- views ----

    @property
    def T(self) -> Array[Element]:
        """A view with the dimensions reversed."""
        return self.transpose()

    def ravel(self, order: str = "C") -> Array[Element]:
        """The elements in C order in one dimension: a view where the strides allow it, else a copy."""
        if order not in ("C", "K", "A"):
            fail(f"order is {order!r}: umem has the elements in C order")
        return self.reshape(-1) if self.is_contiguous else self.copy().reshape(-1)

    def flatten(self, order: str = "C") -> Array[Element]:
        """A copy of the elements in C order in one dimension, where copy() would put it."""
        if order not in ("C", "K", "A"):
            fail(f"order is {order!r}: umem has the elements in C order")
        return self.copy().reshape(-1)

    def tobytes(self) -> bytes:
        """The bytes of the elements in C order."""
        found: bytes = exchange.array_protocol(self, None, None).tobytes()
        return found

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Array[Element]:
        """A view without the dimensions of one element that are named, or without all of these."""
        axes = [k for k in range(self.ndim) if self.shape[k] == 1] if axis is None else [
            self._axis(one) for one in (axis if isinstance(axis, tuple) else (axis,))]
        for k in axes:
            if self.shape[k] != 1:
                fail(f"dimension {k} has {self.shape[k]} elements: only one with one element can go")
        return self[tuple(0 if k in axes else slice(None) for k in range(self.ndim))]

    def swapaxes(self, axis1: int, axis2: int) -> Array[Element]:
        """A view with two dimensions exchanged."""
        axes = list(range(self.ndim))
        one, other = self._axis(axis1), self._axis(axis2)
        axes[one], axes[other] = other, one
        return self.transpose(axes)

    def view(self, dtype: Any) -> Array:
        """The same bytes as elements of another type, as NumPy has it: of the same size, or of a last dimension without gaps."""
        return exchange.view(self, dtype)

    def _axis(self, axis: int) -> int:
        if not -self.ndim <= axis < self.ndim:
            fail(f"axis {axis} is outside of {self.ndim} dimensions", 6)
        return axis % self.ndim

    def take(self, indices: Any, axis: int | None = None, out: Array | None = None) -> Array[Element]:
        """The elements at indices, as a new array where copy() would put it: `a[indices]` along one dimension.

        Parameters
        ----------
        indices : array or list of integers
            Negative ones count from the end.
        axis : int, optional
            The dimension. Default: the indices are those of all elements in C order.
        out : Array, optional
            Where the result goes: of its shape and type, on any place.
        """
        source, axis = (self.ravel(), 0) if axis is None else (self, self._axis(axis))
        taken: Array[Element] | None = _core._take(source, indices, axis, out)
        return _indices.Selection(source, (slice(None),) * axis + (indices,)).read(out) if taken is None else taken

    def put(self, indices: Any, values: Any) -> None:
        """Sets the elements at indices, which are those of all elements in C order, to values.

        Raises umem.ValueError where the strides allow no view in one dimension.
        """
        _indices.Selection(self.reshape(-1), (indices,)).write(values)

    def append(self, rows: Any) -> None:
        """Adds rows behind the last one, of what umem.asarray takes. The array is the last one of a file: see create_npy.

        Views that exist keep their shape. The header of a .npy file counts the rows when they are there.

        Raises
        ------
        umem.NotSupportedError
            The array is not on a umem.File or umem.MMap, or cannot be written, or others follow it there.
        umem.OSError
            The disk is full.
        """
        from .files import append

        append(self, rows)

    def resize(self, rows: int) -> None:
        """Gives the array another number of rows; new ones are zero. Conditions and errors as of append."""
        from .files import resize

        resize(self, rows)

    def advise(self, advice: str, device: int | None = None) -> None:
        """Gives a hint about the bytes of an array without gaps, which changes none of them.

        Parameters
        ----------
        advice : {"normal", "sequential", "random", "unneeded", "prefetch", "prefer", "read-mostly", "accessed-by"}
            Managed memory knows the last four; RAM, shared and mapped memory and files the first four, and "prefetch" to
            the CPU.
        device : int, optional
            The number of a GPU. Default: the CPU.

        Raises
        ------
        umem.NotSupportedError
            The memory does not know this hint: the program can go on without.
        """
        if advice not in _ADVICES:
            fail(f"the advice is {advice!r}; known are {', '.join(_ADVICES)}")
        if not self.is_contiguous:
            fail("the array has gaps: advise an array without")
        self.place._advise(self.address, self.nbytes, _ADVICES.index(advice), -1 if device is None else device)

    @property
    def __numpy_dtype__(self) -> Any:
        """For numpy.result_type, which knows no arrays of others; of NumPy 2.4 or newer."""
        return self.dtype.dtype

    def __iter__(self) -> Iterator[Array[Element]]:
        return (self[i] for i in range(len(self)))

    @property
    def ghosts(self) -> Ghosts:
        """The array with its ghost cells. The first index of dimension k is minus their number."""
        return Ghosts(self)

    # ---- comparisons ----

    def __eq__(self, other: object) -> bool:
        if not self.ndim and other is not None:
            return self.item() == _operand(other)  # type: ignore[no-any-return]
        return self is other or (other is not None and self._refuse_comparison("=="))

    def __ne__(self, other: object) -> bool:
        if not self.ndim and other is not None:
            return self.item() != _operand(other)  # type: ignore[no-any-return]
        return self is not other and (other is None or self._refuse_comparison("!="))

    __hash__ = _core.Array.__hash__

    def __contains__(self, value: object) -> bool:
        return self._refuse_comparison("in")

    def _refuse_comparison(self, operator: str) -> NoReturn:
        fail(f"{operator} does not look at the elements of a umem.Array: use umem.all_equal, umem.all_close, or {operator} "
             "with numpy.asarray(array)", 5)

    # ---- numbers ----

    sum, mean, std, var = reductions.sum, reductions.mean, reductions.std, reductions.var
    min, max, argmin, argmax = reductions.min, reductions.max, reductions.argmin, reductions.argmax
    any, all, count_nonzero = reductions.any, reductions.all, reductions.count_nonzero

    __lt__, __le__ = _operator(operator.lt), _operator(operator.le)
    __gt__, __ge__ = _operator(operator.gt), _operator(operator.ge)
    __add__, __radd__ = _operator(operator.add), _operator(operator.add, True)
    __sub__, __rsub__ = _operator(operator.sub), _operator(operator.sub, True)
    __mul__, __rmul__ = _operator(operator.mul), _operator(operator.mul, True)
    __truediv__, __rtruediv__ = _operator(operator.truediv), _operator(operator.truediv, True)
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv), _operator(operator.floordiv, True)
    __mod__, __rmod__ = _operator(operator.mod), _operator(operator.mod, True)
    __pow__, __rpow__ = _operator(operator.pow), _operator(operator.pow, True)
    __matmul__, __rmatmul__ = _operator(operator.matmul), _operator(operator.matmul, True)
    __lshift__, __rlshift__ = _operator(operator.lshift), _operator(operator.lshift, True)
    __rshift__, __rrshift__ = _operator(operator.rshift), _operator(operator.rshift, True)
    __and__, __rand__ = _operator(operator.and_), _operator(operator.and_, True)
    __or__, __ror__ = _operator(operator.or_), _operator(operator.or_, True)
    __xor__, __rxor__ = _operator(operator.xor), _operator(operator.xor, True)
    __divmod__, __rdivmod__ = _operator(divmod), _operator(divmod, True)
    __neg__, __pos__, __abs__, __invert__ = _sign(operator.neg), _sign(operator.pos), _sign(operator.abs), _sign(operator.invert)
    __iadd__, __isub__, __imul__ = _in_place(operator.iadd), _in_place(operator.isub), _in_place(operator.imul)
    __itruediv__, __ifloordiv__, __imod__ = _in_place(operator.itruediv), _in_place(operator.ifloordiv), _in_place(operator.imod)
    __ipow__, __imatmul__, __ilshift__ = _in_place(operator.ipow), _in_place(operator.imatmul), _in_place(operator.ilshift)
    __irshift__, __iand__, __ior__ = _in_place(operator.irshift), _in_place(operator.iand), _in_place(operator.ior)
    __ixor__ = _in_place(operator.ixor)

    def __float__(self) -> float:
        return float(self.item())  # type: ignore[arg-type]

    def __int__(self) -> int:
        return int(self.item())  # type: ignore[arg-type]

    def __complex__(self) -> complex:
        return complex(self.item())

    def __round__(self, digits: int | None = None) -> Any:
        number: Any = self.item()
        return round(number, digits)

    def __bool__(self) -> bool:
        if self.size != 1:
            fail(f"an array of {self.size} elements is neither true nor false: use umem.all_equal, umem.all_close, or "
                 "numpy.asarray(array).any()")
        return bool(self.item())

    def __index__(self) -> int:
        value = self.item() if self.size == 1 else None
        return value if isinstance(value, int) else fail("only an array of one integer can be an index", 5)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return to_list(self)

    @_conversion
    def astype(self, dtype: Any, place: Place | str | None = None, *, casting: str = "unsafe", saturate: bool = False,
               order: str = "K", copy: bool = True) -> Array:
        """A new array with the elements converted to another type, on the place that copy() would take.

        As numpy.astype: floating-point numbers are rounded toward zero to integers, and numbers out of the range of an
        integer type wrap. NaN and infinities become 0 there.

        Parameters
        ----------
        dtype : umem.DType, str, type or NumPy dtype
        place : Place, optional
        casting : {"no", "equiv", "safe", "same_kind", "unsafe"}, optional
            Which conversions are allowed: of numpy.can_cast.
        saturate : bool, optional
            True: numbers out of the range of an integer type become the nearest number in range, infinities included.
        order : {"K", "C", "A"}, optional
            The new array is in C order.
        copy : bool, optional
            False: the array itself, if nothing is to be done.

        Raises
        ------
        umem.TypeError
            casting forbids the conversion, or there is none.
        """
        return exchange.as_type(self, dtype, place, casting, saturate, order, copy)

    # ---- the host ----

    def numpy(self, *, copy: bool = False) -> NumpyArray[Element]:
        """A NumPy array: over the same memory, or a copy.

        Parameters
        ----------
        copy : bool
            False: shares the memory, and raises umem.NotSupportedError where the CPU cannot read it. True: a copy,
            from any place.
        """
        found: NumpyArray[Element] = exchange.to_numpy(self, copy)
        return found

    def device(self, place: Place | str | None = None, mode: Mode = "rw") -> _Access:
        """The array for a GPU, with `__cuda_array_interface__` and DLPack, for a with block.

        The array itself where a GPU can use the memory and no other place is named; else a copy on the place, which is
        brought back as by host().

        Parameters
        ----------
        place : Place, optional
            Where the copy is. Default: umem.Cuda(0).
        mode : {"r", "w", "rw"}
            As of host().
        """
        if place is None:
            capabilities = 0 if self.place is None else self.place.capabilities
            place = self.place if capabilities & DEVICE_ACCESSIBLE else Cuda(0)
        where: Place = _core._find_new_place(place)
        return _Access(self, mode, where, self.place is where)

    @contextmanager
    def lock(self) -> Iterator[Array[Element]]:
        """A view with sole access to the memory, for a with block.

        While the block runs, every use of other arrays over the memory raises umem.RuntimeError; NumPy arrays and
        tensors that exist already are not affected. It protects parts of a program from each other, and is no mutex
        between threads.
        """
        key = self._lock()
        try:
            yield self._with_key(key)
        finally:
            self._unlock()

    # ---- exchange ----

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumpyArray[Element]:
        found: NumpyArray[Element] = exchange.array_protocol(self, dtype, copy)
        return found

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return exchange.array_ufunc(ufunc, method, inputs, options)

    def __jax_array__(self) -> Any:
        return exchange.to_jax(self)

    def __arrow_array__(self, type: Any = None) -> Any:
        return exchange.to_arrow(self, type)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        from .arrow import to_arrow

        found: tuple[Any, Any] = to_arrow(self, False)
        return found

    def __arrow_c_device_array__(self, requested_schema: Any = None, **options: Any) -> tuple[Any, Any]:
        from .arrow import to_arrow

        found: tuple[Any, Any] = to_arrow(self, True)
        return found

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return exchange.array_interface(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return exchange.cuda_array_interface(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return exchange.pickled(self, int(protocol))

    def __copy__(self) -> Array[Element]:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Array[Element]:
        return self.copy()

    # ---- text ----

    def __format__(self, form: str) -> str:
        """As of its number for an array without dimensions."""
        return format(self.item(), form) if form and not self.ndim else super().__format__(form)

    def __repr__(self) -> str:
        if self.released:
            return "<umem.Array: released>"
        try:
            lines = self._values().replace("\n", "\n" + " " * len("<umem.Array: "))
            return f"<umem.Array: {lines or f'shape {self.shape}'}, {self.dtype}, {self.place!r}>"
        except RuntimeError:
            return f"<umem.Array: locked, {self.place!r}>"

    def _repr_html_(self) -> str:
        """The form of an array in notebooks: a table of its properties, and the elements of a small one in RAM."""
        from html import escape

        if self.released:
            return escape(repr(self))
        rows = {"shape": self.shape, "type": self.dtype, "bytes": f"{self.nbytes:,}", "place": repr(self.place)}
        table = "".join(f"<tr><th>{name}</th><td>{escape(str(text))}</td></tr>" for name, text in rows.items())
        return f"<table>{table}</table><pre>{escape(self._values())}</pre>".replace("<pre></pre>", "")

    def _values(self) -> str:
        """The elements of a small array in RAM, where a look at them costs nothing; empty for others."""
        if not 0 < self.size <= 100 or self.place.kind != "host" or self.dtype.kind == "V":
            return ""
        return str(self.numpy())


class _Access:
    """An array on a place, for a with block: see Array.host and Array.device."""

    __slots__ = ("_array", "_copy", "_inner", "_mode", "_place", "_shares")
    _copy: Array
    _inner: Array

    def __init__(self, array: Array, mode: str, place: Place, shares: bool) -> None:
        if mode not in _MODES:
            fail(f"mode is {mode!r}; known are 'r', 'w', 'rw'")
        if mode != "r" and array.read_only:
            fail("the array is read-only: mode 'r' can be used", 8)
        self._array, self._mode, self._place, self._shares = array, mode, place, shares

    def __enter__(self) -> Any:
        return self._array if self._shares else self._begin()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._shares:
            return
        try:
            if kind is None and self._mode != "r":
                self._inner[...] = self._copy
                self._inner.place.synchronize()
        finally:
            self._end()

    def _begin(self) -> Array:
        """Keeps others from writing the array, or from any access to it, and copies it."""
        array, place, reads = self._array, self._place, self._mode == "r"
        if reads:
            array._read(1)
        self._inner = inner = array if reads else array._with_key(array._lock())
        try:
            self._copy = copy = inner.to(place) if self._mode != "w" else _core.empty(inner.shape, inner.dtype, place)
            if place.capabilities & ORDERED:
                place.synchronize()
            return copy
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if self._mode == "r":
            self._array._read(-1)
        else:
            self._array._unlock()


class _HostAccess(_Access):
    __slots__ = ()

    def __enter__(self) -> NumpyArray:
        found: NumpyArray = exchange.asarray(self._array if self._shares else self._begin())
        if self._mode == "r":
            found.flags.writeable = False
        return found


class Ghosts:
    """The elements of an array and its ghost cells, by indices that begin at minus the number of ghost cells.

    Attributes
    ----------
    widths : tuple of int
        How many ghost cells there are before and after the elements of each dimension.
    whole : Array
        All elements, as an array whose indices begin at 0.
    """

    __slots__ = ("_array", "whole", "widths")

    def __init__(self, array: Array) -> None:
        self._array = array
        self.whole: Array = getattr(array, "_whole", array)
        self.widths: tuple[int, ...] = getattr(array, "_ghost_widths", (0,) * array.ndim)

    def _shift(self, part: Any, dim: int) -> Any:
        width, extent = self.widths[dim], self._array.shape[dim]
        if isinstance(part, slice):
            if part.step is not None and part.step <= 0:
                fail("slices with ghost cells need a step greater than 0")
            first = -width if part.start is None else part.start
            end = extent + width if part.stop is None else part.stop
            first, end = (min(max(i + width, 0), extent + 2 * width) for i in (first, end))
            return slice(first, end, part.step)
        try:
            if isinstance(part, bool):
                raise TypeError
            index = operator.index(part)
        except TypeError:
            fail(f"an index with ghost cells is an integer or a slice, not {part!r}", 6)
        if not -width <= index < extent + width:
            fail(f"index {index} is outside of dimension {dim}, which has indices {-width} to {extent + width - 1}", 6)
        return index + width

    def _key(self, key: Any) -> tuple[Any, ...]:
        parts = key if isinstance(key, tuple) else (key,)
        at = next((i for i, part in enumerate(parts) if part is Ellipsis), None)
        if at is not None:
            rest = (slice(None),) * (self._array.ndim - len(parts) + 1)
            parts = parts[:at] + rest + parts[at + 1:]
        if len(parts) > self._array.ndim:
            fail(f"too many indices: the array has {self._array.ndim} dimensions, the key {len(parts)}", 6)
        return tuple(self._shift(part, dim) for dim, part in enumerate(parts))

    def __getitem__(self, key: Any) -> Array:
        return self.whole[self._key(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.whole[self._key(key)] = value

    def __repr__(self) -> str:
        return f"<umem.Ghosts: {self.widths} of {self._array!r}>"


_core._set_host(lambda array, mode: _HostAccess(array, mode, _core._host(), array._is_host))
_core._set_stored_item(lambda array: array.numpy(copy=True).item())
_core._set_array(Array, dtypes._numbers, dtypes._find, dtypes._dtypes, dtypes._make)
