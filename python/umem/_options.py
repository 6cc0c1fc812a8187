"""Values of options as the library's table of kinds describes them."""
from __future__ import annotations

import os

from . import _core

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

# The numbers of umemOptionKind.
_TEXT, _NUMBER, _SIZE, _SHARE, _WORD, _WORDS, _DEVICE, _PATH, _URL = range(9)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_STATUS_VALUE, _STATUS_TYPE = 4, 5

Value = tuple[bytes | None, int, float]
Option = tuple[str, int, bool, str, str]


def fail(message: str, status: int = _STATUS_VALUE) -> NoReturn:
    """Raises umem.ValueError, or the exception of another status."""
    _core._raise(status, message)


def size(value: int | str, what: str = "size") -> int:
    """Bytes: a number, or digits with K, M, G or T of 1024 behind them."""
    if isinstance(value, str):
        digits, unit = (value[:-1], _UNITS[value[-1]]) if value[-1:] in _UNITS else (value, 1)
        if not digits.isdecimal():
            fail(f"{what} is {value!r}: expected bytes, such as 4096 or '8G'")
        return int(digits) * unit
    if not hasattr(value, "__index__"):
        fail(f"{what} is {value!r}: expected bytes, such as 4096 or '8G'", _STATUS_TYPE)
    number = value.__index__()
    if number < 0 or number >> 64:
        fail(f"{what} is {number}: it must be from 0 to 2^64 - 1")
    return number


def real(value: Any, what: str) -> float:
    """A real number."""
    if not 0 <= _core._kind_of_number(value) <= 2:
        fail(f"{what} is {value!r}: expected a real number", _STATUS_TYPE)
    return float(value)


def path(value: Any) -> bytes:
    """The bytes of a path or of another text, for C."""
    text = os.fsencode(value)
    return text if b"\0" not in text else fail(f"{value!r} has a null byte in it")


def _percent(value: str, name: str) -> float:
    """A share of what is free in the place below."""
    digits = value[:-1]
    if not digits.isdecimal() or not 1 <= int(digits) <= 100:
        fail(f"{name} is {value!r}: expected 1% to 100%")
    return int(digits) / 100


def _share(value: float, name: str) -> float:
    share = real(value, name)
    return share if 0 <= share <= 1 else fail(f"{name} is {share}: it must be from 0 to 1")


def _word(value: Any, name: str, words: list[str]) -> int:
    return words.index(value) if value in words else fail(f"{name} is {value!r}; known are {', '.join(words)}")


def _convert(option: Option, value: Any) -> Value:
    name, kind, _, known, _ = option
    words = known.split(" ")
    if kind in (_TEXT, _PATH, _URL):
        return path(value), 0, 0.0
    if kind == _SHARE:
        return None, 0, _share(value, name)
    if kind == _WORD:
        return None, _word(value, name, words), 0.0
    if kind == _WORDS:
        chosen: Iterable[str] = value.split(",") if isinstance(value, str) else value
        return None, sum({1 << _word(word, name, words) for word in chosen}), 0.0
    if kind == _SIZE and isinstance(value, str) and value.endswith("%"):
        return None, 0, _percent(value, name)
    return None, size(value, name), 0.0


def read(kind: str, place: Any, given: dict[str, Any]) -> tuple[Value | None, tuple[Value | None, ...]]:
    """The place and the options of a kind in the order of the library's table; None stands for the default."""
    known = next((row for row in _core._schemes() if row[0] == kind), None)
    if known is None:
        return fail(f"there is no kind of place {kind!r}")
    _, _, where, options, _ = known
    names = {option[0].replace("-", "_") for option in options}
    for name in given:
        if name not in names:
            fail(f"{kind} has no option {name!r}; there are: {', '.join(sorted(names)) or 'none'}")
    values = []
    for option in options:
        value = given.get(option[0].replace("-", "_"))
        if value is None and option[2]:
            fail(f"{kind} needs the option {option[0]!r}")
        values.append(None if value is None else _convert(option, value))
    return (None if place is None else _convert(where, place)), tuple(values)


def words(kind: str, given: dict[str, Any]) -> list[int]:
    """The numbers of words that options of a kind have, in the order given; None stands for the first word."""
    options = {option[0]: option for row in _core._schemes() if row[0] == kind for option in row[3]}
    return [0 if value is None else _word(value, name, options[name][3].split(" ")) for name, value in given.items()]
