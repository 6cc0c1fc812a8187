/* transfer_copy.c - makes transfers, and moves their bytes: piece by piece from the first byte on,
 * or all at once, also into the queue of a context. */
#include "watch/transfer.h"
#include "base/number.h"
#include "core/context.h"
#include "core/copy.h"
#include "core/layout.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool watch(umemTransfer *self, umemRoute *route) {
  if (!route && !__atomic_load_n(&umem_sink, __ATOMIC_RELAXED)) return true;
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

void umemTransfer_init_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

void umemTransfer_discard(umemTransfer *self) {
  end_watch(self, true);
  if (self->fd >= 0) close(self->fd);
  if (umemTransfer_is_here(self)) pthread_cond_destroy(&self->changed);
  free(self->watch);
  free(self);
}

umemTransfer *umemTransfer_make(umemTransferStart const *given, size_t nbytes) {
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
    umemTransfer_init_condition(&self->changed);
    keep_layout(self, layout);
    if (watch(self, given->options.route)) return self;
    umemTransfer_discard(self);
  }
  return UMEM_FAIL_NULL(given->dst, umemMemoryError, "no memory for a transfer");
}

bool umemTransfer_overlaps(umemTransfer const *self) {
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

/* Copies about `most` bytes, the whole rest if it is little more. */
static size_t move(umemTransfer *self, size_t most) {
  size_t rest = self->nbytes - self->done;
  if (self->whole || rest / 2 < most) most = rest;
  if (self->layout.rank) return move_items(self, self->whole ? SIZE_MAX : most);
  umem_copy_any_run(self->src, self->src_adr + self->done, self->dst, self->dst_adr + self->done,
                    most);
  return most;
}

/* What the ledger notes belongs to the transfer. */
void umemTransfer_copy_piece(umemTransfer *self, size_t most) {
  UMEM_ENTER_AS(self->function, NULL);
  struct umemOpenStep *outer = umem_thread.step;
  unsigned sharers = umem_thread.sharers;
  umemAttempt attempt;
  if (self->watch) umem_thread.step = &self->watch->step;
  if (umem_is_staged(self->src, self->dst)) umem_thread.sharers = self->sharers;
  umemAttempt_begin(&attempt);
  size_t nbytes = move(self, most);
  umemAttempt_end(&attempt);
  umem_thread.step = outer;
  umem_thread.sharers = sharers;
  if (umemAttempt_failed(&attempt))
    self->failure = attempt;
  else
    __atomic_store_n(&self->done, self->done + nbytes, __ATOMIC_RELAXED);
}

bool umemTransfer_copy_all(umemTransfer *self) {
  uint64_t before = umem_thread.failures;
  struct umemOpenStep *outer = umem_thread.step;
  if (self->watch) umem_thread.step = &self->watch->step;
  self->whole = true;
  if (self->nbytes) move(self, self->nbytes);
  umem_thread.step = outer;
  return umem_thread.failures == before;
}

/* ---- copies that are queued ---- */

bool umemTransfer_mark(umemTransfer *self) {
  umemVirtual *queue = umem_can(self->dst, umemOrdered) ? self->dst : self->src;
  umemVirtual *layer = UMEM_LAYER_WITH(queue, mark);
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  self->mark = (umemMark){.reached = NULL};
  bool marked = layer && layer->vptr->mark(layer, &self->mark);
  umemAttempt_end(&attempt);
  if (marked) self->marked = layer;
  return marked || umem_finish(queue) == umemOK;
}

static bool query_mark(umemTransfer *self, bool waits) {
  UMEM_ENTER_AS(self->function, NULL);
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool reached = self->mark.reached(self->marked, &self->mark, waits);
  umemAttempt_end(&attempt);
  if (umemAttempt_failed(&attempt)) self->failure = attempt;
  return reached || waits || umemTransfer_has_failed(self);
}

void umemTransfer_release_mark(umemTransfer *self) {
  UMEM_ENTER_AS(self->function, NULL);
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  self->mark.release(self->marked, &self->mark);
  umemAttempt_end(&forgotten);
  if (!umemTransfer_has_failed(self)) __atomic_store_n(&self->done, self->nbytes, __ATOMIC_RELAXED);
}

bool umemTransfer_is_reached(umemTransfer *self, bool waits) {
  if (!query_mark(self, waits)) return false;
  umemTransfer_release_mark(self);
  return true;
}

/* ---- the end ---- */

static void note_cancelled(umemTransfer *self) {
  UMEM_ENTER_AS(self->function, NULL);
  umemAttempt_begin(&self->failure);
  umemVirtual_fail(self->dst, umemCancelledError, "cancelled after %ju of %zu bytes",
                   (uintmax_t)self->done, self->nbytes);
  umemAttempt_end(&self->failure);
}

void umemTransfer_close(umemTransfer *self) {
  if (!umemTransfer_has_failed(self) && self->done < self->nbytes) note_cancelled(self);
  end_watch(self, umemTransfer_has_failed(self));
}
