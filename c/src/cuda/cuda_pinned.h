/* cuda_pinned.h - page-locked host memory: blocks of it, the chunks that pageable memory passes
 * through, channels that transfer chunks, and the umemHost of CUDA contexts for intermediate
 * buffers.
 *
 * umem pins a chunk at its first use, keeps it, and lends it again and again. The number of chunks
 * in the process is bounded: a copy that finds none works without, and never waits. A chunk belongs
 * to the GPU in whose context it was pinned, and is released before that context.
 *
 * A channel is a stream and two pinned chunks, on which a thread stages a part of a copy. While the
 * thread fills or drains one chunk, the GPU transfers the other. */
#ifndef UMEM_CUDA_PINNED_H
#define UMEM_CUDA_PINNED_H

#include "cuda/cuda_scope.h"

#include <stddef.h>
#include <umem/host.h>

/* ==== blocks ==== */

/* Allocates and frees nbytes of page-locked host memory. Large blocks are mapped, touched by
 * several threads, then registered; small blocks and write-combined ones come from the runtime.
 * Return the runtime's error. In a scope. flags: umemCudaPortable and so on. */
int umemCuda_pin(umemCudaRt const *rt, void **adr, size_t nbytes, unsigned flags);
int umemCuda_unpin(umemCudaRt const *rt, void *adr, size_t nbytes, unsigned flags);

/* ==== copies that are queued together ==== */

enum { umemCudaBatchMost = 256 };

typedef struct umemCudaBatch {
  size_t count;
  void *dst[umemCudaBatchMost];
  void const *src[umemCudaBatchMost];
  size_t nbytes[umemCudaBatchMost];
} umemCudaBatch;

/* Queues the copies of batch, which becomes empty, on a stream. together: the stream is neither the
 * legacy one nor captured. Returns the runtime's error. */
int umemCudaBatch_start(umemCudaRt const *rt, umemCudaBatch *batch, umemCudaDirection direction,
                        void *stream, bool together);

/* ==== chunks ==== */

/* The figures of staging, from sweeps on an H200 and an H100 (PCIe 5, 16 cores, 2 MiB to 1 GiB). */
enum {
  umemStagingChunk = 2 << 20,    /* default bytes of a chunk */
  umemStagingChunks = 96,        /* default number of them in the process: for two feeds */
  umemStagingToDevice = 8 << 20, /* the runtime does shorter copies to a GPU */
  umemStagingToHost = 2 << 20,   /* and shorter ones from it */
  umemStagingFrom = 2 << 20,     /* the core does shorter ones of other contexts (core/plan.c) */
  umemStagingWide = 128 << 20,   /* shorter copies gain nothing by more threads or longer pieces */
  umemStagingWideToHost = 64 << 20, /* the same from a GPU to pageable memory */
  umemStagingThreads = 8,           /* those that share a shorter copy */
  umemStagingChannels = 16,         /* and a longer one */
  umemStagingWriters = 2, /* those that share a copy to another context: files take one writer */
  umemStagingPart = 512 << 10,  /* bytes at least for each of them */
  umemStagingLeast = 128 << 10, /* bytes at least of a piece */
  /* bytes at most of the first and the last pieces, where there are more */
  umemStagingEdge = 1 << 20,
  umemStagingPiece = 2 << 20,       /* bytes at most of a piece of a shorter copy */
  umemStagingIdleChannels = 32,     /* streams kept in the process */
  umemStagingBufferFrom = 64 << 10, /* shorter buffers are not worth a chunk */
};

typedef struct umemCudaChunk {
  struct umemCudaChunk *next, *kept; /* kept: the next one that a channel keeps */
  umemCudaGpu *gpu;
  char *memory;
  size_t nbytes;
  bool lent;
} umemCudaChunk;

/* An idle chunk of gpu, or a new one; NULL, with nothing recorded, when there is none. Called in
 * gpu's scope. */
umemCudaChunk *umemCudaChunk_take(umemCudaGpu *gpu);

/* Takes a lent chunk back, which no transfer uses. In any scope. */
void umemCudaChunk_give(umemCudaChunk *chunk);

/* ==== channels ==== */

enum { umemChannelChunks = 2 };

typedef struct umemCudaChannel {
  struct umemCudaChannel *next; /* of those not in use */
  umemCudaGpu *gpu;
  void *stream;                             /* waits for no other but by events */
  umemCudaChunk *chunks[umemChannelChunks]; /* lent, while the channel is in use; as are */
  umemCudaChunk *kept;                      /* these, which users have sent from, too */
  void *events[umemChannelChunks];          /* when the transfer of each is done */
  bool in_flight[umemChannelChunks];        /* it may not be done */
  bool broken;                              /* a call has failed: not to be used again */
} umemCudaChannel;

/* A channel of gpu with its chunks; NULL, with nothing recorded, when there is none. Called in
 * gpu's scope, as all others of these. */
umemCudaChannel *umemCudaChannel_take(umemCudaGpu *gpu);
/* Likewise without chunks: a stream and events. */
umemCudaChannel *umemCudaChannel_take_stream(umemCudaGpu *gpu);

/* Takes a channel back. If its transfers may still be in flight, because waiting for them failed,
 * keeps it aside with its chunks until umemCuda_end_lost. */
void umemCudaChannel_give(umemCudaChannel *channel);

/* From now on a lent chunk, from which a transfer of the channel may be in flight, goes back with
 * the channel. */
void umemCudaChannel_keep(umemCudaChannel *channel, umemCudaChunk *chunk);

/* Waits again for transfers of gpu that could not be waited for, before memory that they may write
 * to is used otherwise. In gpu's scope. */
void umemCuda_end_lost(umemCudaGpu *gpu);

/* Waits for its transfers and gives it back, in no scope. Records nothing. Where the GPU cannot be
 * entered any more, they may still be in flight. */
void umemCudaChannel_close(umemVirtual *ctx, umemCudaChannel *channel);

/* What each chunk holds at least. */
size_t umemCudaChannel_room(umemCudaChannel const *channel);

/* Starts a transfer of nbytes between adr and chunk b, whose last transfer is done. Returns the
 * runtime's error. */
int umemCudaChannel_start(umemCudaChannel *channel, unsigned b, void *adr, size_t nbytes,
                          umemCudaDirection direction);

/* A transfer of chunk b in parts: any number of calls for parts of it, and one that ends it. Return
 * the runtime's error. */
int umemCudaChannel_add(umemCudaChannel *channel, unsigned b, umemCudaBatch *parts,
                        umemCudaDirection direction);
int umemCudaChannel_end(umemCudaChannel *channel, unsigned b);

/* Returns when the transfer of chunk b, if any, is done. */
int umemCudaChannel_settle(umemCudaChannel *channel, unsigned b);

/* Returns when all transfers are done. If waiting fails they stay in flight. */
int umemCudaChannel_finish(umemCudaChannel *channel);

/* Releases the idle chunks, streams and events that were made in gpu's context. Called in no scope
 * and without the global lock, when no umem context uses gpu any more and before its context is
 * released. In a child of fork it only forgets them. */
void umemCuda_release_staging(umemCudaGpu *gpu);

/* ==== buffers ==== */

typedef struct umemCudaBuffers {
  umemHost host;
  umemCudaGpu *gpu; /* borrowed */
} umemCudaBuffers;

/* Constructs buffers as a umemHost that lends pinned chunks of gpu, and plain memory where none is
 * left or the request is too small or too large for one. Its blocks end before gpu is closed. */
void umemCudaBuffers_ctor(umemCudaBuffers *buffers, umemCudaGpu *gpu);

#endif
