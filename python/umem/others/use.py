"""What the functions use_in_... return."""
from __future__ import annotations

import importlib
from _thread import RLock

from .. import _core
from .._options import fail
from ..places import CPU_READABLE, CPU_WRITABLE, DEVICE_ACCESSIBLE, Place

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

_TYPE, _NOT_IMPLEMENTED, _NOT_SUPPORTED = 5, 7, 8
changing = RLock()  # who begins or ends a use


class Use:
    """A library allocates from a place until the end of a with block, or until `close`.

    Attributes
    ----------
    place : Place
    library : str
        "numpy", "cupy", "torch" or "numba".
    """

    def __init__(self, library: str, place: Place, allocator: _core._Allocator, undo: Callable[[], None]) -> None:
        self.library = library
        self.place = place
        self._allocator = allocator
        self._undo: Callable[[], None] | None = undo

    @property
    def blocks(self) -> int:
        """How many blocks the library has of the place, also after the end of the use."""
        return self._allocator.blocks

    @property
    def failure(self) -> str | None:
        """umem's message of the last allocation or free that failed; None if there was none."""
        return self._allocator.message or None

    @property
    def closed(self) -> bool:
        """Whether the use has ended."""
        return self._undo is None

    def close(self) -> None:
        """The library allocates again as before. If that fails, the use goes on, and this raises."""
        with changing:
            if self._undo is not None:
                self._undo()
                self._undo = None

    def __enter__(self) -> Use:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<umem.Use: {self.library}, {self.place!r}{', closed' if self.closed else ''}>"


def load(module: str, library: str, package: str) -> Any:
    """Imports a module of another library."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        return fail(f"{library} is not installed: pip install {package}", _NOT_IMPLEMENTED)


def _capabilities(place: Place) -> int:
    if not isinstance(place, Place):
        fail(f"a umem.Place is expected, not {type(place).__name__}", _TYPE)
    return place.capabilities


def need_cpu(place: Place, library: str) -> None:
    """Raises unless the CPU can read and write memory of the place."""
    both = CPU_READABLE | CPU_WRITABLE
    if _capabilities(place) & both != both:
        fail(f"{library} needs memory that the CPU reads and writes, which {place!r} is not", _NOT_SUPPORTED)


def need_gpu(place: Place, library: str) -> None:
    """Raises unless a GPU can use memory of the place."""
    if not _capabilities(place) & DEVICE_ACCESSIBLE:
        fail(f"{library} needs memory that a GPU can use, which {place!r} is not", _NOT_SUPPORTED)


def out_of_order(library: str) -> None:
    """Raises the failure of a use that cannot end now."""
    fail(f"another use of {library} has begun after this one, and has not ended: end uses in reverse order")
