# over an umem that is installed in PREFIX, from its sources
cmake -S mpi -B build-mpi -DCMAKE_PREFIX_PATH=PREFIX -DMPI_C_COMPILER=mpicc
cmake --build build-mpi
cmake --install build-mpi --prefix PREFIX
