"""Arrays in shared memory, which other processes use without a copy: what pickle stores of them."""
from __future__ import annotations

import os
import sys

from . import _core
from ._options import fail
from .errors import NotSupportedError

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

    from .array import Array
    from .places import Place

_FILE, _CUDA, _CUDA_POOL = 3, 4, 5  # umemHandleKind
_REFUSED = _FILE, _CUDA  # a file, and memory of which the program has not said that it shares it


def _bounds(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of the array, and behind the last one."""
    low = high = array.address
    for extent, stride in zip(array.shape, array.strides):
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize


class _Open:
    """A descriptor that is closed with the object."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


def _passed(opened: _Open) -> Any:
    """What multiprocessing stores of a descriptor.

    For the arguments of a process that is about to start, the descriptor stays open as long as the object of the
    process; otherwise multiprocessing makes one of its own.
    """
    from multiprocessing.context import get_spawning_popen
    from multiprocessing.reduction import DupFd

    starting = get_spawning_popen()
    if starting is not None:
        vars(starting).setdefault("_umem_descriptors", []).append(opened)
    return DupFd(opened.fd)


def pickled(array: Array) -> tuple[Any, tuple[Any, ...]] | None:
    """What pickle stores of an array in shared memory: a handle. None for memory that is none.

    Memory without a name needs its descriptor, which multiprocessing passes.
    """
    if not array.size:
        return None
    low, high = _bounds(array)
    try:
        handle, fd = _core._share(array, low, high - low)
    except NotSupportedError:
        return None
    opened = _Open(fd)
    kind = int.from_bytes(handle[4:8], sys.byteorder)
    if kind in _REFUSED:
        return None
    descriptor = _passed(opened) if fd >= 0 else None
    form = array.shape, array.strides, str(array.dtype), array.read_only
    if kind == _CUDA_POOL:
        return attach_on_gpu, (array.place.info.ordinal, handle, descriptor, array.address - low, *form)
    return attach, (handle, descriptor, array.address - low, *form)


def _received(descriptor: Any) -> int:
    """The descriptor that multiprocessing passes. The programs that this process starts do not get it."""
    if descriptor is None:
        return -1
    try:
        fd: int = descriptor.detach()
    except (FileNotFoundError, ConnectionError, EOFError) as error:  # nobody answers
        fail("cannot get the memory of an array: the process that has sent the array has ended, or the array was taken "
             f"before ({type(error).__name__}: {error}). Memory with a name, umem.Shm(name), outlives its sender", 3)
    os.set_inheritable(fd, False)
    return fd


def attach(handle: bytes, descriptor: Any, first: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str,
           read_only: bool) -> Array:
    """The array of a handle, over the same memory, on the Host of this process."""
    attached = _core._attach(handle, _received(descriptor))
    return _core._borrow(_core._host(), attached.address + first, dtype, shape, strides, attached, read_only)


def _on_any_gpu(handle: bytes, fd: int, first: int) -> tuple[Place, Any]:
    """Attaches memory of a GPU; first: the number that the GPU has in the process that shares the memory."""
    from .exchange import cuda_place

    refusal = None
    for number in (first, *(n for n in range(64) if n != first)):
        try:
            place = cuda_place(number)
        except ValueError:  # there are no more
            if number == first:
                continue
            break
        try:
            return place, _core._attach(handle, os.dup(fd) if fd >= 0 else -1, place)
        except NotSupportedError as error:  # another GPU may reach it
            refusal = refusal or error
    raise refusal or NotSupportedError("no GPU of this process reaches the memory")


def attach_on_gpu(device: int, handle: bytes, descriptor: Any, first: int, shape: tuple[int, ...],
                  strides: tuple[int, ...], dtype: str, read_only: bool) -> Array:
    """The array of a handle, over the same memory, on a Cuda of this process."""
    opened = _Open(_received(descriptor))
    place, attached = _on_any_gpu(handle, opened.fd, device)
    return _core._borrow(place, attached.address + first, dtype, shape, strides, attached, read_only)
