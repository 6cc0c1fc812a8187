/* cudart_wrap.h - a table umemCudaRt in front of another one, CUDA's or the double: it counts
 * the calls, makes chosen ones fail, and keeps records of what was made and is not destroyed yet.
 * Thread-safe. */
#pragma once

#include <stdbool.h>

#include "cuda/cuda_rt.h"

/* The table in front of the one behind. */
umemCudaRt const *cudart_wrap(umemCudaRt const *behind);

/* The nth call from now (1: the next) fails with error, and does nothing; error_name,
 * error_string and last_error are neither counted nor fail. */
void cudart_wrap_fail(unsigned long nth, int error);

/* Disarms. Returns cudart_wrap_failed. */
char const *cudart_wrap_off(void);

/* The function that was made to fail since it was armed, or NULL. */
char const *cudart_wrap_failed(void);

/* Calls are neither counted nor fail until the next of the two; for all threads. */
void cudart_wrap_hold(bool hold);

/* What was made and not destroyed. */
typedef struct CudartWrapLive {
  long blocks, pinned, registered, streams, events, pools, ranges, primaries;
} CudartWrapLive;

CudartWrapLive cudart_wrap_live(void);
