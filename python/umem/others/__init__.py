"""Places as the allocators of other libraries, which are imported only when the program calls these functions."""
from __future__ import annotations

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

    from ..places import External, Place
    from .use import Use


def use_in_numpy(place: Place) -> Use:
    """NumPy allocates the memory of its arrays from a place, from now on until the end of a with block or `close`.

    This holds for the calling thread, or rather for its context of `contextvars`: other threads, and tasks of asyncio
    that run already, allocate as before. End the use in the same context, and uses within each other in reverse
    order. Arrays that NumPy has made meanwhile can live on: they keep the place alive, and NumPy frees and resizes
    their memory there.

    Parameters
    ----------
    place : Place
        Memory that the CPU can read and write: Host, MMap, CudaHost, CudaManaged, and pools and adaptors over them.

    Raises
    ------
    umem.NotSupportedError
        The CPU cannot use the memory, or NumPy is older than 1.22.
    umem.NotImplementedError
        NumPy is not installed.
    """
    from . import in_numpy

    return in_numpy.use(place)


def use_in_cupy(place: Place) -> Use:
    """CuPy allocates from a place, in all threads, from now on until the end of a with block or `close`.

    CuPy calls C functions, not Python. It passes them no stream: its work must be in the order of the place. That of
    Cuda, and of a Pool over it, is the legacy default stream, as CuPy's. On another stream, synchronise it before
    arrays end that it has used. For a CudaAsync work on its stream: `cupy.cuda.ExternalStream(place.info.stream)`.

    Arrays that CuPy has made meanwhile can live on; they keep the memory of the place alive.

    Parameters
    ----------
    place : Place
        Memory that a GPU can use.

    Raises
    ------
    umem.NotSupportedError
        No GPU can use the memory.
    umem.NotImplementedError
        CuPy is not installed.
    """
    from . import in_cupy

    return in_cupy.use(place)


def use_in_torch(place: Place, *, permanent: bool = False) -> Use:
    """PyTorch allocates from a place, from now on until the end of a with block or `close`.

    PyTorch's own allocator stays between: in the calling thread it takes large blocks from the place (a
    `torch.cuda.MemPool`), and divides them. When the use ends, it gives back blocks that no tensor needs; blocks of
    tensors that live on go back by `torch.cuda.empty_cache()`. `backward` runs in threads of its own, which take
    PyTorch's own memory.

    Parameters
    ----------
    place : Place
        Memory that a GPU can use.
    permanent : bool
        The place becomes PyTorch's allocator itself: in all threads, for each tensor, and until the process ends.
        Call it before PyTorch uses the GPU. Use a Pool itself, not an adaptor over it: only then nothing waits.
        PyTorch's own statistics of memory then do not work; those of a Stats below the pool do.

    Raises
    ------
    umem.NotSupportedError
        No GPU can use the memory, or tensors are left of 16 places.
    umem.NotImplementedError
        PyTorch is not installed, or too old.
    """
    from . import in_torch

    return in_torch.use(place, permanent)


def use_in_numba(place: Place) -> Use:
    """Numba allocates device arrays from a place, from now on until the end of a with block or `close`.

    umem is an External Memory Management plugin of Numba. It serves GPUs that Numba uses already, and those that it
    uses later. The order of work is as of `use_in_cupy`.

    Parameters
    ----------
    place : Place
        Memory that a GPU can use.

    Raises
    ------
    umem.NotSupportedError
        No GPU can use the memory.
    umem.NotImplementedError
        Numba is not installed.
    """
    from . import in_numba

    return in_numba.use(place)


def cuda_core_resource(place: Place) -> Any:
    """A `cuda.core.MemoryResource` that allocates from a place, in the order of the streams that the calls name.

    Pass it to `cuda.core.Device.memory_resource`, or call its `allocate`. It and its buffers keep the place alive. Its
    `place` is the place, its `failure` the message of the last failure.

    Parameters
    ----------
    place : Place
        Memory that a GPU can use.

    Raises
    ------
    umem.NotSupportedError
        No GPU can use the memory.
    umem.NotImplementedError
        cuda.core is not installed.
    """
    from . import in_cuda_core

    return in_cuda_core.resource(place)


def place_of(resource: Any, upstream: Place | str | None = None) -> External:
    """Arrays in the memory of an allocator of another library: limits, statistics, logs, pools and copies over it.

    Parameters
    ----------
    resource : object
        A DeviceMemoryResource of RMM; a MemoryResource of cuda.core; a pool or an allocator function of CuPy
        (`cupy.cuda.MemoryPool()`, `cupy.get_default_memory_pool()`); a `torch.cuda.MemPool`, or `torch.cuda` for
        PyTorch's own allocator.
    upstream : Place or str, optional
        The place that copies the bytes. A CudaAsync: allocations and frees are in the order of its stream. Default: Cuda,
        CudaManaged or CudaHost, as the resource has memory, on its GPU or the current one.

    Returns
    -------
    External
        It keeps the resource until its last array has ended. Allocations take the GIL.

    Raises
    ------
    umem.TypeError
        It is no allocator of these libraries: make an `External` of its functions.
    umem.ValueError
        The memory is not known: name upstream.
    """
    from . import memory_of

    return memory_of.make(resource, upstream)
