"""Exchange of arrays with other libraries, which are imported only where the program asks for their arrays."""
from __future__ import annotations

import sys

from . import _core, dtypes
from ._lists import from_lists
from ._options import fail
from .places import DEVICE_ACCESSIBLE, Cuda, CudaAsync, CudaManaged, Place, default

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._array import Array

_CUDA, _MANAGED = 2, 13  # device codes of DLPack
_IMMUTABLE = "jax", "jaxlib", "pyarrow", "tensorflow"  # their arrays cannot be written
_ARROW = "__arrow_c_device_array__", "__arrow_c_array__", "__arrow_c_stream__"
_on_gpus: dict[tuple[int, int], Place] = {}  # the places of imported memory


# ---- to others ----

def _load_numpy(array: Array) -> Any:
    global asarray
    import numpy

    asarray = numpy.asarray
    return asarray(array)


asarray: Callable[[Any], Any] = _load_numpy  # of NumPy, which is imported when it is called first


def to_numpy(array: Array, copy: bool) -> Any:
    """See Array.numpy."""
    if copy:
        import numpy

        made = numpy.empty(array.shape, array.dtype.dtype)
        find(made)[0][...] = array
        return made
    if not array._is_host:
        fail(f"the CPU cannot read the memory of {array.place!r}: use host(), or numpy(copy=True)", 8)
    if not array.dtype._has_format:
        return _bytes_of(array).view(array.dtype.dtype)[..., 0]
    return asarray(array)


def _bytes_of(array: Array) -> Any:
    """The bytes of the elements as a NumPy array over the same memory, with a dimension more."""
    import numpy

    array.place.synchronize()
    return numpy.asarray(_core._borrow(array.place, array._hand_out(), "uint8", (*array.shape, array.itemsize),
                                       (*array.strides, 1), array, array.read_only))


def array_protocol(array: Array, dtype: Any, copy: bool | None) -> Any:
    """What `__array__` returns: the memory itself, or a copy where the CPU cannot read it and no GPU uses it."""
    if not array._is_host and copy is False:
        fail(f"a copy is needed, because the CPU cannot read the memory of {array.place!r}, but copy is False")
    if not array._is_host and array.place.capabilities & DEVICE_ACCESSIBLE:
        fail(f"NumPy reads no memory of a GPU ({array.place!r}): copy it with a.numpy(copy=True) or a.host(), or compute "
             "there with cupy.asarray(a) or torch.as_tensor(a)", 5)
    found = to_numpy(array, bool(copy) or not array._is_host)
    if dtype is None or found.dtype == dtype:
        return found
    return found.astype(dtype) if copy is not False else fail("a copy is needed for the dtype, but copy is False")


def array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What `__array_ufunc__` returns: as of NumPy arrays; results go to arrays of umem that are named by out."""
    from contextlib import ExitStack

    from ._array import Array

    def plain(value: Any) -> Any:
        return array_protocol(value, None, None) if isinstance(value, Array) else value

    first = 1 if method == "at" and isinstance(inputs[0], Array) else 0  # which "at" changes
    operands = [plain(value) for value in inputs[first:]]
    options = {name: plain(value) for name, value in options.items()}
    outs = options.pop("out", ())
    with ExitStack() as stack:
        if first:
            operands.insert(0, stack.enter_context(inputs[0].host()))
        if outs:
            mode: Any = "rw" if "where" in options else "w"
            options["out"] = tuple(stack.enter_context(out.host(mode)) if isinstance(out, Array) else out for out in outs)
        found = getattr(ufunc, method)(*operands, **options)
    if not any(isinstance(out, Array) for out in outs):
        return found
    return outs[0] if len(outs) == 1 else tuple(a if b is None else b for a, b in zip(found, outs))


def as_type(array: Array, dtype: Any, place: Place | str | None, casting: str, saturate: bool, order: str,
            copy: bool) -> Array:
    """See Array.astype."""
    if order not in ("K", "C", "A"):
        fail(f"order is {order!r}: the new array is in C order")
    if casting != "unsafe":
        import numpy

        made = dtypes.dtype(dtype)
        rule: Any = casting
        if not numpy.can_cast(array.dtype.dtype, made.dtype, rule):
            fail(f"{array.dtype} to {made} is no conversion of casting {casting!r}", 5)
    if not copy and array.dtype == dtype and place in (None, array.place):
        return array
    return array._astype(dtype, place, saturate)


def convert(dst: Array, src: Array) -> None:
    """Sets dst to src, whose elements NumPy converts, piece by piece."""
    import numpy

    from .reductions import each

    kind = dst.dtype.dtype
    if src.shape == dst.shape:
        for key, part in each(src, lambda _, elements: elements.astype(kind)):
            dst[key] = part
    else:
        found = src.numpy(copy=True).astype(kind)
        extra = max(found.ndim - dst.ndim, 0)  # dimensions of one element, which an assignment drops
        dst[...] = numpy.broadcast_to(found.reshape(found.shape[extra:]) if set(found.shape[:extra]) <= {1} else found, dst.shape)


def make_source(value: Any, dtype: Any) -> Array:
    """An array of a value that is assigned to elements of a type."""
    if not _core._is_stored(dtype) or isinstance(value, _core.Array):
        found = find(value, dtype)[0]
        if found.dtype._named is not None and found.dtype.kind in "mMSUV" and not isinstance(value, _core.Array):
            fail(f"elements of {dtype} cannot be {found.dtype}: astype() converts them", 5)
        return found
    import numpy

    return find(numpy.asarray(value, dtype.dtype))[0]


def view(array: Array, dtype: Any) -> Array:
    """See Array.view."""
    made = dtypes.dtype(dtype)
    shape, strides, before = array.shape, array.strides, array.itemsize
    if made.itemsize != before:
        nbytes = shape[-1] * before if shape else 0
        if not shape or (shape[-1] != 1 and strides[-1] != before) or nbytes % made.itemsize:
            fail(f"elements of {array.dtype} in shape {shape} and strides {strides} are none of {made}")
        shape, strides = (*shape[:-1], nbytes // made.itemsize), (*strides[:-1], made.itemsize)
    return _core._borrow(array.place, array._hand_out(), made, shape, strides, array, array.read_only)


def to_jax(array: Array) -> Any:
    """What `__jax_array__` returns."""
    from importlib import import_module

    if array.place.capabilities & DEVICE_ACCESSIBLE:
        return import_module("jax.dlpack").from_dlpack(array)
    return import_module("jax.numpy").asarray(array_protocol(array, None, None))


def to_arrow(array: Array, kind: Any) -> Any:
    """What `__arrow_array__` returns: over the same memory where the CPU can read it."""
    from importlib import import_module

    return import_module("pyarrow").array(array_protocol(array, None, None), type=kind)


def _interface(array: Array) -> dict[str, Any]:
    return {
        "shape": array.shape, "typestr": array.dtype.str, "data": (array._hand_out(), array.read_only),
        "strides": None if array.is_contiguous else array.strides, "version": 3,
    }


def array_interface(array: Array) -> dict[str, Any]:
    """`__array_interface__`; AttributeError where the CPU cannot read the memory."""
    if not array._is_host:
        raise AttributeError("the CPU cannot read the memory of this array: use host(), or numpy(copy=True)")
    if not array.dtype._has_format:
        raise AttributeError(f"the array interface has no elements of {array.dtype}")
    array.place.synchronize()
    return _interface(array)


def cuda_array_interface(array: Array) -> dict[str, Any]:
    """`__cuda_array_interface__`, version 3; AttributeError where no GPU can use the memory.

    The stream is that of the place. Memory without a stream is ready.
    """
    if not array.place.capabilities & DEVICE_ACCESSIBLE:
        raise AttributeError("no GPU can use the memory of this array: use device()")
    if not array.dtype._has_format:
        raise AttributeError(f"the array interface has no elements of {array.dtype}")
    stream = array.place.info.stream
    if stream is None:
        array.place.synchronize()
    interface = _interface(array)
    interface["stream"] = None if stream is None else stream or 1
    if not array.size:
        interface["data"] = (0, array.read_only)
    return interface


def pickled(array: Array, protocol: int) -> Any:
    """What pickle stores: the bytes of an array in RAM, from protocol 5 on as a buffer that may travel by itself; for memory
    that can be shared, where it is."""
    if array.place.kind != "host":
        from . import handles

        return handles.pickled(array) or fail(handles.advice(array), 5)
    from pickle import PickleBuffer

    flat = array if array.is_contiguous else array.copy()
    data = flat._bytes()
    return unpickle, (array.shape, array.dtype._named or str(array.dtype), PickleBuffer(data) if protocol >= 5 else memoryview(data).tobytes())


def unpickle(shape: tuple[int, ...], dtype: Any, data: Any) -> Array:
    """The array that pickle has stored, over the memory of data where it can be written or came by itself."""
    kind = dtypes.dtype(dtype)
    view, needed = memoryview(data), kind.itemsize
    for extent in shape:
        needed *= extent
    if view.nbytes != needed or not view.c_contiguous:
        fail(f"the pickle of an array needs {needed} bytes without gaps, and has {view.nbytes}: were its buffers mixed up?")
    address = _core._buffer_address(view)
    if not isinstance(data, bytes) and address % min(kind.itemsize, 16) == 0:
        return _core._borrow(_core._host(), address, kind, shape, None, view, view.readonly)
    array = _core.empty(shape, kind)
    memoryview(array._bytes())[:] = view
    return array


# ---- from others ----

def _device_place(code: int, number: int) -> Place:
    """The place of memory of a GPU."""
    if code not in (_CUDA, _MANAGED):
        fail(f"umem has no place for device {code} of DLPack", 8)
    place = _on_gpus.get((code, number))
    if place is None:  # another thread may be first
        place = _on_gpus.setdefault((code, number), (Cuda if code == _CUDA else CudaManaged)(number))
    return place


def cuda_place(number: int) -> Place:
    """The place of memory of a GPU that others have allocated."""
    return _device_place(_CUDA, number)


def _come_after(place: Place, number: int, stream: int) -> None:
    """Lets later work of a place start after what a stream of CUDA has queued so far."""
    place.wait(CudaAsync(max(number, 0), stream=stream or "legacy"))


def _is_immutable(value: Any) -> bool:
    """Whether an array is read-only although its tensor, of a version of DLPack without flags, cannot say so."""
    if type(value).__module__.partition(".")[0] in _IMMUTABLE:
        return True
    try:
        return memoryview(value).readonly
    except (BufferError, TypeError, ValueError):
        return False


def _from_buffer(value: Any) -> Array:
    view = memoryview(value)  # while it lives, value keeps its memory
    form = view.format[1:] if view.format[:1] in "@=<" and len(view.format) > 1 else view.format
    names = {"Zf": "complex64", "Zd": "complex128", "c": "uint8"}
    if len(form) > 1 and form not in names or form in "xspP":
        fail(f"a buffer with elements {view.format!r} cannot be an array", 5)
    address = _core._buffer_address(view)
    return _core._borrow(_core._host(), address, names.get(form, form), view.shape, view.strides, view,
                         view.readonly)


def _from_interface(value: Any, interface: dict[str, Any], place: Place) -> Array:
    try:
        (data, read_only), shape, kind = interface["data"], tuple(interface["shape"]), interface["typestr"]
        address, strides = data.__index__() or 64, interface.get("strides")
    except (AttributeError, KeyError, TypeError, ValueError):
        fail(f"{type(value).__name__} has an array interface without the address, shape or type of its elements", 5)
    own = getattr(value, "dtype", None)
    if getattr(own, "str", None) == kind:  # says more, such as bfloat16, or fields
        kind = own
    return _core._borrow(place, address, kind, shape, strides, value, bool(read_only))


def _find_read_only(value: Any) -> Array | None:
    """The array of an object in RAM that is read-only, which a version of DLPack without flags cannot export."""
    interface = getattr(value, "__array_interface__", None)
    if interface is None or not interface["data"] or not interface["data"][1]:
        return None
    return _from_interface(value, interface, _core._host())


def _from_cuda_interface(value: Any, interface: dict[str, Any], place: Place | None) -> Array:
    """The array comes after the work that is queued on the stream of the interface."""
    if place is None or not place.capabilities & DEVICE_ACCESSIBLE:
        place = _device_place(_CUDA, 0)
    array = _from_interface(value, interface, place)
    stream = interface.get("stream")
    if stream is not None:
        _come_after(place, place.info.ordinal or 0, 0 if stream == 1 else stream)
    return array


def find(value: Any, dtype: Any = None, place: Place | None = None) -> tuple[Array, bool]:
    """An array of what value holds, and whether it shares the memory of value. place: where the array will be used."""
    from ._array import Array

    if isinstance(value, Array):
        return value, True
    if isinstance(value, type):
        fail(f"the class {value.__name__} cannot be an array", 5)
    if dtype is not None and _core._is_stored(dtype) and not hasattr(value, "dtype"):
        return make_source(value, dtypes.dtype(dtype)), False
    if dtype is None and type(value) in (list, tuple):
        made = _core._from_list(value)
        if made is not None:
            return made, False
    if isinstance(value, (int, float, complex, list, tuple)):
        return from_lists(value, dtype), False
    if isinstance(value, range):
        return _core._arange(value.start, value.stop, value.step, True, "int64", _core._host()), False
    if _core._kind_of_number(value) >= 0:
        own = getattr(value, "dtype", None)
        if not hasattr(value, "__dlpack__"):  # its interface names memory that is gone
            return from_lists(value, own if dtype is None else dtype), False
        if dtype is not None and dtypes.dtype(dtype) != own:
            return from_lists(value, dtype), False
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None and not hasattr(value, "__dlpack__"):
        return _from_cuda_interface(value, interface, place), True
    if hasattr(value, "__dlpack__"):
        try:
            return _core.from_dlpack(value), True
        except (BufferError, TypeError):  # read-only arrays of older producers, and types that DLPack lacks
            if not hasattr(value, "__array_interface__"):
                raise
    if hasattr(value, "__array_interface__"):
        numpy = sys.modules.get("numpy")
        if numpy and isinstance(value, numpy.generic):  # its interface names memory that is gone
            value = numpy.asarray(value)
        return _from_interface(value, value.__array_interface__, _core._host()), True
    try:
        return _from_buffer(value), True
    except TypeError:
        if not hasattr(value, "__array__") and any(hasattr(value, name) for name in _ARROW):
            from .arrow import from_arrow

            found = from_arrow(value)
            return found, found.read_only
        if hasattr(value, "__array__"):
            return _core.from_dlpack(value.__array__()), True
    return fail(f"{type(value).__name__} cannot be an array", 5)


_core._set_imports(_device_place, _is_immutable, _find_read_only, default, _come_after)
