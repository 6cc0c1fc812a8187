/* pool_core.c - references to the core of a pool, the memory of its records, ranges of free lists,
 * and queues that wait for each other.
 *
 * Other lists use a queue without asking its owner. While they do they count as its users, and the
 * view of the queue ends only when there are none. */
#include "pool/pool_core.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

/* ---- references ---- */

static umemPoolCore *released; /* those without references; under the global lock */

/* The last reference may be given up while locks are held, under which no lock may be destroyed. */
void umemPoolCore_release(umemPoolCore *core) {
  if (__atomic_sub_fetch(&core->references, 1, __ATOMIC_ACQ_REL)) return;
  umemLock_acquire_global();
  core->next_released = released;
  released = core;
  umemLock_release_global();
}

/* In a child of fork no thread waits for the condition, whatever it records: initialises it again
 * there, before it is used or destroyed. */
static void renew_condition(umemPoolCore *core) {
  unsigned lineage = umem_fork_count();
  if (core->condition_lineage == lineage) return;
  core->condition_lineage = lineage;
  pthread_cond_init(&core->no_users, NULL);
}

static void free_core(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists, *next; list; list = next) {
    next = list->next;
    free(list);
  }
  umemPageMap_fini(&core->map);
  umemGrowth_fini(&core->growing);
  renew_condition(core);
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

/* ---- memory of the upstream ---- */

uint64_t umemPoolCore_allowance(umemPoolCore const *core) {
  if (!core->maximum) return UINT64_MAX;
  return core->maximum - core->reserved - umemGrowth_amount(&core->growing);
}

bool umemPoolCore_allows(umemPoolCore const *core, size_t size, umemPoolFailure *failure) {
  if (size <= umemPoolCore_allowance(core)) return true;
  failure->reason = umemPoolAtMaximum;
  failure->reserved = core->reserved;
  return false;
}

bool umemPoolCore_keeps_separate(umemPoolCore const *core, uint64_t units) {
  return umemPoolCore_separates(core, units) && !core->ranges_mixed &&
         !umemPoolQueue_is_blocked(core->own);
}

/* ---- ranges ----
 *
 * Addresses of any upstream, counted in units, stay below the bound of the range allocator. */

bool umemPoolRange_take(umemPoolFreeList *list, uint64_t units, size_t alignment, uintptr_t *adr) {
  umemPoolCore *core = list->core;
  uint64_t const step = umemPoolStep_of(alignment);
  bool separate = umemPoolCore_separates(core, units);
  uint64_t start = separate ? umemRange_alloc_separate(list->range, units, step) : UMEM_RANGE_NONE;
  if (start == UMEM_RANGE_NONE && !(separate && umemPoolCore_keeps_separate(core, units))) {
    start = umemRange_alloc(list->range, units, step);
    if (separate && core->ranges_mixed) core->ranges_mixed--;
  }
  *adr = (uintptr_t)(start << umemPoolUnitShift);
  return start != UMEM_RANGE_NONE;
}

umemPoolFreeList *umemPoolRange_home(umemPoolCore *core, uintptr_t adr, uint64_t *units) {
  uint64_t start = adr >> umemPoolUnitShift;
  umemRangeItem item;
  if (adr & (umemPoolUnit - 1)) return NULL;
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (umemRange_find(list->range, start, &item) && item.live && item.start == start) {
      *units = item.extent;
      return item.held ? NULL : list;
    }
  return NULL;
}

/* ---- queues ---- */

bool umemPoolQueue_is_blocked(umemPoolFreeList const *list) {
  return list->unusable || umem_is_captured(list->innermost);
}

bool umemPoolQueue_is_closed(umemPoolFreeList const *list) {
  return list->mark.is_needed ? list->unusable : umemPoolQueue_is_blocked(list);
}

uint64_t umemPoolQueue_closed(umemPoolCore const *core) {
  uint64_t bits = 0;
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (umemPoolQueue_is_closed(list)) bits |= umemPoolQueue_bit(list);
  return bits;
}

bool umemPoolQueue_must_follow_upstream(umemPoolFreeList const *list) {
  umemPoolFreeList const *own = list->core->own;
  return umemPoolQueue_is_ordered(own) && list->innermost != own->innermost;
}

/* Whether work with what was freed to the list may go on after the free: its queue is ordered, or a
 * GPU may use the memory by itself, as for the last bytes of a short copy. */
static bool leaves_work(umemPoolFreeList const *list) {
  return list->queue->capabilities & (umemOrdered | umemDeviceShared);
}

/* Memory that a GPU is not done with comes only from an adaptor that has kept it. */
bool umemPoolQueue_should_follow_upstream(umemPoolFreeList const *list) {
  umemPoolFreeList const *own = list->core->own;
  return own->queue != own->innermost && list->innermost != own->innermost && leaves_work(own) &&
         umemPoolQueue_is_ordered(list) && !umemPoolQueue_is_blocked(list);
}

/* ---- users ---- */

/* Users of before a fork have stayed with the parent. */
static void add_user(umemPoolFreeList *list) {
  unsigned lineage = umem_fork_count();
  if (list->lineage != lineage) list->users = 0;
  list->lineage = lineage;
  list->users++;
}

static void remove_user(umemPoolFreeList *list) {
  if (--list->users) return;
  renew_condition(list->core);
  pthread_cond_broadcast(&list->core->no_users);
}

bool umemPoolQueue_has_users(umemPoolFreeList const *list) {
  return list->users && list->lineage == umem_fork_count();
}

void umemPoolQueue_await_users(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  renew_condition(core);
  while (umemPoolQueue_has_users(list)) umemLock_wait(&core->lock, &core->no_users);
}

/* ---- waiting ---- */

/* Blocks of a list that is not ordered are used at once. */
static bool order_after(umemPoolFreeList *list, umemPoolFreeList *other) {
  uint64_t before = umem_thread.failures;
  if (other->mark.is_needed) return umemPoolMark_wait(other, list->innermost);
  if (umemPoolQueue_is_ordered(list))
    umem_wait_uncaptured(list->queue, other->queue);
  else
    umem_synchronize_uncaptured(other->queue);
  return umem_thread.failures == before;
}

bool umemPoolQueue_follow(umemPoolFreeList *list, umemPoolFreeList *other) {
  umemPoolCore *core = list->core;
  if (list->innermost == other->innermost || !leaves_work(other)) return true;
  if (other->mark.is_needed && !other->mark.is_set) return true;
  add_user(other);
  umemLock_release(&core->lock);
  bool follows = order_after(list, other);
  umemLock_acquire(&core->lock);
  remove_user(other);
  return follows;
}

bool umemPoolQueue_finish(umemPoolFreeList *list, umemPoolFreeList *home) {
  umemPoolCore *core = list->core;
  bool by_mark = !umemPoolMark_is_needless(list, home);
  if (!leaves_work(home) || (by_mark && !home->mark.is_set)) return true;
  if (!by_mark && umemPoolQueue_is_blocked(home))
    return UMEM_FAIL(NULL, umemNotSupportedError,
                     "the stream is being captured into a graph: it cannot be waited for");
  add_user(home);
  umemLock_release(&core->lock);
  bool finished =
      by_mark ? umemPoolMark_wait(home, NULL) : umem_synchronize_uncaptured(home->queue) == umemOK;
  umemLock_acquire(&core->lock);
  remove_user(home);
  return finished;
}

/* A list that gets another view meanwhile has a newer serial. While it has a user it does not
 * end. */
bool umemPoolQueue_follow_all(umemPoolFreeList *list, uint64_t bits) {
  umemPoolCore *core = list->core;
  uint64_t newest = 0;
  bool follows = true;
  for (umemPoolFreeList *other = core->lists; other; other = other->next) {
    if (other->serial > newest) newest = other->serial;
    if (other->in_use && umemPoolQueue_bit(other) & bits) add_user(other);
  }
  for (umemPoolFreeList *other = core->lists; other; other = other->next)
    if (other->in_use && umemPoolQueue_bit(other) & bits && other->serial <= newest) {
      follows = follows && umemPoolQueue_follow(list, other);
      remove_user(other);
    }
  return follows;
}
