"""Exchange of arrays with other libraries, which are imported only where the program asks for their arrays."""
from __future__ import annotations


from . import _core, dtypes
from ._lists import from_lists
from ._options import fail
from .places import DEVICE_ACCESSIBLE, Cuda, CudaAsync, CudaManaged, Place

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .array import Array

_CUDA, _MANAGED = 2, 13  # device codes of DLPack
_IMMUTABLE = "jax", "jaxlib", "pyarrow", "tensorflow"  # their arrays cannot be written
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
    return asarray(array)


def _interface(array: Array) -> dict[str, Any]:
    if array.dtype.kind == "V":
        fail(f"the array interface has no elements of {array.dtype}", 5)
    return {
        "shape": array.shape, "typestr": array.dtype.str, "data": (array._hand_out(), array.read_only),
        "strides": None if array.is_contiguous else array.strides, "version": 3,
    }


def array_interface(array: Array) -> dict[str, Any]:
    """`__array_interface__`; AttributeError where the CPU cannot read the memory."""
    if not array._is_host:
        raise AttributeError("the CPU cannot read the memory of this array: use host(), or numpy(copy=True)")
    array.place.synchronize()
    return _interface(array)


def cuda_array_interface(array: Array) -> dict[str, Any]:
    """`__cuda_array_interface__`, version 3; AttributeError where no GPU can use the memory.

    The stream is that of the place. Memory without a stream is ready.
    """
    if not array.place.capabilities & DEVICE_ACCESSIBLE:
        raise AttributeError("no GPU can use the memory of this array: use device()")
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
    return unpickle, (array.shape, str(array.dtype), PickleBuffer(data) if protocol >= 5 else memoryview(data).tobytes())


def unpickle(shape: tuple[int, ...], dtype: str, data: Any) -> Array:
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
        (data, read_only), shape, kind = interface["data"], tuple(interface["shape"]), str(interface["typestr"])
        address, strides = data.__index__() or 64, interface.get("strides")
    except (AttributeError, KeyError, TypeError, ValueError):
        fail(f"{type(value).__name__} has an array interface without the address, shape or type of its elements", 5)
    if kind[:1] == ">" and kind[2:] != "1":
        fail("the elements have another order of bytes than this machine", 5)
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
    if interface.get("stream") is not None:
        stream = interface["stream"]
        place.wait(CudaAsync(place.info.ordinal or 0, stream="legacy" if stream == 1 else stream))
    return array


def find(value: Any, dtype: Any = None, place: Place | None = None) -> tuple[Array, bool]:
    """An array of what value holds, and whether it shares the memory of value. place: where the array will be used."""
    from .array import Array

    if isinstance(value, Array):
        return value, True
    if isinstance(value, type):
        fail(f"the class {value.__name__} cannot be an array", 5)
    if isinstance(value, (int, float, complex, list, tuple)):
        return from_lists(value, dtype), False
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
        return _from_interface(value, value.__array_interface__, _core._host()), True
    try:
        return _from_buffer(value), True
    except TypeError:
        if hasattr(value, "__array__"):
            return _core.from_dlpack(value.__array__()), True
    return fail(f"{type(value).__name__} cannot be an array", 5)


_core._set_imports(_device_place, _is_immutable, _find_read_only)
