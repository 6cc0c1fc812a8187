# the package for the MPI that mpi4py uses, from umem's sources
pip install . -C cmake.define.UMEM_MPI=ON -C cmake.define.MPI_C_COMPILER=mpicc
