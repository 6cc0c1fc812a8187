"""Allocators of other libraries as places."""
from __future__ import annotations

from contextlib import nullcontext

from .._options import fail
from ..places import Cuda, CudaHost, CudaManaged, External, Place
from .use import load

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ALIGNMENT = 256  # of all memory of CUDA
_LEGACY = 1  # CUDA's name for its legacy default stream
_TYPE = 5


class _Stream:
    """A stream of CUDA by its number, for libraries that take objects with __cuda_stream__."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._number


class _Streams(dict[int, "Any"]):
    """The streams of a library by their numbers. Work that is in the order of no stream is in that of the legacy one."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> Any:
        made = self[number] = self._make(number)
        return made

    def of(self, number: int | None) -> Any:
        return self[number or _LEGACY]


def _gpu_place(device: int, managed: bool, of_host: bool) -> Place:
    return CudaManaged(device) if managed else CudaHost() if of_host else Cuda(device)


# ---- RMM ----

def _innermost(resource: Any) -> Any:
    while hasattr(resource, "upstream_mr") or hasattr(resource, "get_upstream"):
        resource = resource.upstream_mr if hasattr(resource, "upstream_mr") else resource.get_upstream()
    return resource


def _of_rmm(resource: Any, upstream: Place | str | None) -> External:
    stream_module = load("rmm.pylibrmm.stream", "rmm", "rmm-cu13")
    streams = _Streams(lambda number: stream_module.Stream(_Stream(number)))
    kind = type(_innermost(resource)).__name__
    if upstream is None and ("System" in kind or "Callback" in kind):
        fail(f"name the place whose memory {kind} returns: place_of(resource, umem.Cuda(0))")
    if upstream is None:
        gpu = load("rmm._cuda.gpu", "rmm", "rmm-cu13")
        upstream = _gpu_place(gpu.getDevice(), "Managed" in kind, "Pinned" in kind)

    waits = "Managed" in kind or "Pinned" in kind  # for what the CPU may use at once

    def allocate(nbytes: int, alignment: int, number: int | None) -> int:
        stream = streams.of(number)
        address: int = resource.allocate(nbytes, stream)
        if number is None and waits:
            stream.synchronize()
        return address

    def deallocate(address: int, nbytes: int, alignment: int, number: int | None) -> None:
        resource.deallocate(address, nbytes, streams.of(number))

    return External(upstream, allocate, deallocate, alignment=_ALIGNMENT, aligns=False)


# ---- cuda.core ----

def _of_cuda_core(resource: Any, upstream: Place | str | None) -> External:
    core = load("cuda.core", "cuda.core", "cuda-core")
    streams = _Streams(lambda number: core.Stream.from_handle(number))
    buffers: dict[int, Any] = {}  # that are alive
    if upstream is None:
        upstream = _gpu_place(max(resource.device_id, 0), bool(getattr(resource, "is_managed", False)),
                              resource.is_host_accessible)

    def allocate(nbytes: int, alignment: int, number: int | None) -> int:
        stream = streams.of(number)
        buffer = resource.allocate(nbytes, stream=stream)
        if number is None and resource.is_host_accessible:
            stream.sync()
        buffers[int(buffer.handle)] = buffer
        return int(buffer.handle)

    def deallocate(address: int, nbytes: int, alignment: int, number: int | None) -> None:
        buffers.pop(address).close(streams.of(number))

    return External(upstream, allocate, deallocate, alignment=_ALIGNMENT, aligns=False)


# ---- CuPy ----

def _of_cupy(resource: Any, upstream: Place | str | None) -> External:
    cuda = load("cupy", "CuPy", "cupy-cuda13x").cuda
    malloc = getattr(resource, "malloc", resource)
    streams = _Streams(lambda number: cuda.Stream.null if number == _LEGACY else cuda.ExternalStream(number))
    pointers: dict[int, Any] = {}  # of blocks that are alive
    if upstream is None:
        upstream = Cuda(cuda.Device().id)

    def allocate(nbytes: int, alignment: int, number: int | None) -> int:
        with streams.of(number):  # CuPy's pools keep free memory for each stream
            pointer = malloc(nbytes)
        pointers[pointer.ptr] = pointer
        return int(pointer.ptr)

    def deallocate(address: int, nbytes: int, alignment: int, number: int | None) -> None:
        del pointers[address]

    return External(upstream, allocate, deallocate, alignment=_ALIGNMENT, aligns=False)


# ---- PyTorch ----

def _of_torch(resource: Any, upstream: Place | str | None) -> External:
    cuda = load("torch", "PyTorch", "torch").cuda
    device = cuda.current_device()
    pool = None if resource is cuda else resource  # a MemPool
    if upstream is None:
        upstream = Cuda(device)

    def allocate(nbytes: int, alignment: int, number: int | None) -> int:
        with nullcontext() if pool is None else cuda.use_mem_pool(pool, device):
            address: int = cuda.caching_allocator_alloc(nbytes, device, number or 0)
        return address

    def deallocate(address: int, nbytes: int, alignment: int, number: int | None) -> None:
        cuda.caching_allocator_delete(address)

    return External(upstream, allocate, deallocate, alignment=_ALIGNMENT, aligns=False)


# ---- all ----

_LIBRARIES: dict[str, Callable[[Any, Place | str | None], External]] = {
    "rmm": _of_rmm, "cuda.core": _of_cuda_core, "cupy": _of_cupy, "torch": _of_torch}


def _modules(resource: Any) -> list[str]:
    """The modules of the classes of an object, of the object of a method, and of a function; a module itself."""
    owner = getattr(resource, "__self__", None)
    named = [getattr(resource, "__module__", None) or "", getattr(resource, "__name__", "")]
    return [base.__module__ for thing in (resource, owner) for base in type(thing).__mro__] + named


def make(resource: Any, upstream: Place | str | None) -> External:
    """See umem.place_of."""
    for module in _modules(resource):
        for library, of in _LIBRARIES.items():
            if (module + ".").startswith(library + "."):
                return of(resource, upstream)
    return fail(f"{resource!r} is no allocator of rmm, cuda.core, cupy or torch: make a umem.External of its functions", _TYPE)
