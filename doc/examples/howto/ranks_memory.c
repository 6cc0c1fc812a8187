/* Rank 0 keeps an array in the memory of all ranks, which do nothing for it: mpirun -n 4. */
#include <stdio.h>
#include <umem.h>
#include <umem/mpi.h>

enum { cells = 1000, most_ranks = 8 };

static void use_all(int ranks) {
  void *host = umem_default(); /* RAM, unless UMEM_DEFAULT names another place */
  double rod[cells] = {0}, heat = 0;
  size_t const nbytes = cells / (size_t)ranks * sizeof(double); /* of a part */
  umemMpi rank[most_ranks];
  uintptr_t part[most_ranks];
  for (int i = 450; i < 550; i++) rod[i] = 100;
  for (int i = 0; i < ranks; i++) {
    umemMpi_ctor(&rank[i], MPI_COMM_WORLD, i);
    part[i] = umem_alloc(&rank[i], nbytes);
    umem_copy_to(host, (uintptr_t)rod + (size_t)i * nbytes, &rank[i], part[i], nbytes);
  }
  for (int i = 0; i < ranks; i++) {
    umem_copy_to(&rank[i], part[i], host, (uintptr_t)rod + (size_t)i * nbytes, nbytes);
    umem_free(&rank[i], part[i]);
    umem_dtor(&rank[i]);
  }
  for (int i = 0; i < cells; i++) heat += rod[i];
  if (umem_thread_status() == umemOK) printf("%d ranks: heat %.0f\n", ranks, heat);
}

int main(int argc, char **argv) {
  int level, rank, ranks;
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = 1 << 20; /* bytes of each rank that are in the window */
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (umemMpi_start(MPI_COMM_WORLD, &options) == umemOK && rank == 0) use_all(ranks);
  if (umem_thread_status() != umemOK) MPI_Abort(MPI_COMM_WORLD, puts(umem_thread_message()));
  umemMpi_stop(MPI_COMM_WORLD);
  MPI_Finalize();
}
