"""Types of elements. They are compared with names, with types of Python and with those of NumPy, without NumPy."""
from __future__ import annotations

import builtins
import sys

from . import _core
from ._options import fail

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}
_KINDS = {code: kind for code, kind in zip((0, 1, 2, 5, 6), "iufcb")}
_SIZES = {"i": "int", "u": "uint", "f": "float", "c": "complex"}  # f8: float64
_OTHERS = {  # NumPy's names for the types of C
    "?": "bool", "b1": "bool", "bool_": "bool", "b": "int8", "B": "uint8", "h": "int16", "H": "uint16", "i": "int32",
    "I": "uint32", "q": "int64", "Q": "uint64", "l": "int64", "L": "uint64", "e": "float16", "f": "float32",
    "d": "float64", "F": "complex64", "D": "complex128", "int": "int64", "uint": "uint64", "float": "float64",
    "complex": "complex128", "half": "float16", "single": "float32", "double": "float64", "csingle": "complex64",
    "cdouble": "complex128", "byte": "int8", "ubyte": "uint8", "short": "int16", "ushort": "uint16", "intc": "int32",
    "uintc": "uint32", "longlong": "int64", "ulonglong": "uint64", "intp": "int64", "uintp": "uint64",
}
_PYTHON = {builtins.bool: "bool", builtins.int: "int64", builtins.float: "float64", builtins.complex: "complex128"}


class DType:
    """The type of the elements of an array.

    It equals everything that names the same type: `a.dtype == "float64"`, `a.dtype == float`,
    `a.dtype == numpy.float64`.

    Attributes
    ----------
    name : str
        NumPy's, or "bfloat16", "float8_e4m3fn", ...; "x4" at the end stands for four lanes.
    itemsize : int
        Bytes of an element.
    """

    __slots__ = ("_type", "itemsize", "name")

    def __init__(self, number: int) -> None:
        self._type = number
        self.name: str = _core._element_name(number)
        self.itemsize: int = _core._element_size(number)

    @property
    def kind(self) -> str:
        """NumPy's letter: "b", "i", "u", "f", "c"; "V" for types that NumPy lacks."""
        return _KINDS.get(self._type & 255, "V") if self._type >> 16 == 1 else "V"

    @property
    def str(self) -> str:
        """NumPy's name with the order of the bytes, such as "<f8"."""
        order = "|" if self.itemsize == 1 else "<" if sys.byteorder == "little" else ">"
        return f"{order}{self.kind}{self.itemsize}"

    @property
    def dtype(self) -> Any:
        """The dtype of NumPy, which this imports."""
        import numpy

        return numpy.dtype(self.name)

    def __eq__(self, other: object) -> builtins.bool:
        if isinstance(other, DType):
            return self._type == other._type
        try:
            return self._type == _number(other)
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> builtins.int:
        return hash(self.name)

    def __repr__(self) -> builtins.str:
        return f"umem.{self.name}"

    def __str__(self) -> builtins.str:
        return self.name

    def __reduce__(self) -> Any:
        return dtype, (self.name,)


_numbers: dict[Any, int] = {}  # what names a type: its number
_dtypes: dict[int, DType] = {}


def _by_name(name: str, given: object) -> int:
    text = name[1:] if name[:1] in ("=", "|", "<" if sys.byteorder == "little" else ">") else name
    if text[:1] in _SIZES and text[1:].isdecimal():
        text = f"{_SIZES[text[0]]}{8 * int(text[1:])}"
    number = _core._element_by_name(_OTHERS.get(text, text))
    if not number:
        fail(f"{given!r} is no type of elements that umem knows", 5)
    return number


def _number(given: Any) -> int:
    """The number of the type that an object names. Raises umem.TypeError."""
    if isinstance(given, DType):
        return given._type
    if isinstance(given, str):
        return _by_name(given, given)
    if isinstance(given, type):  # float, numpy.float32, ml_dtypes.bfloat16
        return _by_name(_PYTHON.get(given, given.__name__), given)
    if str(given).startswith("torch."):
        return _by_name(str(given)[6:], given)
    if getattr(given, "fields", None) is None and getattr(given, "isnative", False):
        return _by_name(given.name, given)  # numpy.dtype
    return fail(f"{given!r} is no type of elements that umem knows", 5)


def _find(given: Any) -> int:
    """As _number; the next time the binding finds it by itself."""
    number = _numbers[given] = _number(given)
    return number


def _make(number: int) -> DType:
    return _dtypes.setdefault(number, DType(number))


def dtype(given: Any) -> DType:
    """The umem.DType of a name, a type of Python, or a dtype of NumPy or PyTorch.

    Names are NumPy's ("float64", "<f8", "float", which is float64 here), and "bfloat16", "float8_e4m3fn", ...

    Raises
    ------
    umem.TypeError
        It names no type of elements, or one in another order of bytes.
    """
    return _make(_number(given))
