"""PyTorch allocates from a place: CUDAPluggableAllocator, under a MemPool or as the allocator of the process."""
from __future__ import annotations

from contextlib import ExitStack

from .. import _core
from .._options import fail
from .use import _NOT_IMPLEMENTED, _NOT_SUPPORTED, Use, changing, load, need_gpu

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

    from ..places import Place

# What uses, and tensors that are left of them, need, by the number of the pair of functions.
_uses: dict[int, list[Any]] = {}
_ended: set[int] = set()  # of them, those that end with their last tensor


def _collect() -> None:
    """Forgets uses that have ended and whose last block is freed."""
    with changing:
        for number in list(_ended):
            if _core._give_torch_slot(number):
                _ended.remove(number)
                del _uses[number]


def use(place: Place, permanent: bool) -> Use:
    """See umem.use_in_torch."""
    torch = load("torch", "PyTorch", "torch")
    need_gpu(place, "PyTorch")
    if not hasattr(torch.cuda.memory, "CUDAPluggableAllocator") or not (permanent or hasattr(torch.cuda, "MemPool")):
        fail(f"PyTorch {torch.__version__} is too old", _NOT_IMPLEMENTED)
    _collect()
    handle = _core._Allocator(place, False)
    number = handle.torch_slot(permanent)
    try:
        kind = torch.cuda.memory.CUDAPluggableAllocator
        allocator = kind(_core.__file__, f"umem_torch_alloc_{number}", f"umem_torch_free_{number}")
        return (_always if permanent else _in_pool)(torch, allocator, number, place, handle)
    except BaseException:
        _core._give_torch_slot(number)
        raise


def _always(torch: Any, allocator: Any, number: int, place: Place, handle: _core._Allocator) -> Use:
    allocator.allocator().set_record_stream_fn(_core._torch_recorder(number))
    torch.cuda.memory.change_current_allocator(allocator)

    def undo() -> None:
        fail("PyTorch cannot change its allocator back: a permanent use lasts until the process ends", _NOT_SUPPORTED)

    return _Permanent("torch", place, handle, undo)


class _Permanent(Use):
    """The with block of a permanent use does not end it."""

    def __exit__(self, *_: Any) -> None:
        pass


def _in_pool(torch: Any, allocator: Any, number: int, place: Place, handle: _core._Allocator) -> Use:
    ordinal = place.info.ordinal
    stack = ExitStack()
    with torch.cuda.device(torch.cuda.current_device() if ordinal is None else ordinal):
        pool = torch.cuda.MemPool(allocator.allocator())
        stack.enter_context(torch.cuda.use_mem_pool(pool))
    _uses[number] = [allocator, stack, pool]
    del pool

    def undo() -> None:
        stack.close()
        del _uses[number][1:]  # the pool gives back what no tensor needs
        _ended.add(number)
        _collect()

    return Use("torch", place, handle, undo)
