/* transfer_copy.c - makes transfers, and moves their bytes: piece by piece from the first byte on,
 * or all at once, also into the queue of a context. Of a list, the start copies the items that are
 * queued or that it must copy itself, in a first walk over the runs (core/list.h); servers copy the
 * others in a second one. */
#include "watch/transfer.h"
#include "base/number.h"
#include "core/context.h"
#include "core/copy.h"
#include "core/layout.h"
#include "core/threads.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- lists ---- */

static bool is_queued(umemListPair const *pair) {
  return umem_can(pair->src, umemOrdered) || umem_can(pair->dst, umemOrdered);
}

static bool is_list_staged(umemTransferList const *self) {
  bool staged = false;
  for (size_t k = 0; k < self->list.pairs.count; k++) {
    umemListPair pair = umemList_pair_at(&self->list, k);
    staged = staged || umem_is_staged(pair.src, pair.dst);
  }
  return staged;
}

/* One mark for each pair at most. */
static bool take_queues(umemTransferList *self) {
  umemList const *list = &self->list;
  size_t count = 0;
  for (size_t k = 0; k < list->pairs.count; k++) {
    umemListPair pair = umemList_pair_at(list, k);
    count += is_queued(&pair);
  }
  return !count || (self->queues = malloc(count * sizeof *self->queues)) != NULL;
}

static bool take_items(umemTransferList *self) {
  umemList *list = &self->list;
  size_t count = list->count;
  if (!count) return true;
  umemVirtual *src = list->items->src;
  self->items = malloc(count * sizeof *self->items);
  if (!self->items || !take_queues(self))
    return UMEM_FAIL(src, umemMemoryError, "no memory for a transfer");
  memcpy(self->items, list->items, count * sizeof *self->items);
  list->items = self->items;
  return true;
}

void umemTransferList_discard(umemTransferList *self) {
  umemList_release(&self->list);
  free(self->items);
  free(self->queues);
  free(self);
}

umemTransferList *umemTransferList_make(umemCopyItem const *items, size_t count,
                                        umemCopyManyOptions const *options) {
  umemTransferList *self = malloc(sizeof *self);
  umemList_clear(count, options->done, options->failed);
  if (!self) {
    umemVirtual *src = count && items ? umem_check(items->src) : NULL;
    return UMEM_FAIL_NULL(src, umemMemoryError, "no memory for a transfer");
  }
  self->items = NULL;
  self->queues = NULL;
  self->failed = options->failed;
  self->at_once = false;
  bool good = umemList_prepare(&self->list, items, count, options->done) &&
              umemList_sort(&self->list) && take_items(self);
  if (self->failed) *self->failed = self->list.failed;
  if (good) return self;
  umemTransferList_discard(self);
  return NULL;
}

/* ---- the handle ---- */

/* Copies the arrays of the layout behind the struct. */
static void keep_layout(umemTransfer *self, umemLayout const *layout) {
  size_t rank = (size_t)layout->rank;
  size_t *extents = (size_t *)(self + 1);
  ptrdiff_t *src = (ptrdiff_t *)(extents + rank), *dst = src + rank;
  self->at = (size_t *)(dst + rank);
  self->layout = (umemLayout){.size = sizeof self->layout,
                              .item_size = layout->item_size,
                              .rank = layout->rank,
                              .extents = extents,
                              .src_strides = src,
                              .dst_strides = dst};
  if (!rank) return;
  memcpy(extents, layout->extents, rank * sizeof *extents);
  umem_c_strides(layout->item_size, layout->rank, extents, src);
  memcpy(dst, src, rank * sizeof *dst);
  if (layout->src_strides) memcpy(src, layout->src_strides, rank * sizeof *src);
  if (layout->dst_strides) memcpy(dst, layout->dst_strides, rank * sizeof *dst);
}

/* The ledger has a record for each pair of contexts: it notes pieces of a list of several pairs by
 * themselves. */
static bool watch(umemTransfer *self, umemRoute *route, umemTransferList const *list) {
  bool notes =
      __atomic_load_n(&umem_sink, __ATOMIC_RELAXED) && !(list && list->list.pairs.count > 1);
  if (!self->src || (!route && !notes)) return true;
  umemTransferWatch *watch = self->watch = malloc(sizeof *watch);
  if (!watch) return false;
  watch->route = route;
  if (route)
    umem_trace_open_for(&watch->trace, &watch->step, self->src, self->dst, self->nbytes);
  else
    umem_trace_open(&watch->trace, &watch->step, self->src, self->dst, self->nbytes);
  umem_trace_let_go(&watch->step);
  return true;
}

/* Writes the route, once. */
static void end_watch(umemTransfer *self, bool failed) {
  umemTransferWatch *watch = self->watch;
  if (!watch || !watch->step.trace) return;
  umem_trace_close(&watch->step, failed);
  if (watch->route) umem_write_sized(watch->route, &watch->trace.route, sizeof watch->trace.route);
}

void umemTransfer_discard(umemTransfer *self) {
  end_watch(self, true);
  if (self->fd >= 0) close(self->fd);
  if (umemTransfer_is_here(self)) pthread_cond_destroy(&self->changed);
  if (self->list) umemTransferList_discard(self->list);
  free(self->watch);
  free(self);
}

umemTransfer *umemTransfer_make(umemTransferStart const *given, size_t nbytes,
                                umemTransferList *list) {
  umemLayout const *layout = given->layout;
  size_t arrays = (size_t)layout->rank * 2 * (sizeof(size_t) + sizeof(ptrdiff_t));
  umemTransfer *self = calloc(1, sizeof *self + arrays);
  if (self) {
    self->function = given->function;
    self->src = given->src;
    self->dst = given->dst;
    self->src_adr = given->src_adr;
    self->dst_adr = given->dst_adr;
    self->nbytes = nbytes;
    self->forks = umem_fork_count();
    self->state = umemTransferMoving;
    self->fd = -1;
    self->queues = list ? list->queues : &self->own;
    umemLock_init_timed(&self->changed);
    keep_layout(self, layout);
    if (watch(self, given->route, list)) {
      self->staged = list ? is_list_staged(list) : umem_is_staged(self->src, self->dst);
      self->list = list;
      if (list) self->src = self->dst = NULL;
      return self;
    }
    umemTransfer_discard(self);
  }
  return UMEM_FAIL_NULL(given->dst, umemMemoryError, "no memory for a transfer");
}

bool umemTransfer_names(umemTransfer const *self, umemVirtual const *ctx) {
  if (!self->list) return self->src == ctx || self->dst == ctx;
  umemList const *list = &self->list->list;
  for (size_t k = 0; k < list->pairs.count; k++) {
    umemListPair pair = umemList_pair_at(list, k);
    if (pair.src == ctx || pair.dst == ctx) return true;
  }
  return false;
}

bool umemTransfer_overlaps(umemTransfer const *self) {
  if (self->list) return false; /* of a list, items that overlap themselves are whole pieces */
  umemLayout run = self->layout;
  if (!run.rank) run.item_size = self->nbytes;
  return umem_copy_overlaps(self->src, self->src_adr, self->dst, self->dst_adr, &run);
}

/* ---- pieces ---- */

/* The dimension whose steps are copied next, at most `most` bytes of them: of those that begin at
 * the first item that is left, the outermost one with a step that fits. step: its bytes. */
static int dimension_of_piece(umemTransfer const *self, size_t most, size_t *step) {
  umemLayout const *layout = &self->layout;
  int k = layout->rank - 1;
  *step = layout->item_size;
  while (k > 0 && self->at[k] == 0 && *step * layout->extents[k] <= most)
    *step *= layout->extents[k--];
  return k;
}

static void count_steps(umemTransfer *self, int k, size_t steps) {
  size_t *at = self->at;
  at[k] += steps;
  for (; k > 0 && at[k] == self->layout.extents[k]; k--) {
    at[k] = 0;
    at[k - 1]++;
  }
}

/* Copies items that follow in C order, and returns their bytes. */
static size_t move_items(umemTransfer *self, size_t most) {
  size_t step, extents[UMEM_MAX_RANK];
  umemLayout piece = self->layout;
  int k = dimension_of_piece(self, most, &step);
  size_t rest = piece.extents[k] - self->at[k], steps = umem_greater(1, most / step);
  if (steps > rest) steps = rest;
  uintptr_t src_adr = self->src_adr, dst_adr = self->dst_adr;
  for (int d = 0; d <= k; d++) {
    src_adr += (uintptr_t)piece.src_strides[d] * self->at[d];
    dst_adr += (uintptr_t)piece.dst_strides[d] * self->at[d];
  }
  memcpy(extents, piece.extents + k, (size_t)(piece.rank - k) * sizeof *extents);
  extents[0] = steps;
  piece.extents = extents;
  piece.src_strides += k;
  piece.dst_strides += k;
  piece.rank -= k;
  umemRanges ranges;
  if (umem_check_strided(self->src, src_adr, self->dst, dst_adr, &piece, &ranges))
    umem_copy_layout(self->src, src_adr, self->dst, dst_adr, &piece, &ranges);
  count_steps(self, k, steps);
  return steps * step;
}

/* ---- runs ---- */

/* A long piece of a run, behind which the server goes on while no other transfer waits. */
typedef struct Served {
  umemMeter meter;
  umemTransfer *transfer;
  uint64_t before; /* bytes that were done */
} Served;

static bool goes_on(umemMeter *meter, size_t arrived) {
  Served *served = (Served *)meter;
  umemTransfer *self = served->transfer;
  __atomic_store_n(&self->done, served->before + arrived, __ATOMIC_RELAXED);
  return !umemTransfer_is_cancelled(self) && (arrived < meter->nbytes || !self->others_wait());
}

/* Returns how many bytes were copied, from the first one on. */
static size_t move_long_piece(umemTransfer *self, size_t nbytes) {
  umemMeter *outer = umem_thread.meter;
  Served served = {.meter = {.src = self->src,
                             .dst = self->dst,
                             .src_adr = self->src_adr + self->done,
                             .dst_adr = self->dst_adr + self->done,
                             .nbytes = nbytes,
                             .rest = umemTransfer_rest(self),
                             .caller = pthread_self(),
                             .report = goes_on},
                   .transfer = self,
                   .before = self->done};
  umemMeter *meter = &served.meter;
  pthread_mutex_init(&meter->lock, NULL);
  umem_thread.meter = meter;
  umem_copy_any_run(self->src, meter->src_adr, self->dst, meter->dst_adr, nbytes);
  umem_thread.meter = outer;
  pthread_mutex_destroy(&meter->lock);
  return meter->taken ? meter->arrived : nbytes;
}

static size_t move_run(umemTransfer *self, size_t most) {
  if (self->is_long && !self->whole) return move_long_piece(self, most);
  umem_copy_any_run(self->src, self->src_adr + self->done, self->dst, self->dst_adr + self->done,
                    most);
  return most;
}

/* ---- runs of a list ---- */

/* Goes to the next run that the start copies, or else to the next one for servers. */
static bool find_run(umemTransferList *self, bool of_start) {
  umemList *list = &self->list;
  for (; list->at < list->run_count; list->at++) {
    umemListPair pair = umemList_pair(list, list->at);
    bool here = self->at_once || is_queued(&pair) || !umem_can(pair.src, umemConcurrent) ||
                !umem_can(pair.dst, umemConcurrent);
    if (here == of_start) return true;
  }
  return false;
}

/* For servers: about `most` bytes. Returns how many. */
static size_t move_runs(umemTransfer *self, size_t most) {
  size_t moved = 0, nbytes = 1;
  while (nbytes && moved < most && find_run(self->list, false))
    moved += nbytes = umemList_copy_piece(&self->list->list, most - moved);
  return moved;
}

/* For the start. */
static void move_first_runs(umemTransfer *self) {
  umemList *list = &self->list->list;
  size_t nbytes = 1;
  while (nbytes && find_run(self->list, true)) {
    umemListPair pair = umemList_pair(list, list->at);
    nbytes = umemList_copy_piece(list, SIZE_MAX);
    if (is_queued(&pair))
      self->queued += nbytes;
    else
      self->done += nbytes;
  }
  if (self->list->failed) *self->list->failed = list->failed;
  list->at = list->marked = list->before = 0;
}

/* ---- any transfer ---- */

static inline void name_outer(char const *const *outer) { umem_thread.function = *outer; }

/* Until the end of the block, failures name the function that has started the transfer, also in a
 * thread that waits for it or cancels it. */
#define NAME_START(self)                                                                           \
  UMEM_ENTER_AS((self)->function, NULL);                                                           \
  __attribute__((cleanup(name_outer), unused)) char const *const outer_name =                      \
      umem_thread.function;                                                                        \
  umem_thread.function = (self)->function

/* Copies about `most` bytes, the whole rest if it is little more. */
static size_t move(umemTransfer *self, size_t most) {
  size_t rest = umemTransfer_rest(self);
  if (self->whole || rest / 2 < most) most = rest;
  if (self->list) return move_runs(self, most);
  if (self->layout.rank) return move_items(self, self->whole ? SIZE_MAX : most);
  return move_run(self, most);
}

typedef struct Patience {
  umemWaiter waiter;
  umemTransfer const *transfer;
} Patience;

static bool is_wanted(umemWaiter *self) {
  return !umemTransfer_is_cancelled(((Patience *)self)->transfer);
}

/* What the ledger notes belongs to the transfer. */
void umemTransfer_copy_piece(umemTransfer *self, size_t most) {
  NAME_START(self);
  Patience patience = {{is_wanted}, self};
  umemWaiter *waiter = umem_thread.waiter;
  struct umemOpenStep *outer = umem_thread.step;
  unsigned sharers = umem_thread.sharers;
  uint64_t done = self->done;
  umemAttempt attempt;
  if (self->watch) umem_thread.step = &self->watch->step;
  if (self->staged) umem_thread.sharers = self->sharers;
  umemAttempt_begin(&attempt);
  umem_thread.waiter = &patience.waiter;
  size_t nbytes = move(self, most);
  umem_thread.waiter = waiter;
  umemAttempt_end(&attempt);
  umem_thread.step = outer;
  umem_thread.sharers = sharers;
  if (umemAttempt_failed(&attempt)) self->failure = attempt;
  if (self->list || !umemAttempt_failed(&attempt))
    __atomic_store_n(&self->done, done + nbytes, __ATOMIC_RELAXED);
}

bool umemTransfer_copy_all(umemTransfer *self) {
  uint64_t before = umem_thread.failures;
  struct umemOpenStep *outer = umem_thread.step;
  if (self->watch) umem_thread.step = &self->watch->step;
  self->whole = true;
  if (self->list)
    move_first_runs(self);
  else if (self->nbytes)
    move(self, self->nbytes);
  umem_thread.step = outer;
  return umem_thread.failures == before;
}

/* ---- copies that are queued ---- */

/* Sets a mark in the queue of a pair, one for each queue. */
static bool mark_queue(umemTransfer *self, umemVirtual *src, umemVirtual *dst) {
  umemVirtual *queue = umem_can(dst, umemOrdered) ? dst : src;
  umemVirtual *layer = UMEM_LAYER_WITH(queue, mark);
  for (size_t k = 0; layer && k < self->queue_count; k++)
    if (self->queues[k].layer == layer) return true;
  umemTransferQueue *next = &self->queues[self->queue_count];
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  *next = (umemTransferQueue){.layer = layer};
  bool marked = layer && layer->vptr->mark(layer, &next->mark);
  umemAttempt_end(&attempt);
  self->queue_count += marked;
  return marked || umem_finish(queue) == umemOK;
}

static void release_mark(umemTransfer *self) {
  UMEM_ENTER_AS(self->function, NULL);
  umemTransferQueue *queue = &self->queues[self->reached++];
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  queue->mark.release(queue->layer, &queue->mark);
  umemAttempt_end(&forgotten);
}

static void count_queued(umemTransfer *self) {
  if (umemTransfer_has_failed(self)) return;
  __atomic_store_n(&self->done, self->done + self->queued, __ATOMIC_RELAXED);
  self->queued = 0;
}

bool umemTransfer_mark(umemTransfer *self) {
  if (!self->list) return mark_queue(self, self->src, self->dst);
  umemList const *list = &self->list->list;
  bool good = true;
  for (size_t k = 0; good && k < list->pairs.count; k++) {
    umemListPair pair = umemList_pair_at(list, k);
    if (is_queued(&pair)) good = mark_queue(self, pair.src, pair.dst);
  }
  while (!good && self->reached < self->queue_count) release_mark(self);
  if (!self->queue_count) count_queued(self); /* the call has waited for all of it */
  return good;
}

static bool query_mark(umemTransfer *self, bool waits) {
  NAME_START(self);
  umemTransferQueue *queue = &self->queues[self->reached];
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool reached = queue->mark.reached(queue->layer, &queue->mark, waits);
  umemAttempt_end(&attempt);
  bool failed = umemAttempt_failed(&attempt);
  if (failed && !umemTransfer_has_failed(self)) self->failure = attempt;
  return reached || waits || failed;
}

void umemTransfer_release_marks(umemTransfer *self) {
  while (self->reached < self->queue_count) release_mark(self);
  count_queued(self);
}

bool umemTransfer_is_reached(umemTransfer *self, bool waits) {
  while (self->reached < self->queue_count) {
    if (!query_mark(self, waits)) return false;
    release_mark(self);
  }
  count_queued(self);
  return true;
}

/* ---- the end ---- */

static void note_cancelled(umemTransfer *self) {
  NAME_START(self);
  umemVirtual *dst = self->list ? umemList_target(&self->list->list) : self->dst;
  umemAttempt_begin(&self->failure);
  umemVirtual_fail(dst, umemCancelledError, "cancelled after %ju of %zu bytes",
                   (uintmax_t)self->done, self->nbytes);
  umemAttempt_end(&self->failure);
}

void umemTransfer_close(umemTransfer *self) {
  if (!umemTransfer_has_failed(self) && self->done < self->nbytes) note_cancelled(self);
  if (self->list && self->list->failed) *self->list->failed = self->list->list.failed;
  end_watch(self, umemTransfer_has_failed(self));
}
