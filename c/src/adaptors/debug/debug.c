/* debug.c - finds wrong writes and wrong frees of another context's blocks. */
#include "adaptors/debug/debug.h"
#include "adaptors/sites.h"
#include "core/layout.h"

#include <stdlib.h>

static umemDebugTable *table_of(umemVirtual *ctx) { return &umemDebug_impl(ctx)->table; }

/* ---- giving back ---- */

/* Gives a block that no other thread looks at back to upstream. False with a status when that
 * refuses. In a child of fork what the parent has kept or not freed is the parent's. */
static bool give_back(umemVirtual *ctx, umemDebugBlock const *block) {
  uint64_t before = umem_thread.failures;
  if (umem_is_of_parent(ctx, umemDebug_impl(ctx)->forks)) return true;
  umemAdaptor_give_back(ctx, block->origin, block->aligned);
  return umem_thread.failures == before;
}

/* Inspects blocks that are leaving and gives them back. Those that could not be inspected, or that
 * upstream refuses, are kept for longer. Whether nothing was wrong. */
static bool let_go(umemVirtual *ctx, umemDebugBlock *blocks, unsigned count) {
  bool looked = umemDebug_inspect(ctx, blocks, count);
  bool good = looked && umemDebug_report(ctx, blocks, count);
  for (unsigned i = 0; i < count; i++) {
    bool gone = looked && give_back(ctx, &blocks[i]);
    (gone ? umemDebugTable_gone : umemDebugTable_put_back)(table_of(ctx), &blocks[i]);
    good = good && gone;
  }
  return good;
}

/* Gives the oldest back until one more block can be kept, which is then counted. False with a
 * status when something was wrong. */
static bool make_room(umemVirtual *ctx, size_t extent) {
  umemDebugBlock oldest[umemDebugBatch];
  unsigned count;
  bool in_batches = !umemDebug_impl(ctx)->direct;
  while (!umemDebugTable_admit(table_of(ctx), extent, in_batches, oldest, umemDebugBatch, &count))
    if (!let_go(ctx, oldest, count)) return false;
  return true;
}

/* Gives back what is kept, all but keep bytes. False with a status when something was wrong. */
static bool let_all_go(umemVirtual *ctx, size_t keep) {
  umemDebugBlock oldest[umemDebugBatch];
  umemDebugFigures figures = UMEM_DEBUG_FIGURES_INIT;
  umemDebug *self = (umemDebug *)ctx;
  bool good = true;
  while (good && umemDebug_get(self, &figures) == umemOK && figures.kept_bytes > keep) {
    unsigned count = umemDebugTable_take(table_of(ctx), oldest, umemDebugBatch);
    if (!count) break; /* others look at them */
    good = let_go(ctx, oldest, count);
  }
  return good;
}

/* ---- allocation ---- */

/* Requests once more when upstream is out of memory and blocks are kept. request: with the red
 * zones. */
static uintptr_t ask_twice(umemVirtual *ctx, umemRequest const *request) {
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  uint64_t before = umem_thread.failures;
  umemAttempt held;
  umemAttempt_begin(&held);
  uintptr_t origin = umem_alloc_as(upstream, request);
  umemAttempt_end(&held);
  if (!umemAttempt_failed(&held)) return origin;
  umemDebugFigures figures = UMEM_DEBUG_FIGURES_INIT;
  umemDebug_get((umemDebug *)ctx, &figures);
  bool refused = origin == umem_null_of(ctx) && held.type == umemMemoryError;
  if (refused && figures.kept_blocks) {
    if (!let_all_go(ctx, 0)) return origin;
    origin = umem_alloc_as(upstream, request);
  } else {
    umemAttempt_record(&held);
  }
  umemAdaptor_failed(ctx, before);
  return origin;
}

/* Computes the size of the request to upstream, and where the program's block is in it. Returns
 * false, and records a status, if the size is impossible. */
static bool lay_out(umemVirtual *ctx, umemRequest const *request, umemDebugBlock *block) {
  size_t zone = umemDebug_impl(ctx)->red_zone;
  bool aligned = request->how == umemByAligned;
  size_t alignment = aligned ? request->alignment : ctx->alignment;
  size_t rest = zone % alignment, padding = rest ? alignment - rest : 0, sum;
  *block = (umemDebugBlock){.nbytes = request->nbytes, .aligned = aligned};
  if (!__builtin_add_overflow(zone, padding, &block->front) &&
      !__builtin_add_overflow(block->front, request->nbytes, &sum) &&
      !__builtin_add_overflow(sum, zone, &block->extent))
    return true;
  return UMEM_FAIL(ctx, umemMemoryError, "%zu bytes with red zones exceed any memory",
                   request->nbytes);
}

/* Gets a block from upstream, red zones and all. False with a status. */
static bool get_block(umemVirtual *ctx, umemRequest const *request, umemDebugBlock *block) {
  umemDebugImpl *debug = umemDebug_impl(ctx);
  umemRequest whole = *request;
  whole.nbytes = block->extent;
  block->origin = ask_twice(ctx, &whole);
  if (block->origin == umem_null_of(ctx)) return false;
  bool small = block->extent <= debug->table.most_bytes;
  if (umemDebug_fill(ctx, block, debug->fills && small && request->how != umemByCalloc))
    return true;
  give_back(ctx, block);
  return false;
}

static uintptr_t allocate_block(umemVirtual *ctx, umemRequest const *request) {
  umemDebugTable *table = table_of(ctx);
  umemDebugBlock block;
  void **traces = NULL;
  uint16_t frames = 0;
  if (!lay_out(ctx, request, &block) ||
      !umemSite_reserve(&table->records, ctx, 2, table->frames, &traces, &frames))
    return umem_null_of(ctx);
  if (get_block(ctx, request, &block)) {
    umemDebugTable_enter(table, block, traces, frames);
    return umemDebugBlock_adr(&block);
  }
  umemSite_release(&table->records, traces);
  return umem_null_of(ctx);
}

/* ---- free ---- */

/* Makes the block at adr freeing. False when it may not be freed so; with refuses also a status. */
static bool begin_free(umemVirtual *ctx, uintptr_t adr, bool aligned, size_t wanted, bool refuses,
                       umemDebugBlock *block) {
  umemDebugTable *table = table_of(ctx);
  umemDebugFault finding = UMEM_DEBUG_FAULT_INIT;
  void *trace[UMEM_DEBUG_FRAMES];
  unsigned frames = umemSite_capture(trace, table->frames);
  if (umemDebugTable_begin(table, adr, aligned, wanted, trace, frames, block, &finding))
    return true;
  if (refuses) umemDebug_refuse(ctx, &finding);
  return false;
}

/* Whether freed blocks of this size are kept before they are given back. */
static bool is_kept_after_free(umemDebugImpl const *debug, umemDebugBlock const *block) {
  return debug->table.most_count && block->extent <= debug->table.most_bytes;
}

/* Looks at a block that is freeing, if that is to be done at once. False with a status when
 * something is wrong. */
static bool is_sound(umemVirtual *ctx, umemDebugBlock *block) {
  umemDebugImpl const *debug = umemDebug_impl(ctx);
  if (!debug->at_once && is_kept_after_free(debug, block)) return true;
  return umemDebug_inspect(ctx, block, 1) && umemDebug_report(ctx, block, 1);
}

/* The inside of a block whose bytes were moved elsewhere must remain as it is when upstream
 * cannot fill it: then it is kept as it is. */
static bool poison_block(umemVirtual *ctx, umemDebugBlock const *block, bool moved, bool *done) {
  umemAttempt held;
  umemAttempt_begin(&held);
  *done = umemDebug_poison(ctx, block);
  umemAttempt_end(&held);
  if (*done || moved) return true;
  umemAttempt_record(&held);
  return false;
}

/* Keeps a block that is freeing, or gives it back at once. False with a status; then nothing has
 * changed. */
static bool put_away(umemVirtual *ctx, umemDebugBlock const *block, bool moved) {
  umemDebugTable *table = table_of(ctx);
  if (!is_kept_after_free(umemDebug_impl(ctx), block)) {
    if (!umemDebugTable_passes(table, block)) return true;
    if (!give_back(ctx, block)) return false;
    umemDebugTable_gone(table, block);
    return true;
  }
  bool poisoned;
  if (!make_room(ctx, block->extent)) return false;
  if (poison_block(ctx, block, moved, &poisoned)) {
    umemDebugTable_keep_block(table, block, poisoned);
    return true;
  }
  umemDebugTable_forgo(table, block->extent);
  return false;
}

static void debug_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  umemDebugBlock block;
  if (!begin_free(ctx, adr, aligned, 0, true, &block)) return;
  if (!is_sound(ctx, &block) || !put_away(ctx, &block, false))
    umemDebugTable_revive(table_of(ctx), &block);
}
UMEM_ADAPTOR_FREES(debug_free)

static void debug_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  umemDebugTable *table = table_of(ctx);
  umemDebugBlock block;
  if (!begin_free(ctx, adr, aligned, 0, false, &block)) return;
  if (umemDebug_inspect(ctx, &block, 1)) umemDebug_report(ctx, &block, 1);
  if (umemDebugTable_passes(table, &block)) umemDebugTable_gone(table, &block);
  umemVirtual_leave(umemAdaptor_upstream(ctx), block.origin, block.aligned);
}

/* ---- realloc: always to another place, so that what still writes to the old one is found ---- */

/* Copies what a block that is freeing holds to the new one at moved, and puts it away. */
static bool move_bytes(umemVirtual *ctx, umemDebugBlock const *block, uintptr_t moved,
                       size_t new_size) {
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  uint64_t before = umem_thread.failures;
  size_t kept = block->nbytes < new_size ? block->nbytes : new_size;
  umem_copy_to(upstream, umemDebugBlock_adr(block), upstream, moved, kept);
  return !umemAdaptor_failed(ctx, before) && put_away(ctx, block, true);
}

/* Frees a block that the program has not seen. */
static void discard_block(umemVirtual *ctx, uintptr_t adr) {
  umemDebugBlock block;
  if (!begin_free(ctx, adr, false, 0, true, &block) ||
      !umemDebugTable_passes(table_of(ctx), &block))
    return;
  if (give_back(ctx, &block))
    umemDebugTable_gone(table_of(ctx), &block);
  else
    umemDebugTable_revive(table_of(ctx), &block);
}

static uintptr_t resize_block(umemVirtual *ctx, umemRequest const *request) {
  umemDebugBlock block;
  uintptr_t null = umem_null_of(ctx), moved = null;
  umemRequest const new = {umemByAlloc, request->nbytes, 1, 0, 0};
  if (!begin_free(ctx, request->adr, false, request->old_size, true, &block)) return null;
  if (is_sound(ctx, &block)) moved = allocate_block(ctx, &new);
  if (moved != null && move_bytes(ctx, &block, moved, request->nbytes)) return moved;
  umemDebugTable_revive(table_of(ctx), &block);
  if (moved != null) discard_block(ctx, moved);
  return null;
}

static uintptr_t debug_allocate(umemVirtual *ctx, umemRequest const *request) {
  return request->how == umemByRealloc ? resize_block(ctx, request) : allocate_block(ctx, request);
}
UMEM_ADAPTOR_ALLOCATES(debug_allocate)

/* ---- bytes ---- */

/* Whether the caller may touch [adr, adr + nbytes). False with a status otherwise. */
static bool allows_access(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  umemDebugFault finding = UMEM_DEBUG_FAULT_INIT;
  if (umemDebugTable_allow(table_of(ctx), adr, nbytes, &finding)) return true;
  umemDebug_refuse(ctx, &finding);
  return false;
}

static void debug_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  if (allows_access(ctx, adr, nbytes)) umemAdaptor_set(ctx, adr, c, nbytes);
}

/* Whether the caller may touch all from the lowest to the highest byte of a layout. False with a
 * status otherwise. */
static bool allows_layout(umemVirtual *ctx, uintptr_t adr, umemLayout const *layout,
                          ptrdiff_t const *strides) {
  size_t nbytes = umem_touched(&adr, layout, strides);
  return allows_access(ctx, adr, nbytes);
}

static bool debug_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  if (src == ctx && !allows_layout(ctx, src_adr, layout, layout->src_strides)) return true;
  if (dst == ctx && !allows_layout(ctx, dst_adr, layout, layout->dst_strides)) return true;
  return umemAdaptor_copy_direct(ctx, src, src_adr, dst, dst_adr, layout);
}

/* An address of ours is no block of upstream's. */
static uintptr_t debug_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx;
  return adr;
}

/* ---- looking at everything ---- */

static void check_all(umemVirtual *self) {
  umemDebugBlock blocks[umemDebugBatch];
  unsigned count;
  bool looked = true;
  for (uintptr_t from = 0;
       looked && (count = umemDebugTable_pin(table_of(self), from, false, blocks, umemDebugBatch));
       from = blocks[count - 1].origin + 1) {
    looked = umemDebug_inspect(self, blocks, count);
    if (looked) umemDebug_report(self, blocks, count);
    umemDebugTable_unpin(table_of(self), blocks, count);
  }
}

/* Memory of a runtime that may be gone is left alone. */
static void debug_finish(umemVirtual *ctx) {
  if (umem_is_plain_host(umem_innermost(ctx))) check_all(ctx);
}

/* A failure of upstream's becomes ctx's in the public function. */
static void debug_trim(umemVirtual *ctx, size_t keep) {
  if (let_all_go(ctx, keep)) umem_trim(umemAdaptor_upstream(ctx), keep);
}

/* ---- construction and end ---- */

static void debug_dtor(umemVirtual *ctx) {
  umemDebugImpl *debug = umemDebug_impl(ctx);
  umemDebugBlock blocks[umemDebugBatch];
  unsigned count;
  umemAdaptor_unlist(ctx);
  while ((count = umemDebugTable_pin(&debug->table, 0, true, blocks, umemDebugBatch))) {
    if (umemDebug_inspect(ctx, blocks, count)) umemDebug_report(ctx, blocks, count);
    for (unsigned i = 0; i < count; i++) {
      give_back(ctx, &blocks[i]);
      umemDebugTable_gone(&debug->table, &blocks[i]);
    }
  }
  umemRecords_fini(&debug->table.records);
  free(debug->buffer);
  umem_dtor(&debug->host);
  umemAdaptor_dtor(ctx);
}

static bool check_options(umemVirtual *ctx, umemDebugOptions const *options) {
  if (!options->guard || options->guard > UMEM_DEBUG_LARGEST_GUARD)
    return UMEM_FAIL(ctx, umemValueError, "a guard of %zu bytes is not one of 1 to %d",
                     options->guard, UMEM_DEBUG_LARGEST_GUARD);
  if (!umemSite_check(ctx, options->frames)) return false;
  if (umem_can(ctx, umemReadable | umemWritable)) return true;
  return UMEM_FAIL(ctx, umemNotSupportedError,
                   "the upstream cannot be both read and written: it can have no red zones");
}

/* What upstream allows has been taken over. */
static bool debug_start(umemVirtual *ctx, void const *given) {
  umemDebugOptions const *options = given;
  umemDebugImpl *debug = umemDebug_impl(ctx);
  ctx->capabilities &= ~(uint32_t)umemPrompt; /* the search for the caller may load a library */
  if (!check_options(ctx, options)) return false;
  debug->red_zone = options->guard;
  debug->fills = options->fill;
  debug->forks = umem_fork_count();
  debug->at_once = umem_can(ctx, umemCpuReadable | umemCpuWritable) &&
                   !(ctx->capabilities & (umemOrdered | umemDeviceShared));
  debug->direct = debug->at_once && !umem_can(ctx, umemFaultable);
  if (!umemDebug_open_buffer(ctx)) return false;
  if (!umemDebugTable_init(&debug->table)) {
    free(debug->buffer);
    return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
  }
  debug->table.frames = options->frames;
  debug->table.most_bytes = options->kept_bytes;
  debug->table.most_count = options->kept_blocks;
  umemHost_ctor(&debug->host);
  return true;
}

static bool debug_usage(umemVirtual *ctx, umemUsage *usage) {
  return umemRecords_usage(&umemDebug_impl(ctx)->table.records, &usage->nbytes, NULL);
}

static struct umemVtbl const debug_vtbl = {
    .find = umemDebug_find,
    .usage = debug_usage,
    .dtor = debug_dtor,
    .finish = debug_finish,
    UMEM_ADAPTOR_ALLOCATION_BY(debug_allocate),
    UMEM_ADAPTOR_FREE_BY(debug_free),
    .aligned_origin = debug_aligned_origin,
    .set = debug_set,
    UMEM_ADAPTOR_COPIES_BY(debug_copy_direct),
    .trim = debug_trim,
    .leave = debug_leave,
    .upstream = umemAdaptor_upstream_method,
    UMEM_ADAPTOR_ORDER,
};

static umemDebugOptions const defaults = UMEM_DEBUG_OPTIONS_INIT;

/* "debug+cuda:0?kept=64M&frames=8" */
static umemOption const named_options[] = {
    UMEM_OPTION(umemDebugOptions, guard, "guard", umemSizeOption,
                "on either side of a block, at least; default: 32"),
    UMEM_OPTION(umemDebugOptions, kept_bytes, "kept", umemSizeOption,
                "of freed blocks, that wait before they are given back; default: 16M"),
    UMEM_OPTION(umemDebugOptions, kept_blocks, "blocks", umemNumberOption,
                "of them that wait; default: 1024"),
    UMEM_OPTION(umemDebugOptions, frames, "frames", umemNumberOption,
                "of the stack, kept of each allocation and free; default: 0"),
};

umemKind const umem_debug_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemDebug, "debug", &debug_vtbl),
               UMEM_ADAPTOR_OPENS(umem_debug_kind), UMEM_OPTIONS(named_options),
               .help = "finds wrong writes and wrong frees"},
    .label = "Debug",
    .impl_size = sizeof(umemDebugImpl),
    UMEM_KIND_OPTIONS(umemDebugOptions, defaults),
    .start = debug_start,
};

UMEM_ADAPTOR_CTORS(umemDebug, umem_debug_kind, options, void *upstream,
                   umemDebugOptions const *options)

/* ---- checks and figures on request ---- */

umemStatusType umemDebug_check(umemDebug *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_debug_kind);
  if (self) check_all(self);
  return UMEM_RESULT();
}

bool umemDebug_first(umemDebug *ctx, umemDebugFault *fault) {
  UMEM_ENTER();
  size_t const least = offsetof(umemDebugFault, number);
  if (!umemKind_check(ctx, &umem_debug_kind)) return false;
  if (fault && !umem_can_write_sized(ctx, fault, least, "fault", "umemDebugFault")) return false;
  umemDebugImpl *debug = ctx->impl;
  UMEM_LOCKED(&debug->table.records.lock);
  bool any = debug->findings;
  if (any && fault) umem_write_sized(fault, &debug->first, sizeof *fault);
  return any;
}

umemStatusType umemDebug_get(umemDebug *ctx, umemDebugFigures *figures) {
  UMEM_ENTER();
  size_t const least = offsetof(umemDebugFigures, live_blocks);
  if (!umemKind_check(ctx, &umem_debug_kind) ||
      !umem_can_write_sized(ctx, figures, least, "figures", "umemDebugFigures"))
    return UMEM_RESULT();
  umemDebugImpl *debug = ctx->impl;
  umemDebugTable *table = &debug->table;
  umemRecords *records = &table->records;
  umemLock_acquire(&records->lock);
  umemDebugFigures now = {sizeof now,          debug->findings,   records->live_count,
                          records->live_bytes, table->kept_count, table->kept_bytes};
  umemLock_release(&records->lock);
  umem_write_sized(figures, &now, sizeof now);
  return umemOK;
}
