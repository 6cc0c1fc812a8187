/* transfer.c - the functions of umem/transfer.h.
 *
 * A start checks the copy, and does it at once if it is short or no thread may help. A copy of an
 * ordered context is queued there, and a mark in the queue says when it is done. Threads do every
 * other one (transfer_serve.c). */
#include "watch/transfer.h"
#include "core/context.h"
#include "core/copy.h"
#include "core/layout.h"

#include <string.h>

static size_t const at_once_below = 32 << 10; /* to wake a thread takes as long */

/* ---- starting ---- */

static bool check_options(umemVirtual *ctx, bool has_progress, umemRoute *route) {
  if (has_progress)
    return UMEM_FAIL(ctx, umemValueError,
                     "options.progress is set: umemTransfer_progress says how far a transfer is");
  return umem_route_clear(ctx, route);
}

static bool read_options(umemTransferStart *given, umemCopyOptions const *options) {
  umemCopyOptions full = UMEM_COPY_OPTIONS_INIT;
  if (!umem_read_sized(given->src, &full, sizeof full, options, "umemCopyOptions")) return false;
  given->route = full.route;
  return check_options(given->src, full.progress, full.route);
}

static bool is_captured(umemVirtual *src, umemVirtual *dst) {
  umemVirtual *captured = umem_is_captured(src) ? src : umem_is_captured(dst) ? dst : NULL;
  return captured && !UMEM_FAIL(captured, umemNotSupportedError,
                                "the stream is being captured into a graph: no call could say "
                                "when the transfer has ended");
}

/* No other thread knows the transfer. */
static void end_here(umemTransfer *self) {
  self->done = self->nbytes;
  umemTransfer_close(self);
  self->state = umemTransferEnded;
}

/* Queues the copy, or does it. */
static bool queue_copy(umemTransfer *self) {
  self->first_number = umemTransfer_count_queued();
  if (!umemTransfer_copy_all(self) || !umemTransfer_mark(self)) return false;
  self->queued = self->nbytes;
  if (self->queue_count)
    umemTransfer_list_queued(self);
  else
    end_here(self);
  return true;
}

static bool is_brief(umemVirtual const *src, umemVirtual const *dst, size_t nbytes) {
  return nbytes < at_once_below && umem_cpu_reads(src) && umem_cpu_writes(dst) &&
         !((src->capabilities | dst->capabilities) & umemDeviceShared);
}

static bool is_at_once(umemTransfer const *self) {
  umemVirtual const *src = self->src, *dst = self->dst;
  return is_brief(src, dst, self->nbytes) || !umem_can(src, umemConcurrent) ||
         !umem_can(dst, umemConcurrent) || !umemTransfer_is_served();
}

/* Returns whether there is a transfer, whose failures, if it has ended by now, are in it. */
static bool begin(umemTransfer *self) {
  bool ordered = umem_can(self->src, umemOrdered) || umem_can(self->dst, umemOrdered);
  if (ordered && self->nbytes) return queue_copy(self);
  if (self->nbytes && !is_at_once(self)) {
    umemTransfer_serve(self);
    return true;
  }
  if (!umemTransfer_copy_all(self)) return false;
  end_here(self);
  return true;
}

/* Sets *transfer after all checks of the copy. */
static void start(umemTransferStart const *given, size_t nbytes, umemTransfer **transfer) {
  if (is_captured(given->src, given->dst)) return;
  umemTransfer *self = umemTransfer_make(given, nbytes, NULL);
  if (!self) return;
  if (begin(self))
    *transfer = self;
  else
    umemTransfer_discard(self);
}

static bool is_given(umemTransfer **transfer) {
  if (!transfer) return UMEM_FAIL(NULL, umemValueError, "transfer is NULL");
  *transfer = NULL;
  return true;
}

umemStatusType umem_start(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr, size_t nbytes,
                          umemCopyOptions const *options, umemTransfer **transfer) {
  UMEM_ENTER();
  if (!is_given(transfer)) return UMEM_RESULT();
  umemLayout const run = {.size = sizeof run, .item_size = nbytes};
  umemTransferStart given = {__func__, umem_check(src), umem_check(dst), src_adr, dst_adr, &run,
                             NULL};
  if (!given.src || !given.dst || !read_options(&given, options)) return UMEM_RESULT();
  if (!nbytes || (umem_validate(given.src, src_adr, nbytes, umemReadable) &&
                  umem_validate(given.dst, dst_adr, nbytes, umemWritable)))
    start(&given, nbytes, transfer);
  return UMEM_RESULT();
}

umemStatusType umem_start_strided(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                  umemLayout const *layout, umemCopyOptions const *options,
                                  umemTransfer **transfer) {
  UMEM_ENTER();
  if (!is_given(transfer)) return UMEM_RESULT();
  umemRanges ranges;
  umemTransferStart given = {__func__, umem_check(src), umem_check(dst), src_adr, dst_adr, layout,
                             NULL};
  if (given.src && given.dst && read_options(&given, options) &&
      umem_check_strided(given.src, src_adr, given.dst, dst_adr, layout, &ranges))
    start(&given, ranges.src_bytes ? umem_count_items(layout) * layout->item_size : 0, transfer);
  return UMEM_RESULT();
}

/* ---- starting a list ---- */

/* Whether it can be started; sets at_once. */
static bool look_at_pairs(umemTransferList *self) {
  umemList const *list = &self->list;
  bool brief = true;
  for (size_t k = 0; k < list->pairs.count; k++) {
    umemListPair pair = umemList_pair_at(list, k);
    if (is_captured(pair.src, pair.dst)) return false;
    brief = brief && is_brief(pair.src, pair.dst, list->nbytes);
  }
  self->at_once = brief || !umemTransfer_is_served();
  return true;
}

/* Returns whether there is a transfer. A mark stands for all of it only if it is the only one, and
 * servers copy nothing. */
static bool begin_list(umemTransfer *self) {
  self->first_number = umemTransfer_count_queued();
  if (!umemTransfer_copy_all(self) || !umemTransfer_mark(self)) return false;
  size_t rest = umemTransfer_rest(self);
  if (rest || self->queue_count > 1) {
    self->first_number = 0;
    self->number = UINT64_MAX;
  }
  if (rest)
    umemTransfer_serve(self);
  else if (self->queue_count)
    umemTransfer_list_queued(self);
  else
    end_here(self);
  return true;
}

/* Takes over the list. */
static void start_list(umemTransferStart const *given, umemTransferList *list,
                       umemTransfer **transfer) {
  umemTransfer *self =
      look_at_pairs(list) ? umemTransfer_make(given, list->list.nbytes, list) : NULL;
  if (!self)
    umemTransferList_discard(list);
  else if (begin_list(self))
    *transfer = self;
  else
    umemTransfer_discard(self);
}

umemStatusType umem_start_many(umemCopyItem const *items, size_t count,
                               umemCopyManyOptions const *options, umemTransfer **transfer) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!is_given(transfer)) return UMEM_RESULT();
  umemCopyManyOptions full = UMEM_COPY_MANY_OPTIONS_INIT;
  if (!umem_read_sized(NULL, &full, sizeof full, options, "umemCopyManyOptions") ||
      !check_options(NULL, full.progress, full.route))
    return UMEM_RESULT();
  umemTransferList *list = umemTransferList_make(items, count, &full);
  if (!list) return UMEM_RESULT();
  umemLayout const no_layout = {.size = sizeof no_layout};
  umemTransferStart given = {.function = __func__, .layout = &no_layout, .route = full.route};
  if (count) {
    given.src = items->src;
    given.dst = items->dst;
  }
  start_list(&given, list, transfer);
  return UMEM_RESULT();
}

/* ---- the handle ---- */

static bool check(umemTransfer const *self) {
  return self || UMEM_FAIL(NULL, umemValueError, "the transfer is NULL");
}

static bool is_of_parent(umemTransfer const *self) {
  return !umemTransfer_is_here(self) && umemTransfer_state(self) != umemTransferEnded;
}

/* Records the failure of a transfer that has ended. */
static void record(umemTransfer *self) {
  if (is_of_parent(self)) {
    umemVirtual_fail(NULL, umemRuntimeError,
                     "the parent process has started this transfer: it does not go on in a child");
    return;
  }
  if (!umemTransfer_has_failed(self)) return;
  __atomic_store_n(&self->seen, true, __ATOMIC_RELAXED);
  umemAttempt failure = umemTransfer_failure(self);
  umemAttempt_record(&failure);
}

umemStatusType umemTransfer_wait(umemTransfer *transfer) {
  UMEM_ENTER();
  if (!check(transfer)) return UMEM_RESULT();
  if (!umemTransfer_has_ended(transfer)) umemTransfer_wait_until(transfer, umemTransfer_for_ever);
  record(transfer);
  return UMEM_RESULT();
}

bool umemTransfer_wait_for(umemTransfer *transfer, uint64_t nanoseconds) {
  UMEM_ENTER();
  if (!transfer || umemTransfer_has_ended(transfer)) return true;
  uint64_t begin = umemClock_read(CLOCK_MONOTONIC);
  return umemTransfer_wait_until(transfer, nanoseconds < umemTransfer_for_ever - begin
                                               ? begin + nanoseconds
                                               : umemTransfer_for_ever);
}

bool umemTransfer_poll(umemTransfer *transfer) {
  UMEM_ENTER();
  if (!transfer || umemTransfer_has_ended(transfer)) return true;
  if (umemTransfer_state(transfer) != umemTransferQueued) return false;
  umemTransfer_look(transfer);
  return umemTransfer_has_ended(transfer);
}

void umemTransfer_cancel(umemTransfer *transfer) {
  UMEM_ENTER();
  if (!transfer || umemTransfer_has_ended(transfer)) return;
  umem_defer_cancel();
  umemTransfer_stop(transfer);
}

umemStatusType umemTransfer_progress(umemTransfer *transfer, uint64_t *done, uint64_t *total) {
  UMEM_ENTER();
  if (!check(transfer)) return UMEM_RESULT();
  if (done) *done = __atomic_load_n(&transfer->done, __ATOMIC_RELAXED);
  if (total) *total = transfer->nbytes;
  return umemOK;
}

int umemTransfer_descriptor(umemTransfer *transfer) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!check(transfer)) return -1;
  if (!umemTransfer_is_here(transfer)) {
    umemVirtual_fail(NULL, umemRuntimeError,
                     "the parent process has started this transfer: a child cannot wait for it");
    return -1;
  }
  int error = umemTransfer_open_descriptor(transfer);
  if (error)
    umemVirtual_fail(NULL, umemRuntimeError, "cannot make a descriptor: %s", UMEM_WORDS(error));
  return transfer->fd;
}

umemStatusType umemTransfer_release(umemTransfer *transfer) {
  UMEM_ENTER();
  if (!transfer) return umemOK;
  umem_defer_cancel();
  if (!umemTransfer_has_ended(transfer)) umemTransfer_wait_until(transfer, umemTransfer_for_ever);
  if (umemTransfer_is_here(transfer)) {
    umemTransfer_leave(transfer);
    if (!transfer->seen && transfer->failure.type != umemCancelledError) record(transfer);
  }
  umemTransfer_discard(transfer);
  return UMEM_RESULT();
}
