/* umem/track.h - a context that has a record of every live block of another one. It finds leaks,
 * wrong frees, and the block that contains an address. */
#ifndef UMEM_TRACK_H
#define UMEM_TRACK_H

#include <umem/base.h>

/* A umemTrack passes every call on to another context, upstream, and keeps a table of the live
 * blocks that were allocated through it:
 *
 * - It refuses a free or resize of an address that is not a live block, a second free, a free by
 *   the wrong function (umem_free for a block of umem_aligned_alloc, or the other way round) and a
 *   resize with the wrong old size. These calls fail with umemValueError and do not reach upstream.
 * - If blocks are live at its end, umem_dtor records a umemRuntimeError on ctx and the thread. The
 *   message contains the number of blocks and bytes, and where the oldest blocks were allocated.
 *   The blocks stay live in upstream. A umemTrack that UMEM_DEFAULT names reports them at the end
 *   of the process (default.h).
 * - umemTrack_find and umemTrack_owner find the block that contains an address.
 *
 * All threads share one lock. ctx holds it for a look-up, and not while upstream works. A look-up
 * takes at most 16 steps. The record of a block takes about 90 bytes of RAM, and 8 for each frame
 * of its call site.
 *
 * Threads: as many as upstream allows. */
typedef struct umemTrack {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemTrack;

/* The largest number of frames in a call site. */
#define UMEM_TRACK_FRAMES 32

/* What umemTrack_ctor takes. */
typedef struct umemTrackOptions {
  size_t size; /* sizeof(umemTrackOptions) as the caller was compiled */
  /* most frames of the stack to record for each allocation: about 1 us for eight */
  unsigned frames;
} umemTrackOptions;

/* The defaults: no call sites. */
#define UMEM_TRACK_OPTIONS_INIT                                                                    \
  { sizeof(umemTrackOptions), 0 }

/* upstream: any context; borrowed, it must live longer than ctx. options: borrowed for the call;
 * NULL: the defaults.
 * Errors: umemValueError for NULL, a wrong size or more than UMEM_TRACK_FRAMES frames;
 * umemMemoryError; umemNotSupportedError for frames if the C library has no backtrace; the
 * status of an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemTrack_ctor(umemTrack *ctx, void *upstream,
                                          umemTrackOptions const *options);

/* Constructs ctx as umemTrack_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemTrack_adopt(umemTrack *ctx, void *upstream,
                                           umemTrackOptions const *options);

/* A live block. */
typedef struct umemTrackBlock {
  size_t size;     /* sizeof(umemTrackBlock) as the caller was compiled; set it before the call */
  void *ctx;       /* the umemTrack through which it was allocated */
  uintptr_t adr;   /* where it begins */
  size_t nbytes;   /* as requested */
  uint64_t number; /* counts the allocations of ctx, from 1 */
  unsigned frames; /* used elements of trace */
  /* return addresses, as of backtrace(3), from the caller of umem outwards. If there is a pool
   * above ctx, the first ones may be in umem itself */
  void *trace[UMEM_TRACK_FRAMES];
} umemTrackBlock;

/* All zero, except the size. */
#define UMEM_TRACK_BLOCK_INIT                                                                      \
  {                                                                                                \
    sizeof(umemTrackBlock), NULL, 0, 0, 0, 0, { NULL }                                             \
  }

/* Returns whether a live block of ctx contains adr, at its beginning or further inside. If so, and
 * if block is not NULL, describes it in *block: writes at most block->size bytes. If there is no
 * such block, it returns false and records no status. Errors: umemValueError for a size that is too
 * small, or a context that is not constructed; umemTypeError if ctx is not a umemTrack; the result
 * is then false. */
UMEM_EXTERN bool umemTrack_find(umemTrack *ctx, uintptr_t adr, umemTrackBlock *block);

/* Searches all umemTracks of the process as umemTrack_find does, the last constructed one first.
 * Leaves out those whose addresses are offsets (umemOffsets). */
UMEM_EXTERN bool umemTrack_owner(uintptr_t adr, umemTrackBlock *block);

/* Describes the first live block that begins at or after from, as umemTrack_find does; returns
 * false if there is none. This loop visits all blocks in the order of their addresses, also while
 * other threads allocate:
 *
 *     for (adr = 0; umemTrack_next(ctx, adr, &block); adr = block.adr + 1) ... */
UMEM_EXTERN bool umemTrack_next(umemTrack *ctx, uintptr_t from, umemTrackBlock *block);

/* Returns how many blocks are live, and writes the sum of their bytes to *nbytes if nbytes is not
 * NULL. */
UMEM_EXTERN size_t umemTrack_count(umemTrack *ctx, size_t *nbytes);

#endif
