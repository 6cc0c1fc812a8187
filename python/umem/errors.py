"""Exceptions: each is a umem.Error, and also the exception of Python that stands for the same."""
from __future__ import annotations

import builtins
import errno
import os

from . import _core

__all__ = [
    "AssertionError", "CancelledError", "Error", "FileExistsError", "FileNotFoundError", "IndexError",
    "IsADirectoryError", "MemoryError", "NotImplementedError", "NotSupportedError", "OSError", "PermissionError", "RuntimeError", "TypeError", "ValueError",
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
    """Out of memory (RAM or GPU), or the size is impossible. A full disk is a umem.OSError with its `errno`."""

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


class FileNotFoundError(OSError, builtins.FileNotFoundError):
    """A file, a folder or the name of shared memory is not there."""


class FileExistsError(OSError, builtins.FileExistsError):
    """A file, or the name of shared memory, is there already."""


class IsADirectoryError(OSError, builtins.IsADirectoryError):
    """The name of a file is that of a directory."""


class PermissionError(OSError, builtins.PermissionError):
    """The system does not let this user open or change a file."""


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


def _number(message: str) -> int | None:
    """The errno of a message that ends in the system's words, and perhaps figures in brackets."""
    import re

    text = re.sub(r" \([^()]*\)$", "", message)
    if text.endswith(" is a directory, not a regular file"):  # found before a call of the system could fail
        return errno.EISDIR
    return next((n for n in errno.errorcode if text.endswith(": " + os.strerror(n))), None)


_by_number: dict[int | None, type[OSError]] = {
    errno.ENOENT: FileNotFoundError, errno.EEXIST: FileExistsError, errno.EACCES: PermissionError,
    errno.EPERM: PermissionError, errno.EISDIR: IsADirectoryError,
}
_FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG


def _system_error(number: int | None, message: str) -> OSError:
    """The exception of the system's number, with the file that the message names; of a long name it shows the end only."""
    import re

    quoted = re.search(r'"([^"]*)"', message)
    name = _file_name(quoted.group(1)) if quoted and not quoted.group(1).startswith("...") else None
    error = _by_number.get(number, OSError)(number, message, name)
    error._message = message
    return error


def of_system(error: builtins.OSError, path: str) -> OSError:
    """The exception of umem for one that Python's own functions have raised while they made the file path."""
    return _by_number.get(error.errno, OSError)(error.errno, error.strerror, path)


def _make(status: int, message: str) -> Error:
    """The exception for a status of C. A full disk, which C reports as umemMemoryError, is a umem.OSError."""
    cls = _by_name.get(_core._status_name(status), RuntimeError)
    number = _number(message) if cls in (OSError, MemoryError) else None
    return _system_error(number, message) if cls is OSError or number in _FULL else cls(message)


_core._set_exceptions(_make)
