/* umem/debug.h - a context that finds wrong writes and wrong frees of another one's blocks. */
#ifndef UMEM_DEBUG_H
#define UMEM_DEBUG_H

#include <umem/base.h>

/* Passes every call on to another context, upstream, but
 *
 * - puts guard bytes, UMEM_DEBUG_GUARD, around each block. The guard in front is as long as the options
 *   say, rounded up so that the alignment stays; the guard behind begins right at the requested size;
 * - fills new blocks with UMEM_DEBUG_NEW, but not those of calloc;
 * - fills freed blocks with UMEM_DEBUG_FREED and keeps them until more than the options allow are kept;
 *   only then does it give the oldest back to upstream. When upstream is out of memory it gives all of them
 *   back and asks upstream again;
 * - fails with umemIndexError for sets and copies that touch a guard or a freed block; they touch nothing;
 * - fails with umemValueError for a free or resize of anything but a live block, a second free, a free by the
 *   wrong function and a resize with the wrong old size; they change nothing.
 *
 * A byte that was overwritten is a finding. ctx reports it as umemIndexError, once for the bytes around a
 * block and once for those inside: where the byte is, what was found there, and, if call sites are kept, who
 * allocated the block and who freed it. ctx looks for overwritten bytes
 *
 * - around a block when it is freed or resized,
 * - around and in a freed block when ctx gives it back to upstream,
 * - everywhere in umemDebug_check and umem_dtor, and in the freed blocks that umem_trim gives back.
 *
 * Memory that the CPU cannot reach directly (a GPU's, a file's) or that is ordered is filled by umem_set, in
 * order. ctx looks at it in batches, when it gives an eighth of the kept blocks back to upstream at once: it
 * copies them to the host in order, waits once, and compares. There a wrong write around a block is found
 * after its free, not in it.
 *
 * The call that reports a wrong write does nothing else: a free leaves its block live, an allocation returns
 * null, umem_trim keeps the rest. The same call succeeds when it is made again.
 *
 * Blocks larger than kept_bytes have guards, but are neither filled nor kept. Destroying ctx gives blocks
 * that are still live back to upstream; this is not an error, so put a umemTrack over it, not under it. A
 * umemDebug of UMEM_DEFAULT over RAM looks at the end of the process as umemDebug_check does (default.h). A
 * child of fork neither fills nor looks at what it shares with its parent, as a file.
 *
 * All threads share one lock. ctx holds it for a look-up and not while upstream works. A block costs about
 * 180 bytes beside its guards, and 16 for each frame.
 *
 * Threads: as many as upstream allows. */
typedef struct umemDebug {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemDebug;

/* What memory is filled with: the bytes of Microsoft's debug heap (CRT). */
#define UMEM_DEBUG_GUARD 0xFD
#define UMEM_DEBUG_NEW 0xCD
#define UMEM_DEBUG_FREED 0xDD

/* The most frames of a call site that are kept. */
#define UMEM_DEBUG_FRAMES 32

/* The largest guard, in bytes. */
#define UMEM_DEBUG_LARGEST_GUARD 65536

/* What umemDebug_ctor takes. */
typedef struct umemDebugOptions {
  size_t size;       /* sizeof(umemDebugOptions) as the caller was compiled */
  size_t guard;      /* bytes on either side of a block, at least: 1 ... UMEM_DEBUG_LARGEST_GUARD */
  size_t kept_bytes; /* of freed blocks that are kept, at most; guards included */
  size_t kept_blocks; /* how many freed blocks are kept, at most; 0: none */
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

/* The same, but ctx owns upstream and destroys it in umem_dtor (the memory of the struct stays the
 * caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemDebug_adopt(umemDebug *ctx, void *upstream,
                                           umemDebugOptions const *options);

/* Looks at all guards and at all freed blocks that are kept; they stay. On an ordered context queued work is
 * done first.
 * Errors: umemIndexError for each wrong write that was not reported yet; the failures of upstream's copies;
 * umemTypeError, here and below, when ctx is no umemDebug. */
UMEM_EXTERN umemStatusType umemDebug_check(umemDebug *ctx);

/* What a finding is about. */
typedef enum umemDebugKind {
  umemDebugNothing = 0,
  umemDebugUnderflow,      /* bytes before a block were overwritten */
  umemDebugOverflow,       /* bytes behind a block were overwritten */
  umemDebugWriteAfterFree, /* bytes of a freed block were overwritten */
  umemDebugBadAccess,      /* a set or copy would touch a guard or a freed block */
  umemDebugDoubleFree,     /* the block is free already */
  umemDebugInnerFree,      /* the address is inside a block or its guards */
  umemDebugUnknownFree,    /* the address is in no block */
  umemDebugWrongFunction,  /* umem_free of an aligned block, or the other way round */
  umemDebugWrongSize       /* the old size of a resize is not that of the block */
} umemDebugKind;

/* A finding: one wrong write or call. What is not known is zero. (umemFault injects failures; this does
 * not.) */
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
   * above ctx, the first ones may be in umem itself */
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

/* Whether ctx has reported a finding since it was constructed. The first one is written to *fault, at most
 * fault->size bytes, if fault is not NULL. False with a status for a size that is too small (umemValueError),
 * and for a context that is not constructed or no umemDebug. */
UMEM_EXTERN bool umemDebug_first(umemDebug *ctx, umemDebugFault *fault);

/* Figures of a umemDebug. Bytes are those that were asked for, but of kept_bytes. */
typedef struct umemDebugFigures {
  size_t size;        /* sizeof(umemDebugFigures) as the caller was compiled; set it before */
  uint64_t faults;    /* findings reported so far */
  size_t live_blocks; /* not freed */
  size_t live_bytes;
  size_t kept_blocks; /* freed, and not yet given back to upstream */
  size_t kept_bytes;  /* guards included */
} umemDebugFigures;

/* What umemDebugFigures start as. */
#define UMEM_DEBUG_FIGURES_INIT                                                                    \
  { sizeof(umemDebugFigures), 0, 0, 0, 0, 0 }

/* Writes the current figures, at most figures->size bytes of them. Errors: umemValueError. */
UMEM_EXTERN umemStatusType umemDebug_get(umemDebug *ctx, umemDebugFigures *figures);

#endif
