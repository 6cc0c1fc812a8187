/* Parts of a program that name no place use the default context. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <umem.h>

/* [default] */
static void use_the_default(void) {
  void *ctx = umem_default();
  if (!ctx) {
    printf("%s\n", umem_thread_message());
    return;
  }
  uintptr_t adr = umem_calloc(ctx, 100, sizeof(double));
  printf("%s\n", umem_get_device_name(ctx));
  umem_free(ctx, adr);
}

int main(void) {
  setenv("UMEM_DEFAULT", "pool+host", 1); /* usually the user sets it */
  use_the_default();
  setenv("UMEM_DEFAULT", "pool+host:", 1);
  use_the_default();

  umemFile scratch;
  umemFile_ctor(&scratch, NULL, "w+");
  umem_set_default(&scratch); /* umem borrows scratch */
  use_the_default();
  umem_set_default(NULL); /* the default as before */
  use_the_default();
  umem_dtor(&scratch);
  /* [/default] */

  /* [end] */
  void *place = umem_open("track+pool+host:"); /* or a name from a configuration */
  umem_set_default(place);
  umem_alloc(umem_default(), 100); /* never freed */
  umem_set_default(NULL);
  printf("%s\n", umem_get_status_name(umem_close(place))); /* 1 block, 100 bytes ... */
  /* [/end] */
  return 0;
}
