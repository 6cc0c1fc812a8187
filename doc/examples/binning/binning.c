/* Small blocks from a fixed, medium blocks from a pool, large blocks directly from RAM. */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  /* [binning] */
  umemFixed small;
  umemPool middling;
  umemFixed_ctor(&small, &ram, 64, NULL);
  umemPool_ctor(&middling, &ram, NULL);

  umemBinning ctx;
  umemBin const bins[] = {{64, &small}, {65536, &middling}};
  umemBinning_ctor(&ctx, &ram, bins, 2); /* larger blocks come from ram */

  uintptr_t one = umem_alloc(&ctx, 40);       /* from small */
  uintptr_t two = umem_alloc(&ctx, 3000);     /* from middling */
  uintptr_t three = umem_alloc(&ctx, 500000); /* from ram */
  /* [/binning] */

  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  umemFixed_stats(&small, &stats);
  printf("%d small block\n", (int)stats.blocks);

  /* [move] */
  one = umem_realloc(&ctx, one, 40, 4000); /* now from middling */
  /* [/move] */
  umemFixed_stats(&small, &stats);
  printf("%d small blocks\n", (int)stats.blocks);

  /* [later] */
  umemFixed pages;
  umemFixed_ctor(&pages, &ram, 4096, NULL);
  umemBinning_add(&ctx, &(umemBin){4096, &pages}); /* from now on for 65 to 4096 bytes */
  uintptr_t four = umem_alloc(&ctx, 4000);
  /* [/later] */
  umemFixed_stats(&pages, &stats);
  printf("%d page\n", (int)stats.blocks);

  umem_free(&ctx, four);
  umem_free(&ctx, three); /* each block goes back to its own bin */
  umem_free(&ctx, two);
  umem_free(&ctx, one);
  umem_dtor(&ctx);
  umem_dtor(&pages);
  umem_dtor(&middling);
  umem_dtor(&small);
  umem_dtor(&ram);
  return 0;
}
