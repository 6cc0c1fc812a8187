/* umem/debug.h - a context that finds wrong writes and wrong frees of another one's blocks. */
#ifndef UMEM_DEBUG_H
#define UMEM_DEBUG_H

#include <umem/base.h>

/* A umemDebug passes every call on to another context, upstream. In addition it
 *
 * - puts red zones, filled with UMEM_DEBUG_GUARD, around each block. The one in front is as long
 *   as the option guard says, rounded up to keep the alignment. The one behind begins right after
 *   the requested bytes;
 * - fills new blocks with UMEM_DEBUG_NEW, but not those of calloc;
 * - fills freed blocks with UMEM_DEBUG_FREED and keeps them. If it keeps more than the options
 *   allow, it gives the oldest back to upstream. If upstream is out of memory, it gives all of them
 *   back and makes the request once more;
 * - refuses sets and copies that touch a red zone or a freed block: they fail with umemIndexError
 *   and touch nothing;
 * - refuses a free or resize of an address that is not a live block, a second free, a free by the
 *   wrong function and a resize with the wrong old size: they fail with umemValueError and change
 *   nothing.
 *
 * An overwritten byte is a finding. ctx reports it as umemIndexError, once for the bytes around a
 * block and once for the bytes inside. The message contains the offset of the byte, its value, and
 * with the option frames the functions that allocated and freed the block. ctx looks for
 * overwritten bytes
 *
 * - around a block when it is freed or resized,
 * - around and in a freed block when ctx gives it back to upstream,
 * - in all blocks in umemDebug_check and umem_dtor, and in the freed blocks that umem_trim gives
 *   back.
 *
 * If the CPU cannot access the memory (a GPU, a file), or if upstream is ordered, ctx fills blocks
 * by umem_set, in order. It checks them in batches, when it gives an eighth of the kept blocks back
 * to upstream: it copies them to the host in order, waits once, and compares. There it finds a
 * wrong write around a block only after the free.
 *
 * A call that reports a wrong write does nothing else: a free leaves its block live, an allocation
 * returns null, umem_trim keeps the rest. The same call succeeds when the program makes it again.
 *
 * Blocks larger than kept_bytes have red zones, but ctx neither fills nor keeps them. umem_dtor
 * gives blocks that are still live back to upstream; this is not an error. To find leaks, put a
 * umemTrack over ctx, not below it. A umemDebug over RAM that UMEM_DEFAULT names checks all blocks
 * at the end of the process (default.h). In a child of fork, ctx neither fills nor checks memory
 * that the child shares with its parent, such as a file, and gives none back to upstream.
 *
 * All threads share one lock. ctx holds it for a look-up, and not while upstream works. The record
 * of a block takes about 180 bytes of RAM, and 16 for each frame.
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

/* The longest red zone, in bytes. */
#define UMEM_DEBUG_LARGEST_GUARD 65536

/* What umemDebug_ctor takes. */
typedef struct umemDebugOptions {
  size_t size;        /* sizeof(umemDebugOptions) as the caller was compiled */
  size_t guard;       /* least bytes of a red zone: 1 ... UMEM_DEBUG_LARGEST_GUARD */
  size_t kept_bytes;  /* most bytes of freed blocks that ctx keeps, with their red zones */
  size_t kept_blocks; /* most freed blocks that ctx keeps; 0: none */
  unsigned frames;    /* most frames of the stack to record for each allocation and free: about 1 us
                         for eight */
  bool fill;          /* whether new blocks are filled */
} umemDebugOptions;

/* The defaults. */
#define UMEM_DEBUG_OPTIONS_INIT                                                                    \
  { sizeof(umemDebugOptions), 32, 16 << 20, 1024, 0, true }

/* upstream: any readable and writable context; borrowed, it must live longer than ctx. options:
 * borrowed for the call; NULL: the defaults. Errors: umemValueError for NULL, a wrong size, a guard
 * out of range or more than UMEM_DEBUG_FRAMES frames; umemMemoryError; umemNotSupportedError for an
 * upstream that is not readable or not writable, and for frames if the C library has no backtrace;
 * the status of an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemDebug_ctor(umemDebug *ctx, void *upstream,
                                          umemDebugOptions const *options);

/* Constructs ctx as umemDebug_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemDebug_adopt(umemDebug *ctx, void *upstream,
                                           umemDebugOptions const *options);

/* Checks all red zones, and all freed blocks that ctx keeps; it goes on keeping them. On an ordered
 * context it waits for queued work first. Errors: umemIndexError for each wrong write that was not
 * reported yet; the failures of upstream's copies; umemTypeError, here and below, if ctx is not a
 * umemDebug. */
UMEM_EXTERN umemStatusType umemDebug_check(umemDebug *ctx);

/* What a finding is about. */
typedef enum umemDebugKind {
  umemDebugNothing = 0,
  umemDebugUnderflow,      /* bytes before a block were overwritten */
  umemDebugOverflow,       /* bytes behind a block were overwritten */
  umemDebugWriteAfterFree, /* bytes of a freed block were overwritten */
  umemDebugBadAccess,      /* a set or copy would touch a red zone or a freed block */
  umemDebugDoubleFree,     /* the block is free already */
  umemDebugInnerFree,      /* the address is inside a block or its red zones */
  umemDebugUnknownFree,    /* no block contains the address */
  umemDebugWrongFunction,  /* umem_free of an aligned block, or the other way round */
  umemDebugWrongSize       /* the old size of a resize is not that of the block */
} umemDebugKind;

/* A finding: one wrong write or call. Unknown members are zero. In spite of the name, it has
 * nothing to do with umemFault, which injects failures. */
typedef struct umemDebugFault {
  size_t size; /* sizeof(umemDebugFault) as the caller was compiled; set it before */
  void *ctx;   /* the umemDebug that reports it */
  umemDebugKind kind;
  uintptr_t adr;             /* where the block begins; the given address of an unknown one */
  size_t nbytes;             /* of the block, as requested */
  uint64_t number;           /* counts the allocations of ctx, from 1 */
  int64_t offset;            /* of the first wrong byte, or of the address, from adr on */
  size_t wrong;              /* how many bytes were overwritten; the wrong size of a resize */
  unsigned char found;       /* the first wrong byte */
  unsigned char expected;    /* the byte that should be there */
  bool aligned;              /* the block was allocated by umem_aligned_alloc */
  bool freed;                /* the block was free when ctx found this */
  unsigned allocated_frames; /* used elements of allocated_at */
  unsigned freed_frames;     /* used elements of freed_at */
  /* return addresses, as of backtrace(3), from the caller of umem outwards. If there is a pool
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

/* Returns whether ctx has reported a finding since it was constructed. If so, and if fault is not
 * NULL, writes the first finding to *fault, at most fault->size bytes. Returns false, and records a
 * status, for a size that is too small (umemValueError), and for a context that is not constructed
 * or not a umemDebug. */
UMEM_EXTERN bool umemDebug_first(umemDebug *ctx, umemDebugFault *fault);

/* Figures of a umemDebug. Sizes are in bytes, as requested; kept_bytes includes the red zones. */
typedef struct umemDebugFigures {
  size_t size;        /* sizeof(umemDebugFigures) as the caller was compiled; set it before */
  uint64_t faults;    /* findings reported so far */
  size_t live_blocks; /* not freed */
  size_t live_bytes;
  size_t kept_blocks; /* freed, and not yet given back to upstream */
  size_t kept_bytes;  /* red zones included */
} umemDebugFigures;

/* What umemDebugFigures start as. */
#define UMEM_DEBUG_FIGURES_INIT                                                                    \
  { sizeof(umemDebugFigures), 0, 0, 0, 0, 0 }

/* Writes the current figures, at most figures->size bytes of them. Errors: umemValueError. */
UMEM_EXTERN umemStatusType umemDebug_get(umemDebug *ctx, umemDebugFigures *figures);

#endif
