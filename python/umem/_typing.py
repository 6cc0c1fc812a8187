"""What type checkers know of elements: no program imports this module."""
from collections.abc import Sequence
from typing import Any, Literal, Protocol, overload

import numpy
from typing_extensions import TypeVar

from ._array import Array
from .dtypes import DType
from .places import Place

# The type of the elements of an array, as a scalar of NumPy. Any: not known before the program runs.
Element = TypeVar("Element", bound=numpy.generic, default=Any)
Given = TypeVar("Given", bound=numpy.generic)
NumpyArray = numpy.ndarray[Any, numpy.dtype[Element]]

Shape = int | Sequence[int]
PlaceLike = Place | str | None
Typed = type[Given] | numpy.dtype[Given]

# The names of types of elements.
Bool = Literal["bool", "?"] | type[bool]
Int8 = Literal["int8", "i1", "b"]
UInt8 = Literal["uint8", "u1", "B"]
Int16 = Literal["int16", "i2", "h"]
UInt16 = Literal["uint16", "u2", "H"]
Int32 = Literal["int32", "i4", "i"]
UInt32 = Literal["uint32", "u4", "I"]
Int64 = Literal["int64", "i8", "q", "int"] | type[int]
UInt64 = Literal["uint64", "u8", "Q", "uint"]
Float16 = Literal["float16", "f2", "e", "half"]
Float32 = Literal["float32", "f4", "f", "single"]
Float64 = Literal["float64", "f8", "d", "double", "float"] | type[float]
Complex64 = Literal["complex64", "c8", "F"]
Complex128 = Literal["complex128", "c16", "D", "complex"] | type[complex]
Other = DType | str | type | numpy.dtype[Any] | Sequence[Any] | None


class Make(Protocol):
    """empty, zeros and ones."""

    @overload
    def __call__(self, shape: Shape, dtype: None = None, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.float64]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Bool, place: PlaceLike = None, *,  # type: ignore[overload-overlap]
                 ghosts: Shape | None = None) -> Array[numpy.bool_]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Int8, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.int8]: ...
    @overload
    def __call__(self, shape: Shape, dtype: UInt8, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.uint8]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Int16, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.int16]: ...
    @overload
    def __call__(self, shape: Shape, dtype: UInt16, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.uint16]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Int32, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.int32]: ...
    @overload
    def __call__(self, shape: Shape, dtype: UInt32, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.uint32]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Int64, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.int64]: ...
    @overload
    def __call__(self, shape: Shape, dtype: UInt64, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.uint64]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Float16, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.float16]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Float32, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.float32]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Float64, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.float64]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Complex64, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.complex64]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Complex128, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[numpy.complex128]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Typed[Given], place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array[Given]: ...
    @overload
    def __call__(self, shape: Shape, dtype: Other = None, place: PlaceLike = None, *,
                 ghosts: Shape | None = None) -> Array: ...


class Convert(Protocol):
    """Array.astype."""

    @overload
    def __call__(self, dtype: Bool, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,  # type: ignore[overload-overlap]
                 order: str = "K", copy: bool = True) -> Array[numpy.bool_]: ...
    @overload
    def __call__(self, dtype: Int8, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.int8]: ...
    @overload
    def __call__(self, dtype: UInt8, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.uint8]: ...
    @overload
    def __call__(self, dtype: Int16, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.int16]: ...
    @overload
    def __call__(self, dtype: UInt16, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.uint16]: ...
    @overload
    def __call__(self, dtype: Int32, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.int32]: ...
    @overload
    def __call__(self, dtype: UInt32, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.uint32]: ...
    @overload
    def __call__(self, dtype: Int64, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.int64]: ...
    @overload
    def __call__(self, dtype: UInt64, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.uint64]: ...
    @overload
    def __call__(self, dtype: Float16, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.float16]: ...
    @overload
    def __call__(self, dtype: Float32, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.float32]: ...
    @overload
    def __call__(self, dtype: Float64, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.float64]: ...
    @overload
    def __call__(self, dtype: Complex64, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array[numpy.complex64]: ...
    @overload
    def __call__(self, dtype: Complex128, place: PlaceLike = None, *, casting: str = "unsafe",
                 saturate: bool = False, order: str = "K", copy: bool = True) -> Array[numpy.complex128]: ...
    @overload
    def __call__(self, dtype: Typed[Given], place: PlaceLike = None, *, casting: str = "unsafe",
                 saturate: bool = False, order: str = "K", copy: bool = True) -> Array[Given]: ...
    @overload
    def __call__(self, dtype: Other, place: PlaceLike = None, *, casting: str = "unsafe", saturate: bool = False,
                 order: str = "K", copy: bool = True) -> Array: ...


class AsArray(Protocol):
    """asarray."""

    @overload
    def __call__(self, value: Array[Given] | numpy.ndarray[Any, numpy.dtype[Given]], dtype: None = None,
                 place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[Given]: ...
    @overload
    def __call__(self, value: Any, dtype: None = None, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array: ...
    @overload
    def __call__(self, value: Any, dtype: Bool, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.bool_]: ...
    @overload
    def __call__(self, value: Any, dtype: Int8, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.int8]: ...
    @overload
    def __call__(self, value: Any, dtype: UInt8, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.uint8]: ...
    @overload
    def __call__(self, value: Any, dtype: Int16, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.int16]: ...
    @overload
    def __call__(self, value: Any, dtype: UInt16, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.uint16]: ...
    @overload
    def __call__(self, value: Any, dtype: Int32, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.int32]: ...
    @overload
    def __call__(self, value: Any, dtype: UInt32, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.uint32]: ...
    @overload
    def __call__(self, value: Any, dtype: Int64, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.int64]: ...
    @overload
    def __call__(self, value: Any, dtype: UInt64, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.uint64]: ...
    @overload
    def __call__(self, value: Any, dtype: Float16, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.float16]: ...
    @overload
    def __call__(self, value: Any, dtype: Float32, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.float32]: ...
    @overload
    def __call__(self, value: Any, dtype: Float64, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.float64]: ...
    @overload
    def __call__(self, value: Any, dtype: Complex64, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.complex64]: ...
    @overload
    def __call__(self, value: Any, dtype: Complex128, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[numpy.complex128]: ...
    @overload
    def __call__(self, value: Any, dtype: Typed[Given], place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array[Given]: ...
    @overload
    def __call__(self, value: Any, dtype: Other = None, place: PlaceLike = None, *,
                 copy: bool | None = None) -> Array: ...
