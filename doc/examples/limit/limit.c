/* A part of a program may use only its share of memory. */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  /* [limit] */
  umemLimit share;
  umemLimit_ctor(&share, &ram, 1000); /* bytes; ram is borrowed */

  uintptr_t first = umem_alloc(&share, 900);
  uintptr_t second = umem_alloc(&share, 200); /* null: 100 bytes are left */
  printf("%s\n", umem_get_message(&share));
  /* [/limit] */

  umem_free(&share, second); /* null is ignored */
  umem_free(&share, first);
  printf("%zu bytes in use\n", umemLimit_used(&share));
  umem_dtor(&share);
  umem_dtor(&ram);
  return 0;
}
