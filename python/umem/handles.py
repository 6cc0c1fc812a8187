"""Arrays in shared memory, which other processes use without a copy: what pickle stores of them."""
from __future__ import annotations

import os
import stat
import sys
from _thread import allocate_lock as _allocate_lock

from . import _core
from ._options import fail
from .errors import NotSupportedError
from .places import DEVICE_ACCESSIBLE

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

    from ._array import Array
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


class _Passing:
    """The descriptor of memory without a name, for all pickles of its arrays that nobody has loaded yet: they share one.

    multiprocessing answers each of its identifiers once. This one is answered again as long as there are pickles.
    """

    def __init__(self, fd: int) -> None:
        from multiprocessing.resource_sharer import _resource_sharer  # type: ignore[attr-defined]

        self.fd, self.pid, self.pickles = os.dup(fd), os.getpid(), 1
        self._server = _resource_sharer
        self.identifier = _resource_sharer.register(self._send, self._end)

    def _send(self, connection: Any, pid: int) -> None:
        from multiprocessing.reduction import send_handle

        send_handle(connection, self.fd, pid)
        with _lock:
            self.pickles -= 1

    def _end(self) -> None:
        with _lock:
            if self.pickles > 0 and self.pid == os.getpid():
                self._server._cache[self.identifier[1]] = self._send, self._end
                return
            for memory in [key for key, passing in _passing.items() if passing is self]:
                del _passing[memory]
        os.close(self.fd)


_passing: dict[Any, _Passing] = {}
_lock = _allocate_lock()


class _Sent:
    """A descriptor that another process sends when it is asked for."""

    def __init__(self, identifier: Any) -> None:
        self._identifier = identifier

    def detach(self) -> int:
        from multiprocessing.reduction import recv_handle
        from multiprocessing.resource_sharer import _resource_sharer  # type: ignore[attr-defined]

        with _resource_sharer.get_connection(self._identifier) as connection:
            return int(recv_handle(connection))


def _passed(opened: _Open, handle: bytes) -> Any:
    """What is stored of a descriptor.

    For the arguments of a process that is about to start, the descriptor stays open as long as the object of the
    process.
    """
    from multiprocessing.context import get_spawning_popen
    from multiprocessing.reduction import DupFd

    starting = get_spawning_popen()
    if starting is not None:
        vars(starting).setdefault("_umem_descriptors", []).append(opened)
        return DupFd(opened.fd)
    about = os.fstat(opened.fd)
    memory = os.getpid(), (about.st_dev, about.st_ino) if stat.S_ISREG(about.st_mode) else handle
    with _lock:
        passing = _passing.get(memory)
        if passing is None:
            passing = _passing[memory] = _Passing(opened.fd)
        else:
            passing.pickles += 1
        return _Sent(passing.identifier)


def advice(array: Array) -> str:
    """What to do with an array that cannot be pickled."""
    if not array.size:
        what = "an array without elements has no memory to share"
    elif array.place.capabilities & DEVICE_ACCESSIBLE:
        what = "memory of a GPU is shared by the arrays of umem.CudaAsync(share=True)"
    elif array.place.info.name:
        what = "the other process can open the file, or load it from a path"
    else:
        what = "memory is shared by the arrays of umem.Shm"
    return f"cannot pickle an array on {array.place!r}: {what}. To pickle the elements, pickle copy(umem.host())"


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
    descriptor = _passed(opened, handle) if fd >= 0 else None
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
