/* track.c - knows every live block of another context.
 *
 * A block that is being freed remains in the records, as one that leaves, until the upstream has
 * answered. If its address comes back before that, in another thread, the new block replaces it. */
#include "core/adaptor.h"
#include "adaptors/sites.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem/track.h>

/* What is known of a block beside its address and size. */
typedef struct Record {
  umemRecord head;
  void **trace;    /* owned; of the allocation; NULL for none */
  char *label;     /* owned; NULL: none */
  uint16_t frames; /* of the trace */
  bool aligned;    /* of umem_aligned_alloc */
  bool leaves;
} Record;

typedef struct Track {
  umemAdaptor adaptor;
  umemRecords records; /* Records; all count as live */
  unsigned frames;
} Track;

_Static_assert(UMEM_TRACK_FRAMES == umemSiteFrames, "a site holds all frames");

static struct umemVtbl const track_vtbl; /* below */

static Track *track_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- records: under their lock ---- */

static Record *record_at(Track const *track, uint32_t slot) {
  return umemRecords_at(&track->records, slot);
}

/* The function removed of the records. */
static void end_record(umemRecords *records, uint32_t slot) {
  Track *track = (Track *)((char *)records - offsetof(Track, records));
  Record *record = record_at(track, slot);
  umemRecords_uncount(records, records->index.spans[slot].size);
  free(record->label);
  free(record->trace);
}

static void describe(Track const *track, uint32_t slot, umemTrackBlock *block) {
  Record const *record = record_at(track, slot);
  umemSpan const *place = &track->records.index.spans[slot];
  block->adr = place->start;
  block->nbytes = place->size;
  block->number = record->head.number;
  block->frames = record->frames;
  if (record->trace) memcpy(block->trace, record->trace, record->frames * sizeof *record->trace);
}

/* Fills in all but ctx of the live block that contains adr, and label, of UMEM_LABEL_SIZE bytes,
 * if it is not NULL and the block has one. Returns false where there is none. */
static bool find(Track const *track, uintptr_t adr, umemTrackBlock *block, char *label) {
  uint32_t slot = umemRecords_inside(&track->records, adr);
  if (!slot || record_at(track, slot)->leaves) return false;
  describe(track, slot, block);
  if (label && record_at(track, slot)->label) strcpy(label, record_at(track, slot)->label);
  return true;
}

static void exchange_label(Record *record, char **label) {
  char *old = record->label;
  record->label = *label;
  *label = old;
}

/* ---- records: with the lock taken inside ---- */

static bool find_block(Track *track, uintptr_t adr, umemTrackBlock *block) {
  UMEM_LOCKED(&track->records.lock);
  return find(track, adr, block, NULL);
}

/* Fills in all but ctx of the first live block that begins at or after from. Returns false where
 * there is none. */
static bool find_next(Track *track, uintptr_t from, umemTrackBlock *block) {
  umemRecords *records = &track->records;
  UMEM_LOCKED(&records->lock);
  uint32_t slot = umemRecords_from(records, from);
  while (slot && record_at(track, slot)->leaves) slot = umemRecords_next(records, slot);
  if (slot) describe(track, slot, block);
  return slot != 0;
}

/* ---- allocation ---- */

/* Enters the upstream's answer: a block at adr, or null, into reserved room. Takes over what
 * *record owns. Returns adr. */
static uintptr_t enter(umemVirtual *ctx, uintptr_t adr, size_t nbytes, Record const *record) {
  Track *track = track_of(ctx);
  umemRecords *records = &track->records;
  if (adr == umem_null_of(ctx)) {
    umemSite_release(records, record->trace);
    return adr;
  }
  UMEM_LOCKED(&records->lock);
  Record *entered = record_at(track, umemRecords_enter(records, adr, nbytes));
  *entered = *record;
  entered->head.number = records->entered;
  umemRecords_count(records, nbytes);
  return adr;
}

/* ---- free ---- */

/* Records what is wrong with adr, where no block begins. */
static void refuse_unknown(umemVirtual *ctx, uintptr_t adr) {
  umemTrackBlock block;
  if (find_block(track_of(ctx), adr, &block) && block.adr != adr)
    umemVirtual_fail(ctx, umemValueError,
                     "0x%" PRIxPTR " is %zu bytes inside the block of %zu bytes at 0x%" PRIxPTR,
                     adr, (size_t)(adr - block.adr), block.nbytes, block.adr);
  else
    umemVirtual_fail(ctx, umemValueError,
                     "0x%" PRIxPTR " is no live block: it is free already, or never was one", adr);
}

typedef enum Answer { leaves, unknown, other_form, other_size } Answer;

/* Whether the block at adr may be freed so; if it may, it leaves from now on. wanted: the bytes
 * that the caller says it has; 0 for any number. *nbytes: what it has. */
static Answer begin_free(Track *track, uintptr_t adr, bool aligned, size_t wanted,
                         umemRecordName *name, size_t *nbytes) {
  umemRecords *records = &track->records;
  UMEM_LOCKED(&records->lock);
  uint32_t slot = umemRecords_exact(records, adr);
  Record *record = slot ? record_at(track, slot) : NULL;
  if (!record || record->leaves) return unknown;
  *nbytes = records->index.spans[slot].size;
  if (record->aligned != aligned) return other_form;
  if (wanted && wanted != *nbytes) return other_size;
  record->leaves = true;
  *name = umemRecords_name(records, slot);
  return leaves;
}

/* The block of this name, which leaves, is gone or remains. */
static void end_free(Track *track, umemRecordName name, bool gone) {
  UMEM_LOCKED(&track->records.lock);
  uint32_t slot = umemRecords_named(&track->records, name);
  if (slot && gone)
    umemRecords_remove(&track->records, slot);
  else if (slot)
    record_at(track, slot)->leaves = false;
}

/* Begins to free the block at adr. Returns false, and records a status, if it may not be freed
 * so. */
static bool may_leave(umemVirtual *ctx, uintptr_t adr, bool aligned, size_t wanted,
                      umemRecordName *name) {
  size_t nbytes;
  switch (begin_free(track_of(ctx), adr, aligned, wanted, name, &nbytes)) {
  case leaves:
    return true;
  case unknown:
    refuse_unknown(ctx, adr);
    return false;
  case other_form:
    return UMEM_FAIL(ctx, umemValueError,
                     "the block at 0x%" PRIxPTR " is %sof umem_aligned_alloc: free it with %s", adr,
                     aligned ? "not " : "", aligned ? "umem_free" : "umem_aligned_free");
  case other_size:
    return UMEM_FAIL(ctx, umemValueError, "the block at 0x%" PRIxPTR " has %zu bytes, not %zu", adr,
                     nbytes, wanted);
  }
  return false;
}

static void track_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  umemRecordName name;
  if (!may_leave(ctx, adr, aligned, 0, &name)) return;
  uint64_t before = umem_thread.failures;
  umemAdaptor_give_back(ctx, adr, aligned);
  end_free(track_of(ctx), name, umem_thread.failures == before);
}
UMEM_ADAPTOR_FREES(track_free)

static void track_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  umemRecordName name;
  size_t nbytes;
  if (begin_free(track_of(ctx), adr, aligned, 0, &name, &nbytes) == leaves)
    end_free(track_of(ctx), name, true);
  umemVirtual_leave(umemAdaptor_upstream(ctx), adr, aligned);
}

/* ---- resizing ---- */

/* Exchanges *label and that of the block of this name, which leaves. */
static void exchange_label_of(Track *track, umemRecordName name, char **label) {
  UMEM_LOCKED(&track->records.lock);
  uint32_t slot = umemRecords_named(&track->records, name);
  if (slot) exchange_label(record_at(track, slot), label);
}

static uintptr_t track_allocate(umemVirtual *ctx, umemRequest const *request) {
  Track *track = track_of(ctx);
  Record record = {.aligned = request->how == umemByAligned};
  umemRecordName name;
  uintptr_t null = umem_null_of(ctx);
  bool resizes = request->how == umemByRealloc;
  if (!umemSite_reserve(&track->records, ctx, 1, track->frames, &record.trace, &record.frames))
    return null;
  if (resizes && !may_leave(ctx, request->adr, false, request->old_size, &name))
    return enter(ctx, null, 0, &record);
  if (resizes) exchange_label_of(track, name, &record.label);
  uintptr_t adr = enter(ctx, umemAdaptor_allocate(ctx, request), request->nbytes, &record);
  if (resizes && adr == null) exchange_label_of(track, name, &record.label);
  if (resizes) end_free(track, name, adr != null);
  return adr;
}
UMEM_ADAPTOR_ALLOCATES(track_allocate)

/* ---- the end ---- */

enum { named_leaks = 3 };

/* The live block with the lowest number above the given one. */
static bool next_by_age(Track *track, uint64_t number, umemTrackBlock *oldest) {
  umemTrackBlock block;
  bool found = false;
  for (uintptr_t adr = 0; find_next(track, adr, &block); adr = block.adr + 1)
    if (block.number > number && (!found || block.number < oldest->number)) {
      *oldest = block;
      found = true;
    }
  return found;
}

/* Copies the label of a block that is live still. */
static void label_of(Track *track, umemTrackBlock const *block, char *label) {
  umemTrackBlock same;
  UMEM_LOCKED(&track->records.lock);
  find(track, block->adr, &same, label);
}

static size_t count_blocks(Track *track, size_t *nbytes) {
  UMEM_LOCKED(&track->records.lock);
  *nbytes = track->records.live_bytes;
  return track->records.live_count;
}

/* Records the blocks that are live, if there are any. Other threads may be using ctx. */
static void report_leaks(umemVirtual *ctx) {
  Track *track = track_of(ctx);
  size_t nbytes, count = count_blocks(track, &nbytes);
  if (!count) return;
  char text[UMEM_MESSAGE_SIZE] = "";
  umemTrackBlock block = {.number = 0};
  size_t used = 0;
  for (int i = 0; i < named_leaks && next_by_age(track, block.number, &block); i++) {
    char site[UMEM_MESSAGE_SIZE / named_leaks], label[UMEM_LABEL_SIZE] = "";
    umemSite_name(block.trace, block.frames, site, sizeof site);
    label_of(track, &block, label);
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
  umemAdaptor_unlist(ctx);
  report_leaks(ctx);
  umemRecords_fini(&track_of(ctx)->records);
  umemAdaptor_dtor(ctx);
}

/* ---- finding, labels ---- */

static umemSearch track_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  Track *track = track_of(ctx);
  umemTrackBlock block;
  if (!umemLock_try(&track->records.lock)) return umemSearchBusy;
  bool has = find(track, adr, &block, found->block_label);
  umemLock_release(&track->records.lock);
  if (!has) return umemSearchNone;
  found->adr = block.adr;
  found->nbytes = block.nbytes;
  return umemSearchFound;
}

static bool track_usage(umemVirtual *ctx, umemUsage *usage) {
  return umemRecords_usage(&track_of(ctx)->records, &usage->nbytes, &usage->peak);
}

static void track_set_block_label(umemVirtual *ctx, uintptr_t adr, char const *label) {
  Track *track = track_of(ctx);
  char *copy = *label ? strdup(label) : NULL;
  if (*label && !copy) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a label");
    return;
  }
  umemLock_acquire(&track->records.lock);
  uint32_t slot = umemRecords_exact(&track->records, adr);
  bool known = slot && !record_at(track, slot)->leaves;
  if (known) exchange_label(record_at(track, slot), &copy);
  umemLock_release(&track->records.lock);
  if (!known) refuse_unknown(ctx, adr);
  free(copy);
}

/* ---- construction ---- */

static bool track_start(umemVirtual *ctx, void const *given) {
  umemTrackOptions const *options = given;
  Track *track = track_of(ctx);
  ctx->capabilities &= ~(uint32_t)umemPrompt; /* the search for the caller may load a library */
  if (!umemSite_check(ctx, options->frames)) return false;
  if (!umemRecords_init(&track->records, sizeof(Record), end_record))
    return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
  track->frames = options->frames;
  return true;
}

static struct umemVtbl const track_vtbl = {
    .dtor = track_dtor,
    .finish = report_leaks,
    .find = track_find,
    .usage = track_usage,
    .set_block_label = track_set_block_label,
    .leave = track_leave,
    UMEM_ADAPTOR_ALLOCATION_BY(track_allocate),
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
    UMEM_KIND_OPTIONS(umemTrackOptions, defaults),
    .start = track_start,
};

UMEM_ADAPTOR_CTORS(umemTrack, umem_track_kind, options, void *upstream,
                   umemTrackOptions const *options)

/* ---- figures and blocks ---- */

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

static bool answer(umemTrack *ctx, uintptr_t adr, umemTrackBlock *block,
                   bool (*search)(Track *track, uintptr_t adr, umemTrackBlock *block)) {
  umemTrackBlock found = UMEM_TRACK_BLOCK_INIT;
  if (!is_track(ctx) || !check_block(ctx, block)) return false;
  if (!search(track_of(&ctx->super), adr, &found)) return false;
  write_block(block, &found, ctx);
  return true;
}

bool umemTrack_find(umemTrack *ctx, uintptr_t adr, umemTrackBlock *block) {
  UMEM_ENTER();
  return answer(ctx, adr, block, find_block);
}

bool umemTrack_next(umemTrack *ctx, uintptr_t from, umemTrackBlock *block) {
  UMEM_ENTER();
  return answer(ctx, from, block, find_next);
}

size_t umemTrack_count(umemTrack *ctx, size_t *nbytes) {
  UMEM_ENTER();
  size_t none, *bytes = nbytes ? nbytes : &none;
  *bytes = 0;
  return is_track(ctx) ? count_blocks(track_of(&ctx->super), bytes) : 0;
}

/* Looks through all that are live under the global lock, so that none ends meanwhile. It must not
 * wait for a lock there: *busy is true when one was taken, and then nothing is known. */
static bool find_owner(uintptr_t adr, umemTrackBlock *found, bool *busy) {
  bool owned = *busy = false;
  UMEM_LOCKED(&umem_global_lock);
  for (umemLive *live = umemLive_newest(); live && !owned && !*busy; live = live->older) {
    if (live->ctx->vptr != &track_vtbl || umem_can(live->ctx, umemOffsets)) continue;
    Track *track = track_of(live->ctx);
    *busy = !umemLock_try(&track->records.lock);
    if (*busy) break;
    owned = find(track, adr, found, NULL);
    umemLock_release(&track->records.lock);
    found->ctx = (umemTrack *)live->ctx;
  }
  return owned;
}

bool umemTrack_owner(uintptr_t adr, umemTrackBlock *block) {
  UMEM_ENTER();
  umemTrackBlock found = UMEM_TRACK_BLOCK_INIT;
  bool owned, busy;
  if (!check_block(NULL, block)) return false;
  do owned = find_owner(adr, &found, &busy);
  while (busy);
  if (owned) write_block(block, &found, found.ctx);
  return owned;
}
