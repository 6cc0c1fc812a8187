"""What the functions of extensions take: nanobind and pybind11 write it into their docstrings."""
from __future__ import annotations

import inspect
import sys

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def _docstrings(text: str) -> Iterator[tuple[str, str]]:
    """(name, docstring) of all functions and methods whose docstring has this text."""
    seen = set()
    found: list[Mapping[str, Any]] = [vars(module) for module in list(sys.modules.values()) if inspect.ismodule(module)]
    while found:
        for name, value in list(found.pop().items()):
            if id(value) in seen:
                continue
            seen.add(id(value))
            if inspect.isclass(value):
                found.append(vars(value))
            elif callable(value) and not inspect.isfunction(value):
                doc = getattr(value, "__doc__", None)
                if isinstance(doc, str) and text in doc:
                    yield name, doc


def explain(text: str, others: list[str]) -> str | None:
    """The names of the arguments that are described by this text in signatures: "x of sum, y of add".

    None: the object may be for another function of the same name, which has an argument that others describe.
    """
    frame = sys._getframe().f_back
    used = frame.f_code.co_names if frame else ()
    arguments: dict[str, list[str]] = {}
    for name, doc in _docstrings(text):
        lines = [line for line in doc.splitlines() if "->" in line]
        if len(lines) > 1 and any(other in doc for other in others):
            return None
        for line in lines:
            for before in line.split(text)[:-1]:
                argument = before.rstrip(": ").replace("(", " ").replace(",", " ").split()[-1]
                if not before.endswith("-> "):
                    arguments.setdefault(name, []).append(argument)
    called = [name for name in arguments if name in used] or list(arguments)
    return ", ".join(f"{' or '.join(dict.fromkeys(arguments[name]))} of {name}()" for name in called[:3])
