"""umem's arrays for Python by ctypes, as far as the tests of umem/dlpack.h need them: capsules out and in, as the array
API describes them."""
import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

VERSIONED, UNVERSIONED = b"dltensor_versioned", b"dltensor"
READ_ONLY, COPIED = 1, 2
NEVER, IF_NEEDED, ALWAYS = range(3)
DEFAULT_STREAM = -(2**63)
CPU = (1, 0)


class Options(Structure):
    """umemDLPackOptions"""

    _fields_ = [("size", c_size_t), ("device", c_int), ("copy", c_int), ("stream", c_int64)]


class Versioned(Structure):
    """umemDLManagedTensorVersioned up to flags"""


Versioned._fields_ = [
    ("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p),
    ("deleter", CFUNCTYPE(None, POINTER(Versioned))), ("flags", c_uint64),
]


class Unversioned(Structure):
    """umemDLManagedTensor: 48 bytes of DLTensor, then these"""


Unversioned._fields_ = [
    ("tensor", c_uint64 * 6), ("manager_ctx", c_void_p), ("deleter", CFUNCTYPE(None, POINTER(Unversioned)))
]

api = ctypes.pythonapi
Destructor = CFUNCTYPE(None, c_void_p)
new_capsule = api.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [c_void_p, c_char_p, Destructor]
pointer_in = api.PyCapsule_GetPointer
pointer_in.restype, pointer_in.argtypes = c_void_p, [ctypes.py_object, c_char_p]
is_valid = api.PyCapsule_IsValid
is_valid.restype, is_valid.argtypes = c_int, [ctypes.py_object, c_char_p]
rename = api.PyCapsule_SetName
rename.restype, rename.argtypes = c_int, [ctypes.py_object, c_char_p]
# For the destructor of a capsule, which must not make a new reference to it.
pointer_in_dying = CFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", api))
is_valid_dying = CFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", api))


@Destructor
def end_unused(capsule):
    """The deleter of a tensor that no consumer has taken: then the capsule still has its first name."""
    for name, form in ((VERSIONED, Versioned), (UNVERSIONED, Unversioned)):
        if is_valid_dying(capsule, name):
            tensor = ctypes.cast(pointer_in_dying(capsule, name), POINTER(form))
            tensor.contents.deleter(tensor)


USED_NAMES = {VERSIONED: b"used_dltensor_versioned", UNVERSIONED: b"used_dltensor"}


class Umem:
    """The library at path, and a context in RAM that counts the bytes of its blocks."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        status, shape = POINTER(c_int), POINTER(c_int64)
        self.declare("umemArray_zeros", c_void_p, c_void_p, c_uint32, c_int, shape, shape, status)
        self.declare("umemArray_slice", c_void_p, c_void_p, c_int, c_int64, c_int64, c_int64, status)
        self.declare("umemArray_set_read_only", None, c_void_p, ctypes.c_bool, status)
        self.declare("umemArray_is_read_only", ctypes.c_bool, c_void_p)
        self.declare("umemArray_release", None, c_void_p)
        self.declare("umemArray_address", c_void_p, c_void_p)
        self.declare("umemArray_rank", c_int, c_void_p)
        self.declare("umemArray_shape", shape, c_void_p)
        self.declare("umemArray_strides", shape, c_void_p)
        self.declare("umemArray_type", c_uint32, c_void_p)
        self.declare("umem_element_by_name", c_uint32, c_char_p)
        self.declare("umem_element_name", c_size_t, c_uint32, c_char_p, c_size_t)
        self.declare("umem_thread_message", c_char_p)
        self.declare("umemLimit_used", c_size_t, c_void_p)
        for form in ("", "_unversioned"):
            self.declare(f"umemArray_to_dlpack{form}", c_void_p, c_void_p, POINTER(Options), status)
            self.declare(f"umemArray_from_dlpack{form}", c_void_p, c_void_p, c_void_p, status)
        self.host, self.limit = (ctypes.create_string_buffer(1024) for _ in range(2))
        self.declare("umemHost_ctor", c_int, c_void_p)(self.host)
        self.declare("umemLimit_ctor", c_int, c_void_p, c_void_p, c_size_t)(self.limit, self.host, 1 << 30)

    def declare(self, name, result, *arguments):
        function = getattr(self.lib, name)
        function.restype, function.argtypes = result, arguments
        return function

    def call(self, name, *arguments):
        """A function with a status as its last argument; BufferError if it fails."""
        status = c_int(0)
        result = getattr(self.lib, name)(*arguments, ctypes.byref(status))
        if status.value:
            message = self.lib.umem_thread_message().decode()
            self.lib.umem_thread_clear()
            raise BufferError(message)
        return result

    def used(self):
        """Bytes of blocks that are not freed."""
        return self.lib.umemLimit_used(self.limit)

    def zeros(self, shape, dtype):
        extents = (c_int64 * len(shape))(*shape)
        element = self.lib.umem_element_by_name(str(dtype).encode())
        return Array(self, self.call("umemArray_zeros", self.limit, element, len(shape), extents, None))

    def take(self, capsule):
        """An array over the tensor in capsule."""
        for name, form in ((VERSIONED, ""), (UNVERSIONED, "_unversioned")):
            if is_valid(capsule, name):
                array = self.call(f"umemArray_from_dlpack{form}", self.host, pointer_in(capsule, name))
                rename(capsule, USED_NAMES[name])
                return Array(self, array)
        raise TypeError("a capsule of another name")


class Array:
    """One reference to a umemArray, with the methods of the array API for DLPack."""

    def __init__(self, umem, handle, device=0):
        self.umem, self.handle, self.device = umem, handle, device

    def __del__(self):
        self.umem.lib.umemArray_release(self.handle)

    def __dlpack_device__(self):
        return CPU

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = max_version is not None and max_version[0] >= 1
        permission = {None: NEVER, False: NEVER, True: ALWAYS}[copy]
        number = DEFAULT_STREAM if stream is None else stream
        options = Options(ctypes.sizeof(Options), dl_device[0] if dl_device else 0, permission, number)
        form = "" if versioned else "_unversioned"
        tensor = self.umem.call(f"umemArray_to_dlpack{form}", self.handle, ctypes.byref(options))
        return new_capsule(tensor, VERSIONED if versioned else UNVERSIONED, end_unused)

    def slice(self, dim, first, count, step):
        return Array(self.umem, self.umem.call("umemArray_slice", self.handle, dim, first, count, step))

    def set_read_only(self):
        self.umem.call("umemArray_set_read_only", self.handle, True)

    @property
    def address(self):
        return self.umem.lib.umemArray_address(self.handle) or 0

    @property
    def is_read_only(self):
        return self.umem.lib.umemArray_is_read_only(self.handle)

    @property
    def shape(self):
        return tuple(self.umem.lib.umemArray_shape(self.handle)[: self.umem.lib.umemArray_rank(self.handle)])

    @property
    def strides(self):
        return tuple(self.umem.lib.umemArray_strides(self.handle)[: self.umem.lib.umemArray_rank(self.handle)])

    @property
    def dtype(self):
        name = ctypes.create_string_buffer(64)
        self.umem.lib.umem_element_name(self.umem.lib.umemArray_type(self.handle), name, 64)
        return name.value.decode()
