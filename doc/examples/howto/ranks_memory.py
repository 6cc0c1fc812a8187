"""Rank 0 keeps an array in the memory of all ranks, which do nothing for it: mpirun -n 4."""
import numpy
from mpi4py import MPI

import umem.mpi

comm = MPI.COMM_WORLD
umem.mpi.start(comm, 1 << 20)  # bytes of each rank that are in the window

if comm.Get_rank() == 0:
    rod = numpy.zeros(1000)
    rod[450:550] = 100
    parts = [umem.asarray(part, place=umem.mpi.place(comm, rank))
             for rank, part in enumerate(numpy.array_split(rod, comm.Get_size()))]
    heat = sum(part.numpy(copy=True).sum() for part in parts)
    print(f"{len(parts)} ranks: heat {heat:.0f}")
    del parts  # their memory is free again

umem.mpi.stop(comm)
