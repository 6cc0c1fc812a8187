/* Temporary arrays for kernels: managed memory from a pool that is on the GPU when the kernel starts. */
#include <stdio.h>
#include <umem.h>

/* [open] */
typedef struct Scratch {
  umemCudaManaged managed;
  umemPool pool;
  umemCudaPrefetch prefetch;
} Scratch;

/* Each layer takes over the layer below, so the outermost layer ends them all. */
static umemStatusType open_scratch(Scratch *scratch) {
  umemStatusType status = umemCudaManaged_ctor(&scratch->managed, 0, 0);
  if (status == umemOK) status = umemPool_adopt(&scratch->pool, &scratch->managed, NULL);
  if (status == umemOK) status = umemCudaPrefetch_adopt(&scratch->prefetch, &scratch->pool);
  return status;
}
/* [/open] */

int main(void) {
  Scratch scratch;
  if (open_scratch(&scratch) != umemOK) {
    fprintf(stderr, "%s\n", umem_thread_message());
    printf("done\n"); /* without a GPU this program does nothing */
    return 0;
  }
  for (int i = 0; i < 10; i++) {
    uintptr_t array = umem_alloc(&scratch.prefetch, 1 << 20);
    umem_set(&scratch.prefetch, array, 0, 1 << 20); /* here a program would start a kernel */
    umem_free(&scratch.prefetch, array);
  }
  umemStatusType status = umem_get_status(&scratch.prefetch);
  umem_dtor(&scratch.prefetch);
  printf("%s\n", status == umemOK ? "done" : umem_get_message(&scratch.prefetch));
  return 0;
}
