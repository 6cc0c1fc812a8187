/* A context of your own is used like any other. */
#include <stdio.h>
#include "mymem.h"

int main(void) {
  umemMyMem arena;
  umemFile file;
  if (umemMyMem_ctor(&arena, 4096) != umemOK || umemFile_ctor(&file, NULL, "w+") != umemOK) {
    fprintf(stderr, "%s\n", umem_thread_message());
    return 1;
  }

  /* [use] */
  uintptr_t there = umem_alloc(&file, 100);
  umem_set(&file, there, 7, 100);

  uintptr_t here = umem_aligned_alloc(&arena, 64, 100); /* the default method */
  umem_copy_to(&file, there, &arena, here, 100);        /* the router makes this copy */
  umem_copy_to(&arena, here + 4000, &file, there, 100); /* far outside of the block */
  printf("%s\n", umem_get_message(&arena));
  /* [/use] */

  umem_aligned_free(&arena, here);
  umem_free(&file, there);
  umem_dtor(&file);
  umem_dtor(&arena);
  return 0;
}
