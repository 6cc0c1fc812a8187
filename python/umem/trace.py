"""Reads the logs of umem.Log: summaries, files for viewers, and replays.

    with umem.Log(umem.Host(), "run.umem") as place:
        ...
    print(umem.trace.summary("run.umem"))
    print(umem.trace.replay("run.umem", umem.Pool(umem.Host())))
"""
from __future__ import annotations

from . import _core, _options

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from typing import Any

    from .places import Path, Place


def summary(log: Path, *, context: int = 0) -> str:
    """What the program umem-trace prints: contexts, calls, bytes, peaks, failures, and blocks that are left.

    Parameters
    ----------
    log : str or os.PathLike
        A file that a umem.Log has written, or is writing.
    context : int, optional
        Only the place with this number (Log.number). Default: all.

    Raises
    ------
    umem.OSError
        The file cannot be read.
    umem.ValueError
        It is no log, or has no such place.
    """
    return _core._trace_summary(_options.path(log), context)


def to_chrome(log: Path, out: Path, *, context: int = 0, flows: bool = False) -> None:
    """Writes JSON for Perfetto (https://ui.perfetto.dev) and chrome://tracing. Parameters and errors as of summary.

    Parameters
    ----------
    out : str or os.PathLike
        The new file. It gets its name when it is complete, and may be the log itself. A file that it replaces keeps
        its permissions and, as far as the system lets it, its owner; a symbolic link to it stays.
    flows : bool
        Whether arrows lead from each copy into a block to the copies that read from it.
    """
    _core._trace_convert(_options.path(log), _options.path(out), context, True, flows)


def to_csv(log: Path, out: Path, *, context: int = 0) -> None:
    """Writes allocations and frees as CSV, in the columns of RMM. Parameters and errors as of to_chrome."""
    _core._trace_convert(_options.path(log), _options.path(out), context, False, False)


def replay(log: Path, place: Place | None = None, *, context: int = 0) -> dict[str, Any]:
    """Runs the calls of a log again, in one thread, on one place: how fast is it, and does everything fit?

    umem copies the same numbers of bytes between the same blocks; their values are not those of the logged program.
    Blocks that are live at the end are freed.

    Parameters
    ----------
    log, context
        As of summary.
    place : Place, optional
        Where to run them. Default: RAM.

    Returns
    -------
    dict
        operations; seconds that they took; peak_bytes, which the log had live at once; left_out, operations on blocks
        that the log does not know; failed, operations that failed here. Failures raise nothing.
    """
    return _core._trace_replay(_options.path(log), _core._host() if place is None else place, context)
