/* pool_core.c - references to the core of a pool, and the memory of its records. See pool.h. */
#include "pool/pool_core.h"

#include <stdlib.h>
#include <string.h>

/* ---- references ---- */

static umemPoolCore *released; /* nobody refers to them; under the global lock */

/* The last reference may be given up while locks are held, under which no lock may be destroyed. */
void umemPoolCore_release(umemPoolCore *core) {
  if (__atomic_sub_fetch(&core->references, 1, __ATOMIC_ACQ_REL)) return;
  umemLock_acquire_global();
  core->next_released = released;
  released = core;
  umemLock_release_global();
}

static void free_core(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists, *next; list; list = next) {
    next = list->next;
    free(list);
  }
  umemPageMap_fini(&core->map);
  umemGrowth_fini(&core->growing);
  umemPoolCore_renew_condition(core);
  pthread_cond_destroy(&core->no_users);
  umemLock_destroy(&core->lock);
  free(core);
}

void umemPoolCore_free_released(void) {
  umemLock_acquire_global();
  umemPoolCore *core = released;
  released = NULL;
  umemLock_release_global();
  while (core) {
    umemPoolCore *next = core->next_released;
    free_core(core);
    core = next;
  }
}

void umemPoolCore_renew_condition(umemPoolCore *core) {
  unsigned lineage = umem_fork_count();
  if (core->condition_lineage == lineage) return;
  core->condition_lineage = lineage;
  pthread_cond_init(&core->no_users, NULL);
}

/* ---- slabs ---- */

enum { line = 64 };

struct umemPoolSlab {
  struct umemPoolSlab *next;
};

void *umemPoolCore_new_slab(umemPoolCore *core, size_t size) {
  umemPoolSlab *slab = aligned_alloc(line, line + size);
  if (!slab) return NULL;
  memset(slab, 0, line + size);
  slab->next = core->slabs;
  core->slabs = slab;
  return (char *)slab + line;
}

void umemPoolCore_free_slabs(umemPoolCore *core) {
  while (core->slabs) {
    umemPoolSlab *slab = core->slabs;
    core->slabs = slab->next;
    free(slab);
  }
}
