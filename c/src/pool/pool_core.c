/* pool_core.c - references to the core of a pool, the memory of its records, ranges of free lists,
 * queues that wait for each other, and marks.
 *
 * Other lists use a queue without asking its owner. While they do they count as its users, and the
 * view of the queue ends only when there are none. */
#include "pool/pool_core.h"

#include <stdlib.h>
#include <string.h>

/* ---- references ---- */

static umemPoolCore *released; /* those without references; under the global lock */

/* The last reference may be given up while locks are held, under which no lock may be destroyed. */
void umemPoolCore_release(umemPoolCore *core) {
  if (__atomic_sub_fetch(&core->references, 1, __ATOMIC_ACQ_REL)) return;
  UMEM_LOCKED(&umem_global_lock);
  core->next_released = released;
  released = core;
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
  umemLock_acquire(&umem_global_lock);
  umemPoolCore *core = released;
  released = NULL;
  umemLock_release(&umem_global_lock);
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

/* ==== marks: what other queues may take of a free list without a call on its queue ====
 *
 * CUDA allows no call on a stream while another thread begins or ends a capture of it. So only the
 * calls of a view use its queue. They set the mark of its list, which is an event of CUDA. Other
 * lists may take what was free then, after their queues were made to wait for the mark.
 *
 * What became free later is known in two ways. For ranges, which join their neighbours, the list
 * notes the addresses, and if these are many, some of their surroundings. Spans and blocks on quick
 * lists have the time of the last free; the clock is the number of marks that the lists of the pool
 * have set.
 *
 * To set a mark takes as long as many frees. A list sets it for many frees at once: in calls that
 * take the lock, when enough has become free, or when another list has looked for memory in vain
 * (umemPoolTransfer_mark). A call of umem_free sets it only in the thread that allocates through
 * the view: any thread may free a block through the view while that thread captures.
 *
 * The pool's own list needs no marks. If its queue is ordered, all calls use it. */

/* A share of the pool so large is marked although no other list wants it. */
enum { enough_share = 16 };
static uint64_t const enough_least = 1 << 20;

/* What other lists wanted is over: they look for memory again if it cannot be marked. */
static void set_enough(umemPoolFreeList *list) {
  uint64_t share = list->core->reserved / enough_share;
  list->mark.wanted = umemPoolWantNothing;
  list->mark.enough = share > enough_least ? share : enough_least;
}

void umemPoolMark_begin(umemPoolFreeList *list) {
  umemPoolFreeList const *own = list->core->own;
  bool is_needed = own && own->innermost != list->innermost && UMEM_SLOT(list->innermost, mark) &&
                   umemPoolQueue_is_ordered(list);
  list->mark = (umemPoolMark){.is_needed = is_needed, .time = 1, .enough = UINT64_MAX};
  if (is_needed) set_enough(list);
}

void umemPoolMark_end(umemPoolFreeList *list) {
  umemPoolMark *mark = &list->mark;
  if (mark->is_set) mark->mark.release(list->innermost, &mark->mark);
  list->mark = (umemPoolMark){.time = 1, .enough = UINT64_MAX};
}

bool umemPoolMark_set(umemPoolFreeList *list) {
  umemPoolMark *mark = &list->mark;
  if (!mark->is_needed) return true;
  set_enough(list);
  if (!mark->is_old) return true;
  if (!list->innermost->vptr->mark(list->innermost, &mark->mark)) return false;
  mark->is_set = true;
  mark->time = ++list->core->mark_time;
  mark->is_old = false;
  mark->nbytes = mark->count = 0;
  return true;
}

bool umemPoolMark_wait(umemPoolFreeList *other, umemVirtual *later) {
  umemPoolMark *mark = &other->mark;
  uint64_t before = umem_thread.failures;
  if (later && mark->mark.wait) return mark->mark.wait(other->innermost, &mark->mark, later);
  mark->mark.reached(other->innermost, &mark->mark, true);
  return umem_thread.failures == before;
}

void umemPoolMark_want(umemPoolFreeList *list, umemPoolWanted wanted) {
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next)
    if (!umemPoolMark_is_needless(list, other) && other->mark.wanted < wanted &&
        (other->mark.is_old || wanted > umemPoolWantFree)) {
      other->mark.wanted = wanted;
      other->mark.enough = 0;
    }
}

/* ---- threads ---- */

_Thread_local uint64_t umem_pool_thread;

static uint64_t number_of_thread(void) {
  static uint64_t last;
  if (!umem_pool_thread) umem_pool_thread = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return umem_pool_thread;
}

void umemPoolMark_claim(umemPoolFreeList *list) { list->mark.thread = number_of_thread(); }

/* If no thread has allocated yet, it is the first that frees, unless it allocates through another
 * view. */
bool umemPoolMark_is_mine(umemPoolFreeList *list) {
  uint64_t mine = number_of_thread();
  umemPoolMark *mark = &list->mark;
  if (mark->thread) return mark->thread == mine;
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next)
    if (other->mark.thread == mine) return false;
  mark->thread = mine;
  return true;
}

/* ---- what became free since ---- */

static void remove_range(umemPoolMark *mark, unsigned at) {
  mark->count--;
  memmove(&mark->ranges[at], &mark->ranges[at + 1], (mark->count - at) * sizeof *mark->ranges);
}

/* The first range that ends at or after this unit. */
static unsigned first_from(umemPoolMark const *mark, uint64_t unit) {
  unsigned low = 0, high = mark->count;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (mark->ranges[middle].end < unit)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Adds a range before number at. Without room it becomes a part of the nearer neighbour: what is
 * between them counts as not marked, too. Returns its number. */
static unsigned add_range(umemPoolMark *mark, unsigned at, uint64_t start, uint64_t end) {
  if (mark->count == umemPoolMarkRanges)
    return at == mark->count ||
                   (at && start - mark->ranges[at - 1].end < mark->ranges[at].start - end)
               ? at - 1
               : at;
  memmove(&mark->ranges[at + 1], &mark->ranges[at], (mark->count - at) * sizeof *mark->ranges);
  mark->ranges[at].start = start;
  mark->ranges[at].end = end;
  mark->count++;
  return at;
}

void umemPoolMark_note(umemPoolFreeList *list, uint64_t start, uint64_t units) {
  umemPoolMark *mark = &list->mark;
  uint64_t end = start + units;
  unsigned at = first_from(mark, start);
  mark->is_old = true;
  if (at < mark->count && mark->ranges[at].start <= start && end <= mark->ranges[at].end) return;
  mark->nbytes += units << umemPoolUnitShift;
  if (at == mark->count || mark->ranges[at].start > end) at = add_range(mark, at, start, end);
  if (start < mark->ranges[at].start) mark->ranges[at].start = start;
  if (end > mark->ranges[at].end) mark->ranges[at].end = end;
  while (at + 1 < mark->count && mark->ranges[at + 1].start <= mark->ranges[at].end) {
    if (mark->ranges[at + 1].end > mark->ranges[at].end)
      mark->ranges[at].end = mark->ranges[at + 1].end;
    remove_range(mark, at + 1);
  }
}

/* ---- what is marked ---- */

/* The next part of what is left of the range found last. False when nothing is left. */
static bool next_part(umemPoolMarked *walk, umemRangeItem *item) {
  umemPoolMark const *mark = &walk->from->mark;
  unsigned i = first_from(mark, walk->at + 1);
  if (walk->at >= walk->end) return false;
  bool inside = i < mark->count && mark->ranges[i].start < walk->end;
  uint64_t start = walk->at, end = inside ? mark->ranges[i].start : walk->end;
  walk->at = inside ? mark->ranges[i].end : walk->end;
  *item = (umemRangeItem){.start = start, .extent = end > start ? end - start : 0};
  return true;
}

bool umemPoolMarked_next(umemPoolMarked *walk, uint64_t least, umemRangeItem *item) {
  umemRange const *range = walk->from->range;
  if (umemPoolMark_is_needless(walk->list, walk->from) || !walk->from->mark.count)
    return umemRange_next_free(range, least, &walk->cursor, item);
  for (;;) {
    while (next_part(walk, item))
      if (item->extent && item->extent >= least) return true;
    if (!umemRange_next_free(range, least, &walk->cursor, item)) return false;
    walk->at = item->start;
    walk->end = item->start + item->extent;
  }
}

/* A pool may have very many free ranges. */
enum { most_considered = 1000 };

umemRangeItem umemPoolMarked_largest(umemPoolFreeList const *list, umemPoolFreeList const *from,
                                     uint64_t least) {
  umemRangeItem item, best = {.extent = 0};
  umemPoolMarked walk = {.list = list, .from = from};
  for (int i = 0; i < most_considered && umemPoolMarked_next(&walk, least, &item); i++)
    if (item.extent > best.extent) best = item;
  return best;
}
