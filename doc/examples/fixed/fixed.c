/* Nodes of a tree. All nodes have the same size. */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);

  /* [fixed] */
  umemFixed nodes;
  umemFixed_ctor(&nodes, &ram, 48, NULL); /* blocks of 48 bytes; ram is borrowed */

  uintptr_t root = umem_alloc(&nodes, 48);
  uintptr_t leaf = umem_alloc(&nodes, 20);  /* also a whole block */
  uintptr_t more = umem_alloc(&nodes, 100); /* null: too large */
  printf("%s\n", umem_get_message(&nodes));
  /* [/fixed] */

  /* [stats] */
  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  umemFixed_stats(&nodes, &stats);
  printf("%d blocks in %d chunk\n", (int)stats.blocks, (int)stats.chunks);
  /* [/stats] */

  umem_free(&nodes, more); /* null is ignored */
  umem_free(&nodes, leaf);
  umem_free(&nodes, root);

  /* [refused] */
  umem_free(&nodes, root); /* wrong: the second free */
  printf("%s\n", umem_get_status_name(umem_get_status(&nodes)));
  /* [/refused] */

  umem_trim(&nodes, 0); /* gives the chunk back */
  umem_dtor(&nodes);
  umem_dtor(&ram);
  return 0;
}
