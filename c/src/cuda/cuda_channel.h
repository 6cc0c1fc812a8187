/* cuda_channel.h - a channel: one of the ways side by side on which a copy is staged. It has a
 * stream of its own and two pinned chunks: while one of them is filled or drained, the other is on
 * its way. */
#ifndef UMEM_CUDA_CHANNEL_H
#define UMEM_CUDA_CHANNEL_H

#include "cuda/cuda_staging.h"

enum { umemChannelChunks = 2 };

typedef struct umemCudaChannel {
  struct umemCudaChannel *next; /* of those not in use */
  umemCudaGpu *gpu;
  void *stream;                             /* waits for no other but by events */
  umemCudaChunk *chunks[umemChannelChunks]; /* lent, while the channel is in use */
  void *events[umemChannelChunks];          /* when the transfer of each is done */
  bool in_flight[umemChannelChunks];        /* it may not be done */
  bool broken;                              /* a call has failed: not to be used again */
} umemCudaChannel;

/* A channel of gpu with its chunks; NULL, with nothing recorded, when there is none. Called in gpu's
 * scope, as all others of these. */
umemCudaChannel *umemCudaChannel_take(umemCudaGpu *gpu);

/* Takes a channel back. One whose transfers may be in flight, as their completion could not be had, is
 * put aside with its chunks until umemCuda_release_staging. */
void umemCudaChannel_give(umemCudaChannel *channel);

/* Starts a transfer of nbytes between adr and chunk b, whose last transfer is done. Returns the
 * runtime's error. */
int umemCudaChannel_start(umemCudaChannel *channel, unsigned b, void *adr, size_t nbytes,
                          umemCudaDirection direction);

/* Returns when the transfer of chunk b, if any, is done. */
int umemCudaChannel_settle(umemCudaChannel *channel, unsigned b);

/* Returns when all transfers are done. If that cannot be had they stay in flight. */
int umemCudaChannel_finish(umemCudaChannel *channel);

/* Releases the idle chunks, streams and events that were made in gpu's context. Called in no scope and without
 * the global lock, when no umem context uses gpu any more and before its context is released. In a child of
 * fork it only forgets them. */
void umemCuda_release_staging(umemCudaGpu *gpu);

#endif
