"""NumPy allocates from a place: NEP 49."""
from __future__ import annotations

from .. import _core
from .._options import fail
from .use import Use, load, need_cpu

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from ..places import Place


def _api() -> object:
    """The table of NumPy's C API."""
    numpy = load("numpy", "NumPy", "numpy")
    is_first = int(numpy.__version__.split(".")[0]) < 2
    multiarray = load("numpy.core.multiarray" if is_first else "numpy._core.multiarray", "NumPy", "numpy")
    api: object = multiarray._ARRAY_API
    return api


def use(place: Place) -> Use:
    """See umem.use_in_numpy."""
    api = _api()
    need_cpu(place, "NumPy")
    allocator = _core._Allocator(place, True)
    handler = allocator.numpy_handler(place.stack)
    old = _core._set_numpy_handler(api, handler)

    def undo() -> None:
        if _core._numpy_handler(api) is not handler:
            fail("NumPy does not allocate from this place here: end uses in reverse order, each in the thread and the"
                 " context of contextvars in which it has begun")
        _core._set_numpy_handler(api, old)

    return Use("numpy", place, allocator, undo)
