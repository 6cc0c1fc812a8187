"""Stand-ins for CuPy, PyTorch and cuda.core: as little of them as allocates, calling the C functions as they do."""
import contextlib
import ctypes
import sys
import types


def module(monkeypatch, name, **members):
    made = types.ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)
    return made


# ---- CuPy ----

_MALLOC = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_FREE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


class _CupyMemory:
    def __init__(self, size, param, malloc, free, device):
        self.ptr, self._free, self._param, self._device = 0, _FREE(free), param, device
        if size > 0:
            self.ptr = _MALLOC(malloc)(param, size, device) or 0

    def __del__(self):
        if self.ptr:
            self._free(self._param, self.ptr, self._device)


class _OldCupyMemory(_CupyMemory):
    """Of CuPy before version 14, which does not look for exceptions: they are found by Python, later."""

    def __init__(self, *arguments):
        try:
            super().__init__(*arguments)
        except MemoryError as error:
            raise SystemError("returned a result with an exception set") from error


def cupy(monkeypatch, old=False):
    current = {"allocator": None, "device": 0}

    class CFunctionAllocator:
        def __init__(self, param, malloc, free, owner):
            self._functions, self._owner = (param, malloc, free), owner

        def malloc(self, size):
            return (_OldCupyMemory if old else _CupyMemory)(size, *self._functions, current["device"])

    memory = types.SimpleNamespace(CFunctionAllocator=CFunctionAllocator)
    cuda = types.SimpleNamespace(
        memory=memory, get_allocator=lambda: current["allocator"],
        set_allocator=lambda allocator: current.update(allocator=allocator))
    made = module(monkeypatch, "cupy", cuda=cuda)
    made.empty = lambda nbytes: current["allocator"](nbytes)
    made.current = current
    return made


# ---- PyTorch ----

class _PluggableAllocator:
    """As of PyTorch: the functions are looked up by name, and the sizes are kept."""

    def __init__(self, path, malloc, free):
        library = ctypes.CDLL(path)
        self._malloc, self._free = getattr(library, malloc), getattr(library, free)
        self._malloc.restype = ctypes.c_void_p
        self._malloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self._free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self._free.restype = None

    def allocator(self):
        return self

    def set_record_stream_fn(self, address):
        self.record_stream = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)

    def raw_alloc(self, size, device, stream):
        return self._malloc(size, device, stream)

    def raw_delete(self, ptr, size, device, stream):
        self._free(ptr, size, device, stream)


class _Segment:
    """A block that the caching allocator has of a pool; it gives the block back when no tensor and no pool needs it."""

    def __init__(self, allocator, size, device, stream):
        self.ptr = allocator.raw_alloc(size, device, stream)
        self._rest = allocator, size, device, stream
        if not self.ptr:
            raise MemoryError("CUDA out of memory")

    def record_stream(self, stream):
        self._rest[0].record_stream(self.ptr, stream)

    def __del__(self):
        if self.ptr:
            allocator, size, device, stream = self._rest
            allocator.raw_delete(self.ptr, size, device, stream)


def torch(monkeypatch):
    state = types.SimpleNamespace(pool=None, device=0, stream=0, always=None)

    class MemPool:
        def __init__(self, allocator):
            self.allocator, self.cached = allocator, []

    @contextlib.contextmanager
    def use_mem_pool(pool, device=None):
        before, state.pool = state.pool, pool
        yield
        state.pool = before

    @contextlib.contextmanager
    def on_device(number):
        before, state.device = state.device, number
        yield
        state.device = before

    def change_current_allocator(allocator):
        if state.always:
            raise RuntimeError("Can't swap an already initialized allocator")
        state.always = allocator

    def empty(nbytes):
        allocator = state.always or (state.pool and state.pool.allocator)
        if not allocator:
            return None
        made = _Segment(allocator, nbytes, state.device, state.stream)
        if state.pool:
            state.pool.cached.append(made)
        return made

    memory = types.SimpleNamespace(
        CUDAPluggableAllocator=_PluggableAllocator, change_current_allocator=change_current_allocator)
    cuda = types.SimpleNamespace(memory=memory, MemPool=MemPool, use_mem_pool=use_mem_pool, device=on_device,
                                 current_device=lambda: state.device)
    return module(monkeypatch, "torch", cuda=cuda, empty=empty, state=state, __version__="2.11.0")


# ---- cuda.core ----

class Stream:
    def __init__(self, number):
        self.number = number

    def __cuda_stream__(self):
        return 0, self.number


class Buffer:
    @classmethod
    def from_handle(cls, ptr, size, mr=None, owner=None, *, stream=None):
        made = cls()
        made.handle, made.size, made.memory_resource, made.stream = ptr, size, mr, stream
        return made

    def close(self, stream=None):
        if self.handle:
            self.memory_resource.deallocate(self.handle, self.size, stream=stream or self.stream)
            self.handle = 0

    def __del__(self):
        self.close()


def cuda_core(monkeypatch):
    class MemoryResource:
        pass

    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    return module(monkeypatch, "cuda.core", MemoryResource=MemoryResource, Buffer=Buffer)
