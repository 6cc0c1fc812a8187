"""Places in the memory of the ranks of an MPI program: one-sided communication.

::

    from mpi4py import MPI
    import umem.mpi

    comm = MPI.COMM_WORLD
    umem.mpi.start(comm, 1 << 30)          # all ranks
    three = umem.mpi.place(comm, 3)        # any rank, at any time
    u = umem.zeros((100, 100), place=three)
    ...
    umem.mpi.stop(comm)                    # all ranks

The package must be built with UMEM_MPI=ON for the MPI that mpi4py uses. Other pages of the documentation: contexts/mpi.
"""
from __future__ import annotations

import atexit
import typing

from . import _core
from .errors import NotSupportedError
from .places import Place, open

__all__ = ["place", "start", "stop"]

# The window of each communicator: its place of this rank, and the communicator.
_kept: dict[int, tuple[Place, typing.Any]] = {}


@atexit.register
def _stop_all() -> None:
    """Ends windows that are left, before mpi4py calls MPI_Finalize: MPICH aborts there if umem's thread calls MPI."""
    if not _kept:
        return
    from mpi4py import MPI
    if not MPI.Is_finalized():
        for _, comm in list(_kept.values()):
            if comm:  # freed, it has no window
                stop(comm)


def _number(comm: typing.Any) -> int:
    """The number by which C knows it: that of Fortran."""
    if not _core._has_mpi:
        raise NotSupportedError("this package was built without MPI: build it with UMEM_MPI=ON")
    return int(comm.py2f())


def start(comm: typing.Any, capacity: int, *, unit: int | None = None, memory: str = "auto",
          progress: str = "auto") -> None:
    """Makes the window of a communicator of mpi4py; all ranks call it. It ends by `stop`, or with the program.

    Parameters
    ----------
    capacity
        Bytes of this rank, at least 1.
    unit
        Bytes in which memory is allocated, a power of two from 64.
    memory
        "auto", "shared", "allocate" or "create".
    progress
        "auto", "none" or "thread".
    """
    number = _number(comm)
    options = f"size={capacity}&memory={memory}&progress={progress}&comm={number & 0xFFFFFFFF}"
    if unit is not None:
        options += f"&unit={unit}"
    _kept[number] = open(f"mpi:{comm.Get_rank()}?{options}"), comm


def stop(comm: typing.Any) -> None:
    """Ends the window of a communicator, with all blocks; all ranks call it. Places on it then fail."""
    number = _number(comm)
    _kept.pop(number, None)
    _core._mpi_stop(number)


def place(comm: typing.Any, rank: int) -> Place:
    """The memory of a rank of a communicator that has a window."""
    return open(f"mpi:{rank}?comm={_number(comm) & 0xFFFFFFFF}")
