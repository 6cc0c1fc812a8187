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
_PLAIN = {"_copy", "_copy_many", "_from_list", "_host", "_kind_of_number", "_raise", "empty", "zeros"}
_PUBLIC = {"umem._core.": "", "ArrayType[Element]": "Array", "ArrayType": "Array", "PlaceType": "Place", "HostType": "Host"}


class _Signed:
    """What inspect.signature asks for the parameters of a function of the binding."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._function(*args, **named)

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        texts = getattr(self._function, "__nb_signature__", None)
        if not texts:
            return signature(self._function)
        text, _, defaults = texts[0]
        for i, value in enumerate(defaults or ()):
            text = text.replace(f"\\{i}", repr(value))
        for private, public in _PUBLIC.items():
            text = text.replace(private, public)
        made: dict[str, Any] = {}
        exec(f"from __future__ import annotations\n{text}: ...", made)
        return signature(made[self._function.__name__])


def _caller() -> str:
    """The function of the package that the program has called; empty if it is one of the binding."""
    frame, name = sys._getframe(1), ""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "umem":
        if frame.f_code.co_filename != __file__:
            name = frame.f_code.co_qualname
        frame = frame.f_back
    return name.partition(".<")[0].removesuffix(".__init__")


def _expected(function: Any, caller: str) -> str:
    """The parameters of the function that the program has called."""
    from inspect import signature

    public: Any = sys.modules["umem"]
    for part in caller.split("."):
        public = getattr(public, part, None)
    try:
        found = signature(public or _Signed(function))
    except (TypeError, ValueError):
        found = signature(_Signed(function))
    parameters = [str(one).replace("'", "") for one in found.parameters.values()
                  if one.name != "self" and one.kind is not one.VAR_POSITIONAL]
    return ", ".join(parameters)


def _given(value: Any) -> str:
    """What an argument is: of an integer that may be out of range, its value."""
    return repr(value) if type(value) is int and not 0 <= value < 2**31 else type(value).__name__


def _refuse(function: Any, name: str, owner: type | None, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    if owner is not None:
        if not args or not isinstance(args[0], owner):
            of = type(args[0]).__name__ if args else "no object"
            _core._raise(_TYPE, f"umem.{name} is called with {of} in place of a umem.{owner.__name__}")
        args = args[1:]
    given = [_given(value) for value in args] + [f"{key}={_given(value)}" for key, value in named.items()]
    called = _caller() or name
    _core._raise(_TYPE, f"umem.{called} got ({', '.join(given)}), and expects ({_expected(function, called)})")


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
    call.__wrapped__ = _Signed(function)  # type: ignore[attr-defined]
    return call


def _replace(scope: Any, prefix: str, owner: type | None) -> None:
    for name, member in list(vars(scope).items()):
        if type(member).__name__ in ("nb_func", "nb_method") and name not in _PLAIN:
            setattr(scope, name, _in_words(member, f"{prefix}{name}".removesuffix(".__init__"), owner))
        elif isinstance(member, type):
            member.__name__ = member.__name__  # Python 3.12 and later show it with the name of the module until it is set
            _replace(member, f"{name.lstrip('_')}.", member)


_replace(_core, "", None)
