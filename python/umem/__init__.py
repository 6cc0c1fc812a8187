"""One set of calls for arrays in RAM, files and GPUs.

    import umem

    with umem.File("squares.bin", "w+") as place:     # or Host(), MMap(path), Cuda(0), Pool(Cuda(0), max="8G"), ...
        array = umem.zeros((1000, 3), "float32", place)
        with array.host() as x:                       # a NumPy array; a copy is brought back
            x[:, 0] = 1
        array[1:, ::2] = 2                            # indices and slices are views
        there = array.to(umem.host())                 # on another place

Places: Host, File, MMap, Shm, Url, S3, Cuda, CudaAsync, CudaHost, CudaManaged; over them Pool, PoolOn, Fixed, Binning, Retry, Limit,
External, Stats, Track, Debug, Log, Fault, Guarded, CudaPrefetch; `open` makes those that a text names. New arrays: empty, zeros, full,
arange, array, asarray, from_dlpack, from_zarr, load. Comparisons: all_equal, all_close. Files: save, load, to_zarr. Transfers: copy, copy_many, start, start_many, blocks, ledger. Logs: trace. Every
exception is a umem.Error.

Closing a place releases its arrays. Memory that NumPy or another library uses then stays valid as long as they use it.
"""
from . import _interpreter, _words, _core as _core, ledger, trace
from .adaptors import Debug, Fault, Guarded, Limit, Log, Stats, Track
from ._array import Array, Ghosts
from .arrow import from_arrow
from .compare import all_close, all_equal
from .dtypes import DType, dtype
from .errors import (
    AssertionError as AssertionError, CancelledError as CancelledError, Error as Error,
    FileExistsError as FileExistsError, FileNotFoundError as FileNotFoundError, IndexError as IndexError,
    IsADirectoryError as IsADirectoryError, MemoryError as MemoryError, NotImplementedError as NotImplementedError, NotSupportedError as NotSupportedError,
    OSError as OSError, PermissionError as PermissionError, RuntimeError as RuntimeError, TypeError as TypeError,
    ValueError as ValueError,
)
from .finding import Foreign, Found, describe_places, find, find_foreign, list_when_out_of_memory
from .files import at, create_npy, memmap, open_npy
from .make import (
    arange, array, asarray, concatenate, empty, empty_like, from_dlpack, full, full_like, ones, ones_like, stack, zeros, zeros_like,
)
from .npy import load, save
from .others import cuda_core_resource, place_of, use_in_cupy, use_in_numba, use_in_numpy, use_in_torch
from .others.use import Use
from .places import (
    Binning, Cuda, CudaAsync, CudaHost, CudaManaged, CudaPrefetch, External, File, Fixed, Host, Info, MMap, Place, Pool,
    PoolOn, Retry, Shm, default, open as open, set_default, using,
)
from .transfer import Block, Blocks, Transfer, blocks, copy, copy_many, get_threads, log_decisions, set_failure_hook, set_threads, start, start_many
from .url import S3, Url
from .zarr import from_zarr, to_zarr

# Without open and the exceptions, which would take the place of Python's after `from umem import *`.
__all__ = [
    "Array", "Binning", "Block", "Blocks", "Cuda", "CudaAsync", "CudaHost", "CudaManaged", "CudaPrefetch", "DType",
    "Debug", "External", "Fault", "File", "Fixed", "Foreign", "Found", "Ghosts", "Guarded", "Host", "Info", "Limit", "Log", "MMap",
    "Place", "Pool", "PoolOn", "Retry", "S3", "Shm", "Stats", "Track", "Transfer", "Url", "Use", "all_close", "all_equal", "arange",
    "array", "asarray", "at", "blocks", "concatenate", "copy", "copy_many", "create_npy", "cuda_core_resource", "default",
    "describe_places", "dtype", "empty", "empty_like", "find", "find_foreign", "from_arrow", "from_dlpack", "from_zarr", "full", "full_like",
    "get_threads", "host", "ledger", "list_when_out_of_memory", "load", "log_decisions", "memmap", "ones", "ones_like", "open_npy", "place_of",
    "save", "set_default", "set_failure_hook", "set_threads", "stack", "start", "start_many", "to_zarr", "trace", "use_in_cupy",
    "use_in_numba", "use_in_numpy", "use_in_torch", "using", "zeros", "zeros_like",
]

_core._set_places({cls._kind: cls for cls in (
    Place, Host, File, MMap, S3, Shm, Cuda, CudaAsync, CudaHost, CudaManaged, CudaPrefetch, Pool, PoolOn, Fixed, Binning,
    Retry, External, Limit, Stats, Track, Debug, Log, Fault, Guarded)} | {"http": Url, "https": Url})
__version__: str = _core._version()


def host() -> Host:
    """The place of RAM where arrays are that name no place, if no other default is set. It lives as long as the process."""
    return _core._host()
