"""A MemoryResource of cuda.core over a place."""
from __future__ import annotations

from .. import _core
from ..places import CPU_READABLE, DEVICE_ACCESSIBLE, CudaManaged
from .use import load, need_gpu

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

    from ..places import Place

_classes: dict[Any, Any] = {}  # by the base


def _number(stream: Any) -> int | None:
    """The cudaStream_t of a stream of cuda.core, or of another object with __cuda_stream__."""
    return None if stream is None else int(stream.__cuda_stream__()[1])


def _class(core: Any) -> Any:
    class PlaceResource(core.MemoryResource):  # type: ignore[misc]
        """Buffers in memory of a place of umem."""

        def __init__(self, place: Place) -> None:
            self.place = place
            self._handle = _core._Allocator(place, False)
            self._handle.raises = True
            ordinal = place.info.ordinal
            self._device_id = -1 if ordinal is None else ordinal

        def allocate(self, size: int, *, stream: Any = None) -> Any:
            number = _number(stream)
            address = self._handle.allocate(size, -1, number)
            try:
                return core.Buffer.from_handle(address, size, mr=self, stream=stream)
            except BaseException:
                self._handle.free(address, number)
                raise

        def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
            self._handle.free(int(ptr), _number(stream))

        @property
        def is_device_accessible(self) -> bool:
            return bool(self.place.capabilities & DEVICE_ACCESSIBLE)

        @property
        def is_host_accessible(self) -> bool:
            return bool(self.place.capabilities & CPU_READABLE)

        @property
        def is_managed(self) -> bool:
            lowest = self.place
            while lowest.upstream is not None:
                lowest = lowest.upstream
            return lowest.kind == CudaManaged._kind

        @property
        def device_id(self) -> int:
            return self._device_id

        @property
        def blocks(self) -> int:
            """Buffers that are alive."""
            return self._handle.blocks

        @property
        def failure(self) -> str | None:
            """umem's message of the last failure; None if there was none."""
            return self._handle.message or None

        def __repr__(self) -> str:
            return f"<umem resource for cuda.core: {self.place!r}>"

    return PlaceResource


def resource(place: Place) -> Any:
    """See umem.cuda_core_resource."""
    core = load("cuda.core", "cuda.core", "cuda-core")
    need_gpu(place, "cuda.core")
    base = core.MemoryResource
    if base not in _classes:
        _classes[base] = _class(core)
    return _classes[base](place)
