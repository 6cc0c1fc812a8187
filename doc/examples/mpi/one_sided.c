/* one_sided.c - rank 0 writes into the memory of all ranks, which do nothing. */
#include <stdio.h>
#include <umem.h>
#include <umem/mpi.h>

static umemHost host;

/* [start] */
/* All ranks: 1 MiB of each is in the window. */
static umemStatusType start(void) {
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = 1 << 20;
  return umemMpi_start(MPI_COMM_WORLD, &options);
}
/* [/start] */

/* [use] */
/* One rank alone. */
static void greet(int rank) {
  umemMpi other;
  char back[32] = "";
  umemMpi_ctor(&other, MPI_COMM_WORLD, rank);
  uintptr_t adr = umem_alloc(&other, 32);
  umem_copy_to(&host, (uintptr_t) "written by rank 0", &other, adr, 18);
  umem_copy_to(&other, adr, &host, (uintptr_t)back, 18);
  printf("at rank %d: %s\n", rank, back);
  umem_free(&other, adr);
  if (!umem_is_ok(&other)) fprintf(stderr, "%s\n", umem_get_message(&other));
  umem_dtor(&other);
}
/* [/use] */

int main(int argc, char **argv) {
  int level, rank, ranks;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  umemHost_ctor(&host);
  if (start() != umemOK) {
    fprintf(stderr, "%s\n", umem_thread_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int other = 0; rank == 0 && other < ranks; other++) greet(other);
  umemMpi_stop(MPI_COMM_WORLD);
  umem_dtor(&host);
  MPI_Finalize();
  return 0;
}
