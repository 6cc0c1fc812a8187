/* umem/track.h - a context that knows every live block of another: which block holds an address, and
 * what leaks. */
#ifndef UMEM_TRACK_H
#define UMEM_TRACK_H

#include <umem/base.h>

/* Passes every call on to another context, upstream, and keeps a table of the live blocks that were
 * allocated through it:
 *
 * - It refuses a free or resize of anything else, a second free, a free by the wrong function (umem_free for
 *   a block of umem_aligned_alloc, or the other way round) and a resize with the wrong old size. These fail
 *   with umemValueError and never reach upstream.
 * - If blocks are live when ctx is destroyed, umem_dtor records a umemRuntimeError on ctx and the thread: how
 *   many blocks, how many bytes, and where the oldest of them were allocated. The blocks stay live in
 *   upstream. A umemTrack of UMEM_DEFAULT reports them at the end of the process (default.h).
 * - umemTrack_find and umemTrack_owner find the block that holds an address.
 *
 * For debugging: all threads share one lock. ctx holds it for a look-up and not while upstream works. A
 * look-up takes at most 16 steps. A block costs about 90 bytes, and 8 for each frame of its call site.
 *
 * Threads: as many as upstream allows. */
typedef struct umemTrack {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemTrack;

/* The most frames of a call site that are kept. */
#define UMEM_TRACK_FRAMES 32

/* What umemTrack_ctor takes. */
typedef struct umemTrackOptions {
  size_t size;     /* sizeof(umemTrackOptions) as the caller was compiled */
  unsigned frames; /* how many frames of the stack are kept of each allocation; each costs time */
} umemTrackOptions;

/* What umemTrackOptions start as: no call sites. */
#define UMEM_TRACK_OPTIONS_INIT                                                                    \
  { sizeof(umemTrackOptions), 0 }

/* upstream: any context; borrowed, it must live longer than ctx. options: borrowed for the call;
 * NULL for what they start as.
 * Errors: umemValueError for NULL, a wrong size or more than UMEM_TRACK_FRAMES frames;
 * umemMemoryError; umemNotSupportedError for frames where the C library has no backtrace; the
 * status of an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemTrack_ctor(umemTrack *ctx, void *upstream,
                                          umemTrackOptions const *options);

/* The same, but ctx owns upstream and destroys it in umem_dtor (the memory of the struct stays the
 * caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemTrack_adopt(umemTrack *ctx, void *upstream,
                                           umemTrackOptions const *options);

/* A live block. */
typedef struct umemTrackBlock {
  size_t size;     /* sizeof(umemTrackBlock) as the caller was compiled; set it before the call */
  void *ctx;       /* the umemTrack through which it was allocated */
  uintptr_t adr;   /* where it begins */
  size_t nbytes;   /* as many as were asked for */
  uint64_t number; /* counts the allocations of ctx, from 1 */
  unsigned frames; /* how many of the following there are */
  /* return addresses, as of backtrace(3), from what called umem outwards; where that called a pool
   * above ctx, the first ones may be in umem itself */
  void *trace[UMEM_TRACK_FRAMES];
} umemTrackBlock;

/* What a umemTrackBlock starts as. */
#define UMEM_TRACK_BLOCK_INIT                                                                      \
  {                                                                                                \
    sizeof(umemTrackBlock), NULL, 0, 0, 0, 0, { NULL }                                             \
  }

/* Whether a live block of ctx holds adr, at its beginning or further inside. If so, and if block is not
 * NULL, describes it in *block: at most block->size bytes are written. False without a status where there is
 * no such block. False with umemValueError for a size that is too small, or a context that is not
 * constructed; with umemTypeError for one of another kind. */
UMEM_EXTERN bool umemTrack_find(umemTrack *ctx, uintptr_t adr, umemTrackBlock *block);

/* The same for all umemTracks of the process whose addresses are memory (no umemOffsets), those
 * constructed last first. */
UMEM_EXTERN bool umemTrack_owner(uintptr_t adr, umemTrackBlock *block);

/* Describes the first live block that begins at or after from, as umemTrack_find does; false when there
 * is none. Walks over all blocks in order of address, also while other threads allocate:
 *
 *     for (adr = 0; umemTrack_next(ctx, adr, &block); adr = block.adr + 1) ... */
UMEM_EXTERN bool umemTrack_next(umemTrack *ctx, uintptr_t from, umemTrackBlock *block);

/* Returns how many blocks are live, and writes the sum of their bytes to *nbytes if nbytes is not NULL. */
UMEM_EXTERN size_t umemTrack_count(umemTrack *ctx, size_t *nbytes);

#endif
