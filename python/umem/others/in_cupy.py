"""CuPy allocates from a place: CFunctionAllocator."""
from __future__ import annotations

import builtins

from .. import _core
from ..errors import MemoryError
from .use import Use, changing, load, need_gpu, out_of_order

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..places import Place


def _raises(kind: Any, handle: _core._Allocator) -> bool:
    """Whether CuPy passes on exceptions of C functions. Versions before 14 do not."""
    param, _, free, probe = handle.cupy_functions()
    try:
        kind(param, probe, free, handle).malloc(1)
    except SystemError:  # a result, and an exception that nobody looked for
        return False
    except builtins.MemoryError:
        return True
    return False


def _checked(malloc: Callable[[int], Any], handle: _core._Allocator) -> Callable[[int], Any]:
    """For a CuPy that takes NULL for an address."""
    def allocate(nbytes: int) -> Any:
        pointer = malloc(nbytes)
        if nbytes and not pointer.ptr:
            raise MemoryError(handle.message)
        return pointer

    return allocate


def use(place: Place) -> Use:
    """See umem.use_in_cupy."""
    cuda = load("cupy", "CuPy", "cupy-cuda13x").cuda
    need_gpu(place, "CuPy")
    handle = _core._Allocator(place, False)
    kind = cuda.memory.CFunctionAllocator
    param, malloc, free, _ = handle.cupy_functions()
    allocate = kind(param, malloc, free, handle).malloc
    handle.raises = _raises(kind, handle)
    if not handle.raises:
        allocate = _checked(allocate, handle)
    with changing:
        old = cuda.get_allocator()
        cuda.set_allocator(allocate)

    def undo() -> None:
        if cuda.get_allocator() != allocate:
            out_of_order("CuPy")
        cuda.set_allocator(old)

    return Use("cupy", place, handle, undo)
