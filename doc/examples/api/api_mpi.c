/* Parts of this program are the examples of the component for MPI in the reference of C: a part
 * stands at each function that the comment before it names. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <umem.h>
#include <umem/mpi.h>

static void use(void) {
  /* [umemMpi_ctor umemMpi_rank] */
  umemMpi first; /* the memory of rank 0; any rank may do this, at any time */
  if (umemMpi_ctor(&first, MPI_COMM_WORLD, 0) != umemOK) return (void)puts(umem_thread_message());
  int ranks, rank = umemMpi_rank(&first, &ranks);
  if (rank < 0) puts(umem_get_message(&first));
  /* [/] */
  assert(rank == 0 && ranks >= 1);

  uintptr_t adr = umem_alloc(&first, 100);
  assert(adr != umem_null(&first));
  /* [umemMpi_pointer umemMpi_sync] */
  char *bytes = umemMpi_pointer(&first, adr); /* if this rank shares memory with that one */
  if (!bytes) return (void)puts(umem_get_message(&first));
  strcpy(bytes, "hello");
  if (umemMpi_sync(&first) != umemOK) puts(umem_get_message(&first)); /* before others read it */
  /* [/] */
  umem_free(&first, adr);
  assert(umem_is_ok(&first));
  umem_dtor(&first);
}

static void names(void) {
  char name[40];
  /* [umemMpi_register umemMpi_number] */
  if (umemMpi_register() != umemOK) puts(umem_thread_message()); /* umemMpi_start does it, too */
  snprintf(name, sizeof name, "pool+mpi:0?comm=%u", (unsigned)umemMpi_number(MPI_COMM_WORLD));
  void *ctx = umem_open(name);
  if (!ctx) puts(umem_thread_message());
  umem_close(ctx);
  /* [/] */
  assert(ctx && umem_thread_status() == umemOK);

  /* [umemMpi_communicator] */
  MPI_Comm comm = umemMpi_communicator(umemMpi_number(MPI_COMM_WORLD));
  assert(comm == MPI_COMM_WORLD);
  /* [/] */
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  /* [umemMpi_start] */
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = 1 << 20;                                      /* bytes of this rank */
  umemStatusType status = umemMpi_start(MPI_COMM_WORLD, &options); /* all ranks call it */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  assert(status == umemOK);
  use();
  names();
  /* [umemMpi_stop] */
  MPI_Barrier(MPI_COMM_WORLD); /* no rank is in a call any more */
  if (umemMpi_stop(MPI_COMM_WORLD) != umemOK) puts(umem_thread_message());
  /* [/] */
  MPI_Finalize();
}
