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
    "float4_e2m1fn_x2": "float4_e2m1fnx2",  # of PyTorch
}
_ONLY_NUMPY = "float128", "complex256"  # long double, which is 80 bits on some machines
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

    __slots__ = ("_named", "_type", "itemsize", "name")

    def __init__(self, number: int, stored: Any = None) -> None:
        self._type = number
        self._named = stored  # the dtype of NumPy of a type that umem only stores
        plain = stored is not None and stored.isnative and not stored.fields
        self.name: str = _core._element_name(number) if stored is None else stored.name if plain else builtins.str(stored)
        self.itemsize: int = _core._element_size(number)

    @property
    def kind(self) -> str:
        """NumPy's letter: "b", "i", "u", "f", "c", "m", "M", "S", "U"; "V" for records and types that NumPy lacks."""
        if self._named is not None:
            return str(self._named.kind)
        return _KINDS.get(self._type & 255, "V") if self._type >> 16 == 1 else "V"

    @property
    def str(self) -> str:
        """NumPy's name with the order of the bytes, such as "<f8"."""
        if self._named is not None:
            return str(self._named.str)
        order = "|" if self.itemsize == 1 else "<" if sys.byteorder == "little" else ">"
        return f"{order}{self.kind}{self.itemsize}"

    @property
    def byteorder(self) -> builtins.str:
        """NumPy's letter for the order of the bytes: "=", or "|" for one byte."""
        if self._named is not None:
            return str(self._named.byteorder)
        return "|" if self.itemsize == 1 else "="

    @property
    def dtype(self) -> Any:
        """The dtype of NumPy, which this imports; of types that NumPy lacks that of the package ml_dtypes.

        Raises umem.TypeError for a type that neither has.
        """
        if self._named is not None:
            return self._named
        import numpy

        if self._has_format:
            return numpy.dtype(self.name)
        try:
            from importlib import import_module

            return numpy.dtype(getattr(import_module("ml_dtypes"), self.name))
        except (ImportError, AttributeError):
            return fail(f"NumPy has no elements of {self.name}, nor has the package ml_dtypes, if it is installed", 5)

    def __getattr__(self, name: builtins.str) -> Any:
        """The other attributes of NumPy's dtype, such as names, char and type."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return getattr(self.dtype, name)
        except TypeError:  # NumPy has no such type
            raise AttributeError(f"{self!r} has no {name}") from None

    @property
    def _alignment(self) -> builtins.int:
        if self._named is not None:
            return int(self._named.alignment)
        return self.itemsize // 2 if self.kind == "c" else self.itemsize

    @property
    def _has_format(self) -> builtins.bool:
        """Whether the buffer protocol and the array interface have such elements."""
        return self._named is None and self.kind != "V"

    def __eq__(self, other: object) -> builtins.bool:
        if isinstance(other, DType):
            return self._type == other._type and bool(self._named == other._named)
        try:
            return self == dtype(other)
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> builtins.int:
        return hash(self.name)

    def __repr__(self) -> builtins.str:
        return f"umem.{self.name}"

    def __str__(self) -> builtins.str:
        return self.name

    def __reduce__(self) -> Any:
        return dtype, (self._named or self.name,)


_numbers: dict[Any, int | DType] = {}  # what names a type: its number, or the type if umem only stores it
_dtypes: dict[int, DType] = {}


def _by_name(name: str) -> int:
    """The number of a type that umem computes with, or of bfloat16 and its like; 0 for other names."""
    text = name[1:] if name[:1] in ("=", "|", "<" if sys.byteorder == "little" else ">") else name
    if text[:1] in _SIZES and text[1:].isdecimal():
        text = f"{_SIZES[text[0]]}{8 * int(text[1:])}"
    text = _OTHERS.get(text, text)
    return 0 if text in _ONLY_NUMPY else _core._element_by_name(text)


def _of_numpy(given: Any) -> DType:
    """A type that umem only stores, as NumPy describes it. Raises umem.TypeError."""
    import numpy

    try:
        named = numpy.dtype(given)
    except (TypeError, ValueError, KeyError, SyntaxError):
        return fail(f"{given!r} is no type of elements that umem or NumPy knows", 5)
    if named.hasobject or named.kind == "T":
        fail(f"elements of {named} are references to objects of Python, which no place can hold", 5)
    if named.subdtype is not None or not 0 < named.itemsize < 1 << 16:
        fail(f"{named} is no type of elements: umem has such of 1 to 65535 bytes, and shapes belong to arrays", 5)
    number = 0 if named.fields else _by_name(named.name) if named.isnative else 0
    return _make(number) if number else DType(3 + (8 << 8) + (named.itemsize << 16), named)  # an opaque handle of C


def _find_type(given: Any) -> int | DType:
    """The number of the type that an object names, or the type if umem only stores it. Raises umem.TypeError."""
    name = given if isinstance(given, str) else ""
    if isinstance(given, DType):
        return given._type if given._named is None else given
    if isinstance(given, type):  # float, numpy.float32, ml_dtypes.bfloat16
        name = _PYTHON.get(given, given.__name__)
    elif str(given).startswith("torch."):
        name = str(given)[6:]
    elif getattr(given, "fields", None) is None and getattr(given, "isnative", False):
        name = given.name  # numpy.dtype
    number = _by_name(name) if name else 0
    if number:
        return number
    made = _of_numpy(given)
    return made._type if made._named is None else made


def _find(given: Any) -> int | DType:
    """As _find_type; the next time the binding finds it by itself."""
    found = _find_type(given)
    if getattr(given, "__hash__", None):
        _numbers[given] = found
    return found


def _make(number: int) -> DType:
    return _dtypes.get(number) or _dtypes.setdefault(number, DType(number))


def dtype(given: Any) -> DType:
    """The umem.DType of a name, a type of Python, or a dtype of NumPy or PyTorch.

    Names are NumPy's ("float64", "<f8", "float", which is float64 here), and "bfloat16", "float8_e4m3fn", ... Types of
    dates, texts, records, other orders of bytes and long double are stored, copied and given to NumPy, which
    computes with them.

    Raises
    ------
    umem.TypeError
        It names no type of elements, or one whose elements are objects of Python.
    """
    found = _find_type(given)
    return found if isinstance(found, DType) else _make(found)
