/* unload.c - a program may open the component at run time, use it, and close it before MPI ends:
 * MPI and umem still call its functions then. Usage: unload LIBRARY */
#include <dlfcn.h>
#include <umem/mpi.h>

#include "end.h"

/* dlsym returns data pointers, which ISO C does not convert to functions. */
static void find(void *library, char const *name, void *slot) {
  void *symbol = dlsym(library, name);
  if (!symbol) {
    fprintf(stderr, "%s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memcpy(slot, &symbol, sizeof symbol);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  umemStatusType (*start)(MPI_Comm, umemMpiOptions const *);
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = 1 << 16;
  find(library, "umemMpi_start", &start);
  int failed = start(MPI_COMM_WORLD, &options) != umemOK;
  dlclose(library);
  end_mpi(); /* ends the window */
  return failed;
}
