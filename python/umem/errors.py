"""Exceptions: each is a umem.Error, and also the exception of Python that stands for the same."""
from __future__ import annotations

import builtins
import errno
import os

from . import _core

__all__ = [
    "AssertionError", "CancelledError", "Error", "IndexError", "MemoryError", "NotImplementedError",
    "NotSupportedError", "OSError", "RuntimeError", "TypeError", "ValueError",
]


class Error(Exception):
    """A failure of umem.

    Attributes
    ----------
    status : str
        The name of the status in C: "MemoryError", "IOError", ...
    """

    status: str = "RuntimeError"


class MemoryError(Error, builtins.MemoryError):
    """Out of memory (RAM, disk or GPU), or the size is impossible."""

    status = "MemoryError"


class RuntimeError(Error, builtins.RuntimeError):
    """A driver, a thread or a kernel failed; or a umem.Track has found leaks."""

    status = "RuntimeError"


class OSError(Error, builtins.OSError):
    """A file failed. `errno` and `filename` are those of the system where the message has them, else None."""

    status = "IOError"

    def __str__(self) -> str:
        return str(self._message) if hasattr(self, "_message") else super().__str__()

    _message: str


class ValueError(Error, builtins.ValueError):
    """An argument that can never be right, or something that was closed or released."""

    status = "ValueError"


class TypeError(Error, builtins.TypeError):
    """An object, an element type or a place of the wrong kind."""

    status = "TypeError"


class IndexError(Error, builtins.IndexError):
    """Outside of an array, a block or a file; or a umem.Debug has found a wrong write."""

    status = "IndexError"


class NotImplementedError(Error, builtins.NotImplementedError):
    """The place lacks this operation."""

    status = "NotImplementedError"


class NotSupportedError(Error, builtins.BufferError, builtins.RuntimeError):
    """This build, machine or mode cannot do it: writing to a read-only array, a GPU that is not there.

    It is also a BufferError, which exchange with other libraries raises.
    """

    status = "NotSupportedError"


class AssertionError(Error, builtins.AssertionError):
    """An error in umem: please report it."""

    status = "AssertError"


class CancelledError(Error, builtins.RuntimeError):
    """The program has cancelled its own call: a progress function returned False."""

    status = "CancelledError"


_by_name: dict[str, type[Error]] = {
    cls.status: cls
    for cls in (MemoryError, RuntimeError, OSError, ValueError, TypeError, IndexError, NotImplementedError,
                NotSupportedError, AssertionError, CancelledError)
}


def _file_name(shown: str) -> str:
    """The name that a message shows: umem writes "\\xff" for bytes that are not printable UTF-8."""
    import re

    return os.fsdecode(re.sub(rb"\\x([0-9a-f]{2})", lambda byte: bytes.fromhex(byte[1].decode()), os.fsencode(shown)))


def _system_error(message: str) -> OSError:
    """Finds the number and the file name of a message that ends in the system's text."""
    import re

    quoted = re.search(r'"([^"]*)"', message)
    number = next((n for n in errno.errorcode if message.endswith(": " + os.strerror(n))), None)
    error = OSError(number, message, _file_name(quoted.group(1)) if quoted else None)
    error._message = message
    return error


def _make(status: int, message: str) -> Error:
    """The exception that stands for a status of C."""
    cls = _by_name.get(_core._status_name(status), RuntimeError)
    return _system_error(message) if cls is OSError else cls(message)


_core._set_exceptions(_make)
