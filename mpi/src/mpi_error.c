/* mpi_error.c - failures of MPI as a status of umem, and questions to MPI. */
#include "mpi_state.h"

#include <string.h>

#if defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

bool mpi_fail(void *ctx, int error, char const *what) {
  char words[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0, class = MPI_ERR_OTHER;
  if (MPI_Error_string(error, words, &length) != MPI_SUCCESS) strcpy(words, "unknown error");
  for (char *c = words; *c; c++)
    if (*c == '\n') *c = ' ';
  MPI_Error_class(error, &class);
  umemVirtual_fail(ctx, class == MPI_ERR_NO_MEM ? umemMemoryError : umemIOError, "%s: %s", what,
                   words);
  return false;
}

bool mpi_is_running(void *ctx, char const *function) {
  int begun = 0, ended = 0;
  if (MPI_Initialized(&begun) != MPI_SUCCESS || MPI_Finalized(&ended) != MPI_SUCCESS) begun = 0;
  if (begun && !ended) return true;
  umemVirtual_fail(ctx, umemRuntimeError, "%s: MPI %s", function,
                   ended ? "has ended: MPI_Finalize was called"
                         : "is not running: call MPI_Init_thread first");
  return false;
}

bool mpi_takes_gpu_addresses(void) {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported;
#else
  return false;
#endif
}
