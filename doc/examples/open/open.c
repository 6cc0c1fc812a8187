/* A text names the place of an array, for example a text of a configuration file. */
#include <stdio.h>
#include <umem.h>

/* [open] */
static void keep_squares_in(char const *name) {
  void *ctx = umem_open(name);
  if (!ctx) {
    printf("%s\n", umem_thread_message());
    return;
  }
  umemHost ram;
  umemHost_ctor(&ram);
  long squares[100], last = 0;
  for (long i = 0; i < 100; i++) squares[i] = i * i;

  uintptr_t adr = umem_alloc(ctx, sizeof squares);
  umem_copy_to(&ram, (uintptr_t)squares, ctx, adr, sizeof squares);
  umem_copy_from(&ram, (uintptr_t)&last, ctx, adr + 99 * sizeof last, sizeof last);
  printf("\"%s\": the last one is %ld\n", name, last);
  umem_free(ctx, adr);
  umem_dtor(&ram);
  umem_close(ctx);
}

int main(void) {
  keep_squares_in("host:");
  keep_squares_in("pool+host:?max=64M");
  keep_squares_in("limit+file:squares.bin?mode=w+&limit=1K");
  keep_squares_in("file:squares.bin?mode=w+");
  keep_squares_in("pool:");
  keep_squares_in("pool+host:?max=64MB");
  return 0;
}
/* [/open] */
