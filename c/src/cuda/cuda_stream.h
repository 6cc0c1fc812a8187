/* cuda_stream.h - waiting for the stream of a CUDA context, and captures of it. */
#ifndef UMEM_CUDA_STREAM_H
#define UMEM_CUDA_STREAM_H

#include "cuda/cuda_state.h"

/* Whether the stream of state is being captured into a graph: work on it is recorded, and waiting for it would
 * invalidate the capture. In a scope. */
bool umemCudaState_is_captured(umemCudaState const *state);

/* Returns when the work on the stream of state is done, with the runtime's error. In a scope. */
int umemCudaState_finish(umemCudaState const *state);

/* The same where another thread may begin a capture of the stream at any time: then it returns
 * umemCudaCaptureUnsupported and leaves the capture whole. Records on ctx that there is no event. */
int umemCudaState_finish_apart(umemCudaState const *state, umemVirtual *ctx);

/* Whether the stream of ctx is being captured; then records umemNotSupportedError with this advice. In a
 * scope. */
bool umemCuda_refuse_capture(umemVirtual *ctx, char const *advice);

#endif
