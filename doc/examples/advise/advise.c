/* Hints about a file that is read once, and a block that moves from a file to RAM. */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemFile file;
  umemHost ram;
  size_t const nbytes = 1 << 20;
  umemHost_ctor(&ram);
  if (umemFile_ctor(&file, NULL, "w+") != umemOK) return puts(umem_thread_message()), 1;
  uintptr_t adr = umem_calloc(&file, 1, nbytes);

  /* [advise] */
  umem_advise(&file, adr, nbytes, umemAdviceSequential, UMEM_CPU); /* read further ahead */
  umem_advise(&file, adr, nbytes, umemAdvicePrefetch, UMEM_CPU);   /* begin now */
  if (umem_advise(&file, adr, nbytes, umemAdvicePrefetch, 0) != umemOK) {
    puts(umem_thread_message()); /* only managed memory moves to a GPU */
    umem_clear_status(&file);
  }
  /* [/advise] */

  /* [move] */
  uintptr_t moved = umem_move(&file, adr, nbytes, &ram); /* adr is free now */
  if (moved == umem_null(&ram)) return puts(umem_thread_message()), 1;
  /* [/move] */
  printf("%d\n", *(unsigned char *)moved);
  umem_free(&ram, moved);
  umem_dtor(&file);
  umem_dtor(&ram);
  return 0;
}
