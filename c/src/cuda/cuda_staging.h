/* cuda_staging.h - the process-wide set of pinned chunks that pageable memory passes through.
 *
 * umem pins a chunk at its first use, keeps it, and lends it again and again. The number of chunks in the
 * process is bounded: who finds none does without, and never waits. A chunk belongs to the GPU
 * in whose context it was pinned, and goes before that context does. */
#ifndef UMEM_CUDA_STAGING_H
#define UMEM_CUDA_STAGING_H

#include "cuda/cuda_gpu.h"

/* The figures of staging, from sweeps on an H200 and an H100 (PCIe 5, 16 cores, 2 MiB to 1 GiB). */
enum {
  umemStagingChunk = 4 << 20,    /* default bytes of a chunk */
  umemStagingChunks = 32,        /* default number of them in the process */
  umemStagingToDevice = 8 << 20, /* the runtime does shorter copies to a GPU */
  umemStagingToHost = 2 << 20,   /* and shorter ones from it */
  umemStagingFrom = 2 << 20,     /* the core does shorter ones of other contexts (core/run.c) */
  umemStagingWide = 128 << 20,   /* shorter copies gain nothing by more threads or longer pieces */
  umemStagingWideToHost = 64 << 20, /* the same from a GPU to pageable memory */
  umemStagingThreads = 8,           /* those that share a shorter copy */
  umemStagingChannels = 16,         /* and a longer one */
  umemStagingWriters = 2, /* those that share a copy to another context: files take one writer */
  umemStagingPart = 512 << 10,  /* bytes at least for each of them */
  umemStagingLeast = 128 << 10, /* bytes at least of a piece */
  umemStagingEdge =
      1 << 20, /* bytes at most of the first and the last pieces, where there are more */
  umemStagingPiece = 2 << 20,       /* bytes at most of a piece of a shorter copy */
  umemStagingIdleChannels = 32,     /* streams kept in the process */
  umemStagingBufferFrom = 64 << 10, /* shorter buffers are not worth a chunk */
};

typedef struct umemCudaChunk {
  struct umemCudaChunk *next;
  umemCudaGpu *gpu;
  char *memory;
  size_t nbytes;
  bool lent;
} umemCudaChunk;

/* An idle chunk of gpu, or a new one; NULL, with nothing recorded, when there is none. Called in
 * gpu's scope. */
umemCudaChunk *umemCudaChunk_take(umemCudaGpu *gpu);

/* The lent chunk of gpu that begins at adr; NULL when there is none. */
umemCudaChunk *umemCudaChunk_at(umemCudaGpu *gpu, void const *adr);

/* Takes a lent chunk back, which no transfer uses. In any scope. */
void umemCudaChunk_give(umemCudaChunk *chunk);

/* Bytes that a chunk holds from now on. */
size_t umemCudaChunks_size(void);

/* Releases those of gpu; as umemCuda_release_staging. */
void umemCudaChunks_release(umemCudaGpu *gpu);

#endif
