/* default_user.c - a program that umem trace run runs: default_user STATUS uses the default context and ends with this
 * status, or by this signal if it is negative. */
#include <signal.h>
#include <stdlib.h>
#include <umem.h>

int main(int argc, char **argv) {
  int status = argc > 1 ? atoi(argv[1]) : 0;
  void *ctx = umem_default();
  uintptr_t adr = umem_calloc(ctx, 1000, 1);
  umem_free(ctx, adr);
  if (!adr) return 77;
  return status < 0 ? raise(-status) : status;
}
