/* cuda_event.h - events, and the order of the legacy stream. */
#ifndef UMEM_CUDA_EVENT_H
#define UMEM_CUDA_EVENT_H

#include "cuda/cuda_gpu.h"

/* Returns an event of gpu for the caller alone: nobody else records it, also not in a capture. NULL, with a
 * status on ctx, when there is none. Called in gpu's scope. */
void *umemCudaGpu_take_event(umemCudaGpu *gpu, umemVirtual *ctx);

/* Takes the event back; whatever waits for it goes on waiting. In the scope of any GPU. */
void umemCudaGpu_give_event(umemCudaGpu *gpu, void *event);

/* Destroys the events of gpu that nobody uses: before its context ends. In no scope. */
void umemCudaGpu_destroy_events(umemCudaGpu *gpu);

/* Returns when all work is done that precedes the end of the legacy stream of gpu: what is queued on it, and on
 * the streams that it waits for. Returns false, with a status on ctx, when that fails. Called in gpu's scope. */
bool umemCudaGpu_settle(umemCudaGpu *gpu, umemVirtual *ctx);

/* Orders later work of stream, of any GPU, after what is queued on the legacy stream of gpu. Returns false,
 * with a status on ctx, when that fails. Called in the scope of stream's GPU. */
bool umemCudaGpu_precedes(umemCudaGpu *gpu, umemVirtual *ctx, void *stream);

#endif
