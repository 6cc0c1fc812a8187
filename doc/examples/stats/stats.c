/* How much memory does this phase of the program need? */
#include <inttypes.h>
#include <stdio.h>
#include <umem.h>

/* Needs some memory while it runs. */
static void work(void *ctx) {
  uintptr_t one = umem_alloc(ctx, 3000), other = umem_alloc(ctx, 2000);
  umem_free(ctx, one);
  umem_free(ctx, other);
}

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  /* [stats] */
  umemStats counted;
  umemStats_ctor(&counted, &ram); /* ram is borrowed */
  uintptr_t kept = umem_alloc(&counted, 1000);

  umemStatsFigures phase = UMEM_STATS_FIGURES_INIT;
  umemStats_push(&counted);
  work(&counted);
  umemStats_pop(&counted, &phase);
  printf("the phase: %" PRId64 " bytes at most, %" PRId64 " allocations\n", phase.peak_bytes,
         phase.total_count);

  umemStatsFigures life = UMEM_STATS_FIGURES_INIT;
  umemStats_get(&counted, &life);
  printf("in all: %" PRId64 " bytes at most, %" PRId64 " now\n", life.peak_bytes,
         life.current_bytes);
  /* [/stats] */

  umem_free(&counted, kept);
  umem_dtor(&counted);
  umem_dtor(&ram);
  return 0;
}
