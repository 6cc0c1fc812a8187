"""Numba allocates from a place: an External Memory Management plugin."""
from __future__ import annotations

from .. import _core
from .use import Use, changing, load, need_gpu, out_of_order

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..places import Place


def _manager(cuda: Any, place: Place, handle: _core._Allocator) -> Any:
    """A class of memory managers, one for each GPU of Numba."""
    from ctypes import c_void_p

    def finalizer(address: int) -> Callable[[], None]:
        return lambda: handle.free(address, None)

    class Manager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc]
        """Memory of GPUs from umem; pinned memory as of Numba."""

        def initialize(self) -> None:
            pass

        def memalloc(self, size: int) -> Any:
            address = handle.allocate(size, self.context.device.id, None)
            return cuda.MemoryPointer(self.context, c_void_p(address), size, finalizer=finalizer(address))

        def get_memory_info(self) -> Any:
            info = place.info
            if info.available is None or info.capacity is None:
                raise NotImplementedError(f"{place!r} does not know how much memory is free")
            return cuda.MemoryInfo(free=info.available, total=info.capacity)

        @property
        def interface_version(self) -> int:
            return 1

    return Manager


def _contexts(driver: Any) -> list[Any]:
    """The contexts of the GPUs that Numba uses."""
    found = [getattr(device, "primary_context", None) for device in driver.driver.devices.values()]
    return [context for context in found if context is not None]


def _start(cuda: Any, context: Any, manager: Any) -> Any:
    """A manager for a context that Numba has made during the use."""
    started = manager(context=context)
    with cuda.gpus[context.device.id]:
        started.initialize()
    return started


def use(place: Place) -> Use:
    """See umem.use_in_numba."""
    cuda = load("numba.cuda", "Numba", "numba-cuda")
    need_gpu(place, "Numba")
    driver = load("numba.cuda.cudadrv.driver", "Numba", "numba-cuda")
    handle = _core._Allocator(place, False)
    handle.raises = True
    manager = _manager(cuda, place, handle)
    with changing:
        driver._ensure_memory_manager()
        old = driver._memory_manager
        cuda.set_memory_manager(manager)
        replaced = [(context, context.memory_manager) for context in _contexts(driver)]
        for context, _ in replaced:
            context.memory_manager = manager(context=context)

    def undo() -> None:
        if driver._memory_manager is not manager:
            out_of_order("Numba")
        driver._memory_manager = old
        before = {id(context): manager for context, manager in replaced}
        for context in _contexts(driver):
            if isinstance(context.memory_manager, manager):
                found = before.get(id(context))
                context.memory_manager = _start(cuda, context, old) if found is None else found

    return Use("numba", place, handle, undo)
