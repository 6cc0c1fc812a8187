"""The package on the memory of ranks, with a communicator of mpi4py.

    mpirun -n 2 python ranks.py
"""
import atexit

import numpy
from mpi4py import MPI

import umem


@atexit.register
def check_end():
    """Runs after the package has ended the window that is left: functions run in the order opposite to this."""
    try:
        umem.mpi.place(MPI.COMM_WORLD, 0)
    except umem.ValueError as error:
        assert "has no window" in str(error), error
        if rank == 0:
            print("ok")


import umem.mpi  # noqa: E402

comm = MPI.COMM_WORLD.Dup()
rank, ranks = comm.Get_rank(), comm.Get_size()

try:
    umem.mpi.place(comm, 0)
except umem.ValueError as error:
    assert "has no window" in str(error), error
else:
    raise AssertionError("a communicator without a window has no places")

umem.mpi.start(comm, 1 << 20)
following = umem.mpi.place(comm, (rank + 1) % ranks)
u = umem.zeros((10, 10), place=following)
u[:] = numpy.arange(100.0).reshape(10, 10) + rank
numpy.testing.assert_array_equal(numpy.array(u.tolist()),
                                 numpy.arange(100.0).reshape(10, 10) + rank)
try:
    umem.mpi.place(comm, ranks)
except umem.ValueError as error:
    assert f"there is no rank {ranks}" in str(error), error
else:
    raise AssertionError("there is no such rank")
del u
comm.Barrier()
umem.mpi.stop(comm)
try:
    umem.zeros(3, place=following)
except umem.RuntimeError as error:
    assert "has ended" in str(error), error
else:
    raise AssertionError("the window has ended")
del following
comm.Free()

umem.mpi.start(MPI.COMM_WORLD, 4096)
kept = umem.zeros(10, place=umem.mpi.place(MPI.COMM_WORLD, rank))  # it ends after the window, without a word
