/* umem/debug.h - a context that finds wrong writes and wrong frees of another one's blocks. */
#ifndef UMEM_DEBUG_H
#define UMEM_DEBUG_H

#include <umem/base.h>

/* Everything is that of the context below, upstream, but that
 *
 * - each block lies between guard bytes, UMEM_DEBUG_GUARD: the one in front is as long as the
 *   options say, rounded up so that alignment is kept, the one behind begins right at the requested
 *   size;
 * - new blocks, but those of calloc, are full of UMEM_DEBUG_NEW;
 * - freed blocks are filled with UMEM_DEBUG_FREED and wait, before upstream gets them back, until
 *   more than so many wait. When upstream is out of memory all of them go, and it is asked again;
 * - sets and copies that touch a guard or a freed block are umemIndexError, and touch nothing;
 * - a free or resize of anything but a live block, a second free, one by the wrong function and a
 *   resize with the wrong old size are umemValueError, and change nothing.
 *
 * A byte that was overwritten is a umemIndexError, told once for what is around a block and once for
 * its inside: where it was, what stood there, and, where call sites are kept, who allocated the
 * block and who freed it. It is looked for
 *
 * - around a block when it is freed or resized,
 * - around and in a freed block when it goes back to upstream,
 * - everywhere by umemDebug_check and umem_dtor, in what waits by umem_trim.
 *
 * Memory that is not the CPU's (a GPU's, a file's) or that is ordered is filled by umem_set, in
 * order; it is looked at in batches, when an eighth of what waits goes back to upstream at once:
 * copied to the host in order, waited for once, compared. There a wrong write around a block is
 * found after its free, not at it.
 *
 * The call that tells of a wrong write does nothing else: a free leaves its block live, an
 * allocation is null, umem_trim keeps the rest. Made again, it succeeds.
 *
 * Blocks larger than the options let wait are guarded, but neither filled nor kept. Blocks that are
 * live when ctx ends go back to upstream: a umemTrack goes over it, not under it. A umemDebug of
 * UMEM_DEFAULT, if it is over RAM, looks at the end of the process as umemDebug_check does (default.h). A
 * child of fork leaves alone what it shares with its parent, as a file: it neither fills it nor looks at it.
 *
 * All threads share one lock, which is held for a look-up and not while upstream works. A block
 * costs about 180 bytes beside its guards, and 16 for each frame.
 *
 * Threads: as many as upstream allows. */
typedef struct umemDebug {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemDebug;

/* What memory is filled with: the bytes of Microsoft's debug heap (CRT), which people know. */
#define UMEM_DEBUG_GUARD 0xFD
#define UMEM_DEBUG_NEW 0xCD
#define UMEM_DEBUG_FREED 0xDD

/* The most frames of a call site that are kept. */
#define UMEM_DEBUG_FRAMES 32

/* The largest guard, in bytes. */
#define UMEM_DEBUG_LARGEST_GUARD 65536

/* What umemDebug_ctor is told. */
typedef struct umemDebugOptions {
  size_t size;       /* sizeof(umemDebugOptions) as the caller was compiled */
  size_t guard;      /* bytes on either side of a block, at least: 1 ... UMEM_DEBUG_LARGEST_GUARD */
  size_t kept_bytes; /* how many bytes of freed blocks may wait, guards included */
  size_t kept_blocks; /* how many of them; 0: none waits */
  unsigned frames;    /* how many frames of the stack are kept of each allocation and free; each
                         costs time */
  bool fill;          /* whether new blocks are filled */
} umemDebugOptions;

/* What umemDebugOptions start as. */
#define UMEM_DEBUG_OPTIONS_INIT                                                                    \
  { sizeof(umemDebugOptions), 32, 16 << 20, 1024, 0, true }

/* upstream: any context that can be read and written; borrowed, it must live longer than ctx.
 * options: borrowed for the call; NULL for what they start as.
 * Errors: umemValueError for NULL, a wrong size, a guard out of range or more than
 * UMEM_DEBUG_FRAMES frames; umemMemoryError; umemNotSupportedError for an upstream that cannot be
 * read or written, and for frames where the C library has no backtrace; the status of an upstream
 * that is not constructed. */
UMEM_EXTERN umemStatusType umemDebug_ctor(umemDebug *ctx, void *upstream,
                                          umemDebugOptions const *options);

/* The same, but ctx owns upstream from now on: its end is upstream's, by umem_dtor (the struct
 * stays the caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemDebug_adopt(umemDebug *ctx, void *upstream,
                                           umemDebugOptions const *options);

/* Looks at all guards and at all freed blocks that wait, which stay. On an ordered context what is
 * queued is done first.
 * Errors: umemIndexError for wrong writes that were not told yet, all of them; the failures of
 * upstream's copies; umemTypeError, here and below, when ctx is no umemDebug. */
UMEM_EXTERN umemStatusType umemDebug_check(umemDebug *ctx);

/* What is wrong. */
typedef enum umemDebugKind {
  umemDebugNothing = 0,
  umemDebugUnderflow,      /* bytes before a block were overwritten */
  umemDebugOverflow,       /* bytes behind a block were overwritten */
  umemDebugWriteAfterFree, /* bytes of a freed block were overwritten */
  umemDebugBadAccess,      /* a set or copy would touch a guard or a freed block */
  umemDebugDoubleFree,     /* the block is free already */
  umemDebugInnerFree,      /* the address lies inside a block or its guards */
  umemDebugUnknownFree,    /* the address lies in no block */
  umemDebugWrongFunction,  /* umem_free of an aligned block, or the other way round */
  umemDebugWrongSize       /* the old size of a resize is not that of the block */
} umemDebugKind;

/* One wrong write or call. What is not known is zero. */
typedef struct umemDebugFault {
  size_t size; /* sizeof(umemDebugFault) as the caller was compiled; set it before */
  void *ctx;   /* the umemDebug that has found it */
  umemDebugKind kind;
  uintptr_t adr;             /* where the block begins; the given address of an unknown one */
  size_t nbytes;             /* of the block, as many as were asked for */
  uint64_t number;           /* counts the allocations of ctx, from 1 */
  int64_t offset;            /* of the first wrong byte, or of the address, from adr on */
  size_t wrong;              /* how many bytes were overwritten; the wrong size of a resize */
  unsigned char found;       /* the first of them, */
  unsigned char expected;    /* and what had been there */
  bool aligned;              /* the block is of umem_aligned_alloc */
  bool freed;                /* it was free when this was found */
  unsigned allocated_frames; /* how many of the following there are */
  unsigned freed_frames;     /* the same of the free */
  /* return addresses, as of backtrace(3), from what called umem outwards; where that called a pool
   * above ctx, the first ones may lie in umem itself */
  void *allocated_at[UMEM_DEBUG_FRAMES];
  void *freed_at[UMEM_DEBUG_FRAMES];
} umemDebugFault;

/* What a umemDebugFault starts as. */
#define UMEM_DEBUG_FAULT_INIT                                                                      \
  {                                                                                                \
    sizeof(umemDebugFault), NULL, umemDebugNothing, 0, 0, 0, 0, 0, 0, 0, false, false, 0, 0,       \
        {NULL}, {                                                                                  \
      NULL                                                                                         \
    }                                                                                              \
  }

/* Whether ctx has told anything since it was constructed; the first of it goes to *fault, at most
 * fault->size bytes, if fault is not NULL. False with a status for a size that is too small to be true
 * (umemValueError), and for a context that is not constructed or no umemDebug. */
UMEM_EXTERN bool umemDebug_first(umemDebug *ctx, umemDebugFault *fault);

/* Figures of a umemDebug. Bytes are those that were asked for, but of kept_bytes. */
typedef struct umemDebugFigures {
  size_t size;        /* sizeof(umemDebugFigures) as the caller was compiled; set it before */
  uint64_t faults;    /* told so far */
  size_t live_blocks; /* not freed */
  size_t live_bytes;
  size_t kept_blocks; /* freed, and waiting */
  size_t kept_bytes;  /* guards included */
} umemDebugFigures;

/* What umemDebugFigures start as. */
#define UMEM_DEBUG_FIGURES_INIT                                                                    \
  { sizeof(umemDebugFigures), 0, 0, 0, 0, 0 }

/* Tells the figures of now; at most figures->size bytes are written. Errors: umemValueError. */
UMEM_EXTERN umemStatusType umemDebug_get(umemDebug *ctx, umemDebugFigures *figures);

#endif
