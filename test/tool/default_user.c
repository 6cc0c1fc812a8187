/* default_user.c - a program that umem trace run runs: default_user [STATUS [COUNT]] allocates and
 * frees so often on the default context, and ends with this status, or by this signal if it is
 * negative. */
#include <signal.h>
#include <stdlib.h>
#include <umem.h>

int main(int argc, char **argv) {
  int status = argc > 1 ? atoi(argv[1]) : 0;
  long count = argc > 2 ? atol(argv[2]) : 1;
  void *ctx = umem_default();
  for (long i = 0; i < count; i++) {
    uintptr_t adr = umem_calloc(ctx, 1000, 1);
    umem_free(ctx, adr);
    if (!adr) return 77;
  }
  return status < 0 ? raise(-status) : status;
}
