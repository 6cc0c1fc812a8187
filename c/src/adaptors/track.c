/* track.c - knows every live block of another context. */
#include "core/adaptor.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/live.h"
#include "core/context.h"
#include "adaptors/sites.h"
#include "adaptors/track_table.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Track {
  umemAdaptor adaptor;
  umemTrackTable table;
  umemTrack *ctx;
  unsigned frames;
  struct Track *newer, *older; /* in the list of all; under the global lock */
} Track;

_Static_assert(UMEM_TRACK_FRAMES == umemSiteFrames, "a site holds all frames");

static Track *newest;

static Track *track_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- allocation ---- */

/* Reserves a record and captures the call site. False with a status without memory. */
static bool prepare(umemVirtual *ctx, bool aligned, umemTrackRecord *record) {
  Track *track = track_of(ctx);
  *record = (umemTrackRecord){.aligned = aligned};
  return umemRecords_prepare(&track->table.records, ctx, 1, track->frames, &record->head.traces,
                             &record->frames);
}

/* Enters what the upstream has answered: a block at adr, or null. Returns adr. */
static uintptr_t enter(umemVirtual *ctx, uintptr_t adr, size_t nbytes,
                       umemTrackRecord const *record) {
  umemTrackTable *table = &track_of(ctx)->table;
  if (adr != umem_null_of(ctx))
    umemTrackTable_enter(table, adr, nbytes, record);
  else
    umemRecords_release(&table->records, record->head.traces);
  return adr;
}

/* ---- free ---- */

/* Records what is wrong with adr, where no block begins. */
static void refuse_unknown(umemVirtual *ctx, uintptr_t adr) {
  umemTrackBlock around;
  if (umemTrackTable_find(&track_of(ctx)->table, adr, &around) && around.adr != adr)
    umemVirtual_fail(ctx, umemValueError,
                     "0x%" PRIxPTR " is %zu bytes inside the block of %zu bytes at 0x%" PRIxPTR,
                     adr, (size_t)(adr - around.adr), around.nbytes, around.adr);
  else
    umemVirtual_fail(ctx, umemValueError,
                     "0x%" PRIxPTR " is no live block: it is free already, or never was one", adr);
}

/* Whether the block at adr may be given back; then it is leaving, and *number is that of its allocation.
 * False with a status otherwise. wanted: its bytes; 0 for any number. */
static bool may_leave(umemVirtual *ctx, uintptr_t adr, bool aligned, size_t wanted,
                      uint64_t *number) {
  umemTrackBlock block;
  switch (umemTrackTable_leave(&track_of(ctx)->table, adr, aligned, wanted, &block)) {
  case umemTrackLeaves:
    *number = block.number;
    return true;
  case umemTrackNone:
    refuse_unknown(ctx, adr);
    return false;
  case umemTrackOtherForm:
    umemVirtual_fail(ctx, umemValueError,
                     "the block at 0x%" PRIxPTR " is %sof umem_aligned_alloc: free it with %s", adr,
                     aligned ? "not " : "", aligned ? "umem_free" : "umem_aligned_free");
    return false;
  case umemTrackOtherSize:
    umemVirtual_fail(ctx, umemValueError, "the block at 0x%" PRIxPTR " has %zu bytes, not %zu", adr,
                     block.nbytes, wanted);
    return false;
  }
  return false;
}

static void track_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  uint64_t number;
  if (!may_leave(ctx, adr, aligned, 0, &number)) return;
  uint64_t before = umem_thread.failures;
  umemAdaptor_give_back(ctx, adr, aligned);
  umemTrackTable_settle(&track_of(ctx)->table, adr, number, umem_thread.failures == before);
}
UMEM_ADAPTOR_FREES(track_free)

static void track_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  umemTrackTable *table = &track_of(ctx)->table;
  umemTrackBlock block;
  if (umemTrackTable_leave(table, adr, aligned, 0, &block) == umemTrackLeaves)
    umemTrackTable_settle(table, adr, block.number, true);
  umemVirtual_leave(umemAdaptor_upstream(ctx), adr, aligned);
}

static uintptr_t track_ask(umemVirtual *ctx, umemRequest const *request) {
  umemTrackRecord record;
  uint64_t number;
  uintptr_t null = umem_null_of(ctx);
  bool resizes = request->how == umemByRealloc;
  if (!prepare(ctx, request->how == umemByAligned, &record)) return null;
  if (resizes && !may_leave(ctx, request->adr, false, request->old_size, &number))
    return enter(ctx, null, 0, &record);
  umemTrackTable *table = &track_of(ctx)->table;
  if (resizes) umemTrackTable_exchange_label(table, request->adr, true, &record.label);
  uintptr_t adr = enter(ctx, umemAdaptor_ask(ctx, request), request->nbytes, &record);
  if (resizes && adr == null)
    umemTrackTable_exchange_label(table, request->adr, true, &record.label);
  if (resizes) umemTrackTable_settle(&track_of(ctx)->table, request->adr, number, adr != null);
  return adr;
}
UMEM_ADAPTOR_ALLOCATES(track_ask)

/* ---- the end ---- */

enum { named_leaks = 3 };

/* The live block with the lowest number above the given one. */
static bool next_by_age(umemTrackTable *table, uint64_t number, umemTrackBlock *oldest) {
  umemTrackBlock block;
  bool found = false;
  for (uintptr_t adr = 0; umemTrackTable_next(table, adr, &block); adr = block.adr + 1)
    if (block.number > number && (!found || block.number < oldest->number)) {
      *oldest = block;
      found = true;
    }
  return found;
}

/* Copies the label of a block that is live still. */
static void label_of(umemTrackTable *table, umemTrackBlock const *block, char *label) {
  umemTrackBlock same;
  umemLock_acquire(&table->records.lock);
  umemTrackTable_find_locked(table, block->adr, &same, label);
  umemLock_release(&table->records.lock);
}

/* Records the blocks that are live, if there are any. Other threads may be using ctx. */
static void report_leaks(umemVirtual *ctx) {
  umemTrackTable *table = &track_of(ctx)->table;
  umemLock_acquire(&table->records.lock);
  size_t const count = table->count, nbytes = table->nbytes;
  umemLock_release(&table->records.lock);
  if (!count) return;
  char text[UMEM_MESSAGE_SIZE] = "";
  umemTrackBlock block = {.number = 0};
  size_t used = 0;
  for (int i = 0; i < named_leaks && next_by_age(table, block.number, &block); i++) {
    char site[UMEM_MESSAGE_SIZE / named_leaks], label[UMEM_LABEL_SIZE] = "";
    umemSite_name(block.trace, block.frames, site, sizeof site);
    label_of(table, &block, label);
    int length = snprintf(text + used, sizeof text - used, "%s %zu at 0x%" PRIxPTR "%s%s%s%s%s",
                          i ? "," : "", block.nbytes, block.adr, *label ? " \"" : "", label,
                          *label ? "\"" : "", *site ? " by " : "", site);
    if (length < 0 || (size_t)length >= sizeof text - used) break;
    used += (size_t)length;
  }
  char named[UMEM_LABEL_SIZE + 8] = "", label[UMEM_LABEL_SIZE];
  umemExtra_label(ctx, label);
  if (*label) snprintf(named, sizeof named, " of \"%s\"", label);
  umemVirtual_fail(ctx, umemRuntimeError, "%zu block%s%s, %zu bytes in all, %s not freed:%s%s",
                   count, count == 1 ? "" : "s", named, nbytes, count == 1 ? "was" : "were", text,
                   count > named_leaks ? ", ..." : "");
}

static void track_dtor(umemVirtual *ctx) {
  Track *track = track_of(ctx);
  umemLock_acquire_global();
  if (track->newer)
    track->newer->older = track->older;
  else
    newest = track->older;
  if (track->older) track->older->newer = track->newer;
  umemLock_release_global();
  umemAdaptor_unlist(ctx);
  report_leaks(ctx);
  umemTrackTable_fini(&track->table);
  umemAdaptor_dtor(ctx);
}

/* ---- finding, labels ---- */

static umemSearch track_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemTrackTable *table = &track_of(ctx)->table;
  umemTrackBlock block;
  if (!umemLock_try(&table->records.lock)) return umemSearchBusy;
  bool has = umemTrackTable_find_locked(table, adr, &block, found->block_label);
  umemLock_release(&table->records.lock);
  if (!has) return umemSearchNone;
  found->adr = block.adr;
  found->nbytes = block.nbytes;
  return umemSearchFound;
}

static bool track_usage(umemVirtual *ctx, umemUsage *usage) {
  umemTrackTable *table = &track_of(ctx)->table;
  if (!umemLock_try(&table->records.lock)) return false;
  usage->nbytes = table->nbytes;
  usage->peak = table->peak;
  umemLock_release(&table->records.lock);
  return true;
}

static void track_set_block_label(umemVirtual *ctx, uintptr_t adr, char const *label) {
  char *copy = *label ? strdup(label) : NULL;
  if (*label && !copy)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a label");
  else if (!umemTrackTable_exchange_label(&track_of(ctx)->table, adr, false, &copy))
    refuse_unknown(ctx, adr);
  free(copy);
}

/* ---- construction ---- */

static bool track_start(umemVirtual *ctx, void const *given) {
  umemTrackOptions const *options = given;
  Track *track = track_of(ctx);
  ctx->capabilities &= ~(uint32_t)umemPrompt; /* asking who called may load a library */
  if (!umemSite_check(ctx, options->frames)) return false;
  if (!umemTrackTable_init(&track->table)) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a context");
    return false;
  }
  track->frames = options->frames;
  track->ctx = (umemTrack *)ctx;
  umemLock_acquire_global();
  track->older = newest;
  if (newest) newest->newer = track;
  newest = track;
  umemLock_release_global();
  return true;
}

static struct umemVtbl const track_vtbl = {
    .dtor = track_dtor,
    .finish = report_leaks,
    .find = track_find,
    .usage = track_usage,
    .set_block_label = track_set_block_label,
    .leave = track_leave,
    UMEM_ADAPTOR_ALLOCATION_BY(track_ask),
    UMEM_ADAPTOR_FREE_BY(track_free),
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
    UMEM_ADAPTOR_ALWAYS,
};

static umemTrackOptions const defaults = UMEM_TRACK_OPTIONS_INIT;

/* "track+host:?frames=8" */
static umemOption const named_options[] = {
    UMEM_OPTION(umemTrackOptions, frames, "frames", umemNumberOption,
                "of the stack, kept of each allocation; default: 0"),
};

umemKind const umem_track_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemTrack, "track", &track_vtbl),
               UMEM_ADAPTOR_OPENS(umem_track_kind), UMEM_OPTIONS(named_options),
               .help = "knows every live block, and what leaks"},
    .label = "Track",
    .impl_size = sizeof(Track),
    .options_type = "umemTrackOptions",
    .options_size = sizeof defaults,
    .defaults = &defaults,
    .start = track_start,
};

UMEM_ADAPTOR_CTORS_WITH(umemTrack, umem_track_kind, options, umemTrackOptions const *options)

/* ---- questions ---- */

/* Whether ctx is one; false with a status otherwise. */
static bool is_track(umemTrack *ctx) { return umemKind_check(ctx, &umem_track_kind) != NULL; }

/* Whether block, if there is one, can be written; false with a status otherwise. */
static bool check_block(void *ctx, umemTrackBlock const *block) {
  size_t const least = offsetof(umemTrackBlock, frames);
  return !block || umem_can_write_sized(ctx, block, least, "block", "umemTrackBlock");
}

static void write_block(umemTrackBlock *to, umemTrackBlock *found, umemTrack *ctx) {
  if (!to) return;
  found->ctx = ctx;
  umem_write_sized(to, found, sizeof *found);
}

bool umemTrack_find(umemTrack *ctx, uintptr_t adr, umemTrackBlock *block) {
  UMEM_ENTER();
  umemTrackBlock found = UMEM_TRACK_BLOCK_INIT;
  if (!is_track(ctx) || !check_block(ctx, block)) return false;
  if (!umemTrackTable_find(&track_of(&ctx->super)->table, adr, &found)) return false;
  write_block(block, &found, ctx);
  return true;
}

bool umemTrack_next(umemTrack *ctx, uintptr_t from, umemTrackBlock *block) {
  UMEM_ENTER();
  umemTrackBlock found = UMEM_TRACK_BLOCK_INIT;
  if (!is_track(ctx) || !check_block(ctx, block)) return false;
  if (!umemTrackTable_next(&track_of(&ctx->super)->table, from, &found)) return false;
  write_block(block, &found, ctx);
  return true;
}

size_t umemTrack_count(umemTrack *ctx, size_t *nbytes) {
  UMEM_ENTER();
  if (nbytes) *nbytes = 0;
  if (!is_track(ctx)) return 0;
  umemTrackTable *table = &track_of(&ctx->super)->table;
  umemLock_acquire(&table->records.lock);
  size_t count = table->count;
  if (nbytes) *nbytes = table->nbytes;
  umemLock_release(&table->records.lock);
  return count;
}

/* Looks through the whole list under the global lock, so that nothing in it ends meanwhile. Under
 * it must not wait for a lock: *busy is true when one was taken, and then nothing is known. */
static Track *owner_of(uintptr_t adr, umemTrackBlock *found, bool *busy) {
  Track *owner = NULL;
  *busy = false;
  umemLock_acquire_global();
  for (Track *track = newest; track && !owner && !*busy; track = track->older) {
    if (umem_can(&track->ctx->super, umemOffsets)) continue;
    *busy = !umemLock_try(&track->table.records.lock);
    if (*busy) break;
    if (umemTrackTable_find_locked(&track->table, adr, found, NULL)) owner = track;
    umemLock_release(&track->table.records.lock);
  }
  if (owner) found->ctx = owner->ctx;
  umemLock_release_global();
  return owner;
}

bool umemTrack_owner(uintptr_t adr, umemTrackBlock *block) {
  UMEM_ENTER();
  umemTrackBlock found = UMEM_TRACK_BLOCK_INIT;
  bool owned, busy;
  if (!check_block(NULL, block)) return false;
  do owned = owner_of(adr, &found, &busy);
  while (busy);
  if (owned) write_block(block, &found, found.ctx);
  return owned;
}
