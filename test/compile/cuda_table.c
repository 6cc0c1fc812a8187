/* cuda_table.c - asks the table of CUDA's runtime what can be asked without a GPU, and prints the
 * version of the runtime.
 *
 * Exit code: 0 when every answer is right. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <base/system.h>
#include <cuda/cuda_rt.h>

/* As that of the library, of which only the tables of CUDA's functions are here. */
void *umem_open_library(char const *name, int flags, char const **error) {
  void *handle = dlopen(name, flags);
  if (!handle && error) *error = dlerror();
  return handle;
}

/* Whether every function of the table is there. */
static int is_full(umemCudaRt const *rt) {
  typedef void (*Function)(void);
  Function functions[sizeof *rt / sizeof(Function)];
  memcpy(functions, rt, sizeof *rt);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!functions[i]) return fprintf(stderr, "function %zu is missing\n", i), 0;
  return 1;
}

/* The driver is asked for its functions too: where there is none, the error says so. */
static int answers(umemCudaRt const *rt) {
  int driver = 0;
  void *context = NULL;
  if (strcmp(rt->error_name(umemCudaOutOfMemory), "cudaErrorMemoryAllocation") ||
      strcmp(rt->error_string(umemCudaOutOfMemory), "out of memory"))
    return fprintf(stderr, "error %d: %s\n", umemCudaOutOfMemory, rt->error_name(2)), 0;
  if (rt->driver_version(&driver))
    return fprintf(stderr, "no version of the driver is returned\n"), 0;
  int error = rt->context_current(&context);
  if (!driver && error != umemCudaInsufficientDriver && error != umemCudaNoGpu)
    return fprintf(stderr, "error %d where there is no driver\n", error), 0;
  return 1;
}

int main(void) {
  umemCudaRt const *rt = umemCudaRt_get();
  int version = 0;
  if (!rt || !is_full(rt) || !answers(rt) || rt->runtime_version(&version)) return 1;
  printf("%d.%d\n", version / 1000, version % 1000 / 10);
  return 0;
}
