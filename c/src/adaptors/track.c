/* track.c - knows every live block of another context. */
#include "core/adaptor.h"
#include "adaptors/sites.h"
#include "adaptors/track_books.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Track {
  umemAdaptor adaptor;
  umemTrackBooks books;
  umemTrack *ctx;
  unsigned frames;
  struct Track *newer, *older; /* in the list of all; under the global lock */
} Track;

_Static_assert(UMEM_TRACK_FRAMES <= umemSiteFrames, "a site holds all frames");

static Track *newest;

static Track *track_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- allocation ---- */

/* Reserves a place and captures the call site. False with a status without memory. */
static bool prepare(umemVirtual *ctx, bool aligned, umemTrackNote *note) {
  Track *track = track_of(ctx);
  *note = (umemTrackNote){.aligned = aligned};
  if (track->frames) note->trace = malloc(track->frames * sizeof *note->trace);
  if ((!track->frames || note->trace) && umemTrackBooks_reserve(&track->books)) {
    note->frames = (uint16_t)umemSite_capture(note->trace, track->frames);
    return true;
  }
  free(note->trace);
  umemVirtual_fail(ctx, umemMemoryError, "no memory to remember a block");
  return false;
}

/* Enters what the upstream has answered: a block at adr, or null. Returns adr. */
static uintptr_t enter(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemTrackNote note) {
  umemTrackBooks *books = &track_of(ctx)->books;
  if (adr != umem_null_of(ctx)) {
    umemTrackBooks_enter(books, adr, nbytes, note);
  } else {
    umemTrackBooks_release(books);
    free(note.trace);
  }
  return adr;
}

static uintptr_t track_alloc(umemVirtual *ctx, size_t nbytes) {
  umemTrackNote note;
  if (!prepare(ctx, false, &note)) return umem_null_of(ctx);
  return enter(ctx, umemAdaptor_alloc(ctx, nbytes), nbytes, note);
}

static uintptr_t track_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  umemTrackNote note;
  if (!prepare(ctx, false, &note)) return umem_null_of(ctx);
  return enter(ctx, umemAdaptor_calloc(ctx, nmemb, size), nmemb * size, note);
}

static uintptr_t track_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  umemTrackNote note;
  if (!prepare(ctx, true, &note)) return umem_null_of(ctx);
  return enter(ctx, umemAdaptor_aligned_alloc(ctx, alignment, size), size, note);
}

/* ---- free ---- */

/* Says what is wrong with adr, where no block begins. */
static void refuse_unknown(umemVirtual *ctx, uintptr_t adr) {
  umemTrackBlock around;
  if (umemTrackBooks_find(&track_of(ctx)->books, adr, &around) && around.adr != adr)
    umemVirtual_fail(ctx, umemValueError,
                     "0x%" PRIxPTR " lies %zu bytes inside the block of %zu bytes at 0x%" PRIxPTR,
                     adr, (size_t)(adr - around.adr), around.nbytes, around.adr);
  else
    umemVirtual_fail(ctx, umemValueError,
                     "0x%" PRIxPTR " is no live block: it is free already, or never was one", adr);
}

/* Whether the block at adr may go; then it is leaving, and *number tells which it is. False with a
 * status otherwise. wanted: its bytes; 0 for any number. */
static bool may_leave(umemVirtual *ctx, uintptr_t adr, bool aligned, size_t wanted,
                      uint64_t *number) {
  umemTrackBlock block;
  switch (umemTrackBooks_leave(&track_of(ctx)->books, adr, aligned, wanted, &block)) {
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

static void give_back(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  uint64_t number;
  if (!may_leave(ctx, adr, aligned, 0, &number)) return;
  uint64_t before = umem_thread.failures;
  (aligned ? umemAdaptor_aligned_free : umemAdaptor_free)(ctx, adr);
  umemTrackBooks_settle(&track_of(ctx)->books, adr, number, umem_thread.failures == before);
}

static void track_free(umemVirtual *ctx, uintptr_t adr) { give_back(ctx, adr, false); }
static void track_aligned_free(umemVirtual *ctx, uintptr_t adr) { give_back(ctx, adr, true); }

static uintptr_t track_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  umemTrackNote note;
  uint64_t number;
  uintptr_t null = umem_null_of(ctx);
  if (!prepare(ctx, false, &note)) return null;
  if (!may_leave(ctx, adr, false, old_size, &number)) return enter(ctx, null, 0, note);
  uintptr_t moved = umemAdaptor_realloc(ctx, adr, old_size, new_size);
  enter(ctx, moved, new_size, note);
  umemTrackBooks_settle(&track_of(ctx)->books, adr, number, moved != null);
  return moved;
}

/* ---- the end ---- */

enum { told_leaks = 3 };

/* The live block with the lowest number above the given one. */
static bool next_by_age(umemTrackBooks *books, uint64_t number, umemTrackBlock *oldest) {
  umemTrackBlock block;
  bool found = false;
  for (uintptr_t adr = 0; umemTrackBooks_next(books, adr, &block); adr = block.adr + 1)
    if (block.number > number && (!found || block.number < oldest->number)) {
      *oldest = block;
      found = true;
    }
  return found;
}

/* Records the blocks that are live, if there are any. Other threads may be using ctx. */
static void tell_leaks(umemVirtual *ctx) {
  umemTrackBooks *books = &track_of(ctx)->books;
  umemLock_acquire(&books->lock);
  size_t const count = books->count, nbytes = books->nbytes;
  umemLock_release(&books->lock);
  if (!count) return;
  char text[UMEM_MESSAGE_SIZE] = "";
  umemTrackBlock block = {.number = 0};
  size_t used = 0;
  for (int i = 0; i < told_leaks && next_by_age(books, block.number, &block); i++) {
    char site[UMEM_MESSAGE_SIZE / told_leaks];
    umemSite_name(block.trace, block.frames, site, sizeof site);
    int length = snprintf(text + used, sizeof text - used, "%s %zu at 0x%" PRIxPTR "%s%s",
                          i ? "," : "", block.nbytes, block.adr, *site ? " by " : "", site);
    if (length < 0 || (size_t)length >= sizeof text - used) break;
    used += (size_t)length;
  }
  umemVirtual_fail(ctx, umemRuntimeError, "%zu block%s, %zu bytes in all, %s not freed:%s%s", count,
                   count == 1 ? "" : "s", nbytes, count == 1 ? "was" : "were", text,
                   count > told_leaks ? ", ..." : "");
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
  tell_leaks(ctx);
  umemTrackBooks_fini(&track->books);
  umemAdaptor_dtor(ctx);
}

/* ---- construction ---- */

static bool check_options(umemVirtual *ctx, umemTrackOptions const *options) {
  if (options->frames > UMEM_TRACK_FRAMES)
    umemVirtual_fail(ctx, umemValueError, "%u frames are more than %d", options->frames,
                     UMEM_TRACK_FRAMES);
  else if (options->frames && !umemSite_can_capture())
    umemVirtual_fail(ctx, umemNotSupportedError, "this C library has no backtrace");
  else
    return true;
  return false;
}

static bool track_start(umemVirtual *ctx, void const *given) {
  umemTrackOptions const *options = given;
  Track *track = track_of(ctx);
  ctx->capabilities &= ~(uint32_t)umemPrompt; /* asking who called may load a library */
  if (!check_options(ctx, options)) return false;
  if (!umemTrackBooks_init(&track->books)) {
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
    .finish = tell_leaks,
    .alloc = track_alloc,
    .calloc = track_calloc,
    .aligned_alloc = track_aligned_alloc,
    .realloc = track_realloc,
    .free = track_free,
    .aligned_free = track_aligned_free,
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

umemStatusType umemTrack_ctor(umemTrack *ctx, void *upstream, umemTrackOptions const *options) {
  UMEM_ENTER();
  return umemAdaptor_construct(ctx, upstream, false, &umem_track_kind, options);
}

umemStatusType umemTrack_adopt(umemTrack *ctx, void *upstream, umemTrackOptions const *options) {
  UMEM_ENTER();
  return umemAdaptor_construct(ctx, upstream, true, &umem_track_kind, options);
}

/* ---- questions ---- */

/* Whether ctx is one; false with a status otherwise. */
static bool is_track(umemTrack *ctx) { return umemKind_check(ctx, &umem_track_kind) != NULL; }

/* Whether block can be written; false with a status otherwise. */
static bool check_block(void *ctx, umemTrackBlock const *block) {
  if (!block || block->size >= offsetof(umemTrackBlock, frames)) return true;
  umemVirtual_fail(ctx, umemValueError,
                   "block->size is %zu: set it to sizeof(umemTrackBlock) before the call",
                   block->size);
  return false;
}

static void write_block(umemTrackBlock *to, umemTrackBlock *found, umemTrack *ctx) {
  if (!to) return;
  found->size = to->size;
  found->ctx = ctx;
  memcpy(to, found, to->size < sizeof *found ? to->size : sizeof *found);
}

bool umemTrack_find(umemTrack *ctx, uintptr_t adr, umemTrackBlock *block) {
  UMEM_ENTER();
  umemTrackBlock found = UMEM_TRACK_BLOCK_INIT;
  if (!is_track(ctx) || !check_block(ctx, block)) return false;
  if (!umemTrackBooks_find(&track_of(&ctx->super)->books, adr, &found)) return false;
  write_block(block, &found, ctx);
  return true;
}

bool umemTrack_next(umemTrack *ctx, uintptr_t from, umemTrackBlock *block) {
  UMEM_ENTER();
  umemTrackBlock found = UMEM_TRACK_BLOCK_INIT;
  if (!is_track(ctx) || !check_block(ctx, block)) return false;
  if (!umemTrackBooks_next(&track_of(&ctx->super)->books, from, &found)) return false;
  write_block(block, &found, ctx);
  return true;
}

size_t umemTrack_count(umemTrack *ctx, size_t *nbytes) {
  UMEM_ENTER();
  if (nbytes) *nbytes = 0;
  if (!is_track(ctx)) return 0;
  umemTrackBooks *books = &track_of(&ctx->super)->books;
  umemLock_acquire(&books->lock);
  size_t count = books->count;
  if (nbytes) *nbytes = books->nbytes;
  umemLock_release(&books->lock);
  return count;
}

/* Looks through the whole list under the global lock, so that nothing in it ends meanwhile. Under
 * that no lock may be waited for: *busy tells that one was taken, and the answer is none. */
static Track *owner_of(uintptr_t adr, umemTrackBlock *found, bool *busy) {
  Track *owner = NULL;
  *busy = false;
  umemLock_acquire_global();
  for (Track *track = newest; track && !owner && !*busy; track = track->older) {
    if (umem_can(&track->ctx->super, umemOffsets)) continue;
    *busy = !umemLock_try(&track->books.lock);
    if (*busy) break;
    if (umemTrackBooks_find_locked(&track->books, adr, found)) owner = track;
    umemLock_release(&track->books.lock);
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
