/* pool_mark.c - marks: what other queues may take of a free list without a call on its queue.
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
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"
#include "pool/pool_core.h"

#include <string.h>

/* ---- marks ---- */

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
