/* A list of samples whose nodes are in a file. The file grows twice instead of a thousand times. */
#include <inttypes.h>
#include <stdio.h>
#include <umem.h>

enum { count = 1000 };

int main(void) {
  umemFile file;
  umemFile_ctor(&file, NULL, "w+"); /* a scratch file; a GPU works as well */

  /* [pool] */
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.initial = 64 << 10;
  options.maximum = 1 << 20;
  umemPool pool;
  umemPool_ctor(&pool, &file, &options);

  uintptr_t nodes[count];
  for (int i = 0; i < count; i++) nodes[i] = umem_alloc(&pool, 100);
  /* [/pool] */

  /* [stats] */
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_stats(&pool, &stats);
  printf("%" PRIu64 " blocks, %" PRIu64 " bytes, in %" PRIu64 " chunks\n", stats.blocks, stats.used,
         stats.chunks);
  /* [/stats] */

  /* [refused] */
  umem_free(&pool, nodes[7]);
  umem_free(&pool, nodes[7]); /* wrong: it may be part of another block by now */
  if (!umem_is_ok(&pool)) printf("refused: %s\n", umem_get_status_name(umem_get_status(&pool)));
  umem_clear_status(&pool);

  umem_alloc(&pool, 2 << 20);
  printf("%s\n", umem_get_message(&pool));
  umem_clear_status(&pool);
  /* [/refused] */

  /* [trim] */
  for (int i = 0; i < count; i++)
    if (i != 7) umem_free(&pool, nodes[i]);
  umem_trim(&pool, 0);
  umemPool_stats(&pool, &stats);
  printf("%" PRIu64 " blocks, %" PRIu64 " bytes reserved\n", stats.blocks, stats.reserved);
  /* [/trim] */

  int failed = !umem_is_ok(&pool);
  umem_dtor(&pool); /* before the context below */
  umem_dtor(&file);
  return failed;
}
