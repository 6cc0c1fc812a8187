/* Which side of a connection does the program use? A device without a GPU, whose memory traps what
 * comes too late. */
#include <stdio.h>
#include <umem.h>

enum { count = 1000, nbytes = count * sizeof(double) };

/* Stands for a kernel. */
static void cool(double *t) {
  for (int i = 0; i < count; i++) t[i] -= 1;
}

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  /* [guarded] */
  umemGuarded device, host; /* both borrow ram */
  umemGuarded_ctor(&device, &ram);
  umemGuarded_ctor(&host, &ram);

  uintptr_t d = umem_alloc(&device, nbytes);
  umem_set(&device, d, 0, nbytes);
  uintptr_t h = umem_connect(&device, d, nbytes, &host, 0); /* a copy, as with a GPU */
  umem_set_block_label(&host, h, "temperature");
  umemGuarded_protect(&device, d, nbytes, umemGuardedClosed);

  ((double *)h)[0] = 300; /* the host's turn */

  umem_sync_from(&device, d, &host, h, nbytes); /* umem opens the pages for its own copy */
  umemGuarded_protect(&host, h, nbytes, umemGuardedClosed);
  umemGuarded_protect(&device, d, nbytes, umemGuardedWrite);

  cool((double *)d); /* the device's turn: here ((double *)h)[0] would raise SIGSEGV */

  umemGuarded_protect(&device, d, nbytes, umemGuardedClosed);
  umemGuarded_protect(&host, h, nbytes, umemGuardedRead);
  umem_sync_to(&device, d, &host, h, nbytes);
  printf("%g degrees\n", *(double *)h);
  printf("the host %s write\n",
         umemGuarded_access(&host, h) == umemGuardedWrite ? "may" : "must not");
  /* [/guarded] */

  umem_disconnect(&device, d, &host, h, 0);
  umem_free(&device, d);
  umem_dtor(&host);
  umem_dtor(&device);
  umem_dtor(&ram);
  return 0;
}
