/* program.c - uses the component as it is installed. */
#include <stdio.h>
#include <umem.h>
#include <umem/mpi.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = 1 << 20;
  umemMpi ctx;
  if (umemMpi_start(MPI_COMM_WORLD, &options) == umemOK &&
      umemMpi_ctor(&ctx, MPI_COMM_WORLD, 0) == umemOK) {
    umemInfo info = UMEM_INFO_INIT;
    umem_get_info(&ctx, &info);
    umem_free(&ctx, umem_alloc(&ctx, 100));
    printf("%s\n", info.name);
    umem_dtor(&ctx);
  }
  int failed = umem_thread_status() != umemOK;
  if (failed) fprintf(stderr, "%s\n", umem_thread_message());
  MPI_Finalize();
  return failed;
}
