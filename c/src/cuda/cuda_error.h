/* cuda_error.h - errors of CUDA as failures of umem. */
#ifndef UMEM_CUDA_ERROR_H
#define UMEM_CUDA_ERROR_H

#include "cuda/cuda_gpu.h"

/* Returns true if error is success. Otherwise it records a failure, clears the runtime's last error, and returns
 * false. The message contains what, formatted as by printf, and the text of the runtime; if the GPU is out of memory,
 * also its free and total bytes. Called in the thread that got the error, in gpu's scope. */
bool umemCuda_check(umemVirtual *ctx, umemCudaGpu *gpu, int error, char const *what, ...)
    UMEM_PRINTF(4, 5);

/* The same where the call takes as long as a call of CUDA: nothing is done after a success. error is evaluated twice. */
#define UMEM_CUDA_CHECK(ctx, gpu, error, ...)                                                      \
  (__builtin_expect(!(error), 1) || umemCuda_check((ctx), (gpu), (error), __VA_ARGS__))

/* The status that stands for error. */
umemStatusType umemCuda_status_of(int error);

/* Whether error is what using an event gives that was recorded in a capture into a graph, also one that is
 * over: then the event can be recorded anew. */
static inline bool umemCuda_is_of_captured_event(int error) {
  return error == umemCudaInvalidValue || error == umemCudaCaptureIsolation ||
         error == umemCudaCapturedEvent;
}

/* Makes a call of the table that gives something back, and makes it again if it fails: the error may be about work
 * before. What fails twice stays until the process ends. */
#define UMEM_CUDA_TRY_TWICE(rt, call)                                                              \
  do {                                                                                             \
    if ((rt)->call && (rt)->call) (rt)->last_error();                                              \
  } while (0)

/* Whether nothing works any more in this process after error. */
bool umemCuda_is_fatal(int error);

#endif
