"""What the copies of the process have moved, and by which routes.

    with umem.ledger.on():
        ...
    print(umem.ledger.read())
"""
from __future__ import annotations

from contextlib import contextmanager

from . import _core

TYPE_CHECKING = False  # module typing takes longer to import than umem
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

def start() -> None:
    """Switches the ledger on. It keeps the records that it has."""
    _core._ledger_start()


def stop() -> None:
    """Switches the ledger off. It keeps the records."""
    _core._ledger_stop()


def clear() -> None:
    """Removes all records."""
    _core._ledger_clear()


def is_on() -> bool:
    """Whether it is on."""
    return _core._ledger_is_on()


@contextmanager
def on() -> Iterator[None]:
    """Has the ledger on in a with block."""
    was_on = is_on()
    start()
    try:
        yield
    finally:
        if not was_on:
            stop()


def read() -> dict[tuple[str, str, str], dict[str, Any]]:
    """The records: (source, destination, route) to calls, failed calls, bytes and seconds; most seconds first."""
    return {(r["src"], r["dst"], r["route"]): {k: r[k] for k in ("calls", "failed", "bytes", "seconds")}
            for r in _core._ledger_read()}
