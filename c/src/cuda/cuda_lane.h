/* cuda_lane.h - a lane: one of the ways side by side on which a copy is staged. It has a
 * stream of its own and two pinned chunks: while one of them is filled or drained, the other is on
 * its way. */
#ifndef UMEM_CUDA_LANE_H
#define UMEM_CUDA_LANE_H

#include "cuda/cuda_staging.h"

enum { umemLaneChunks = 2 };

typedef struct umemCudaLane {
  struct umemCudaLane *next; /* of those not in use */
  umemCudaGpu *gpu;
  void *stream;                          /* waits for no other but by events */
  umemCudaChunk *chunks[umemLaneChunks]; /* lent, while the lane is in use */
  void *events[umemLaneChunks];          /* when the transfer of each is done */
  bool in_flight[umemLaneChunks];        /* it may not be done */
  bool broken;                           /* a call has failed: not to be used again */
} umemCudaLane;

/* A lane of gpu with its chunks; NULL, with nothing recorded, when there is none. Called in gpu's
 * scope, as all others of these. */
umemCudaLane *umemCudaLane_take(umemCudaGpu *gpu);

/* Takes a lane back. One whose transfers may be in flight, as their completion could not be had, is
 * put aside with its chunks until umemCuda_release_staging. */
void umemCudaLane_give(umemCudaLane *lane);

/* Starts a transfer of nbytes between adr and chunk b, whose last transfer is done. Returns the
 * runtime's error. */
int umemCudaLane_start(umemCudaLane *lane, unsigned b, void *adr, size_t nbytes, umemCudaKind kind);

/* Returns when the transfer of chunk b, if any, is done. */
int umemCudaLane_settle(umemCudaLane *lane, unsigned b);

/* Returns when all transfers are done. If that cannot be had they stay in flight. */
int umemCudaLane_finish(umemCudaLane *lane);

#endif
