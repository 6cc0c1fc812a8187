"""What a program reads where an argument is of a wrong type or missing: words of the package, with its public names.

The binding itself would show its own functions and types. So its functions are replaced by functions that call them, but for
those which take any object and are called often.
"""
from __future__ import annotations

import sys

from . import _core

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TYPE = 5  # umemTypeError
_PLAIN = {"_host", "_kind_of_number", "_raise", "empty", "zeros", "__getitem__", "__len__", "__setitem__"}
_PUBLIC = {"umem._core.": "", "ArrayType": "Array", "PlaceType": "Place", "HostType": "Host", ", /": ""}


def _caller() -> str:
    """The function of the package that the program has called; empty if it is one of the binding."""
    frame, name = sys._getframe(1), ""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "umem":
        if frame.f_code.co_filename != __file__:
            name = frame.f_code.co_qualname
        frame = frame.f_back
    return name.partition(".<")[0].removesuffix(".__init__")


def _expected(function: Any) -> str:
    """The parameters of a function of the binding, as a program knows them."""
    line: str = function.__doc__.splitlines()[0]
    text = line[line.index("(") + 1:line.rindex(") ->")].removeprefix("self").removeprefix(", ")
    for private, public in _PUBLIC.items():
        text = text.replace(private, public)
    return text


def _refuse(function: Any, name: str, owner: type | None, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    if owner is not None:
        if not args or not isinstance(args[0], owner):
            of = type(args[0]).__name__ if args else "no object"
            _core._raise(_TYPE, f"umem.{name} is called with {of} in place of a umem.{owner.__name__}")
        args = args[1:]
    given = [type(value).__name__ for value in args] + [f"{key}={type(value).__name__}" for key, value in named.items()]
    _core._raise(_TYPE, f"umem.{_caller() or name} got ({', '.join(given)}), and expects ({_expected(function)})")


def _in_words(function: Any, name: str, owner: type | None) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except TypeError as error:
            if "incompatible function arguments" not in str(error):
                raise
        return _refuse(function, name, owner, args, named)

    for attribute in ("__name__", "__qualname__", "__doc__", "__nb_signature__", "__module__"):
        setattr(call, attribute, getattr(function, attribute))
    return call


def _replace(scope: Any, prefix: str, owner: type | None) -> None:
    for name, member in list(vars(scope).items()):
        if type(member).__name__ in ("nb_func", "nb_method") and name not in _PLAIN:
            setattr(scope, name, _in_words(member, f"{prefix}{name}".removesuffix(".__init__"), owner))
        elif isinstance(member, type):
            _replace(member, f"{name.lstrip('_')}.", member)


_replace(_core, "", None)
