/* cuda_error.h - errors of CUDA as failures of umem. */
#ifndef UMEM_CUDA_ERROR_H
#define UMEM_CUDA_ERROR_H

#include "cuda/cuda_gpu.h"

/* Returns true when error is success. Otherwise records a failure, with what failed, in the words of printf, and
 * why, in the runtime's words, and with how much memory there is where memory is out; clears the runtime's last
 * error; returns false. Called in the thread that got the error, in gpu's scope. */
bool umemCuda_check(umemVirtual *ctx, umemCudaGpu *gpu, int error, char const *what, ...)
    UMEM_PRINTF(4, 5);

/* The status that stands for error. */
umemStatusType umemCuda_status_of(int error);

/* Whether error is what using an event gives that was recorded in a capture into a graph, also one that is
 * over: then the event can be recorded anew. */
static inline bool umemCuda_is_of_captured_event(int error) {
  return error == umemCudaInvalidValue || error == umemCudaCaptureIsolation ||
         error == umemCudaCapturedEvent;
}

/* Whether nothing works any more in this process after error. */
bool umemCuda_is_fatal(int error);

#endif
