/* cuda_driver.h - the table of cuda_calls.h filled from NVIDIA's driver alone.
 *
 * Its library, libcuda.so.1, is wherever a GPU works, and is looked for when the table is first asked for: such a
 * build of umem needs no CUDA toolkit, and serves drivers of CUDA 12 and later. Memory, streams and events are the same
 * for the runtime, also for one that is in the process: both use the primary contexts of the GPUs. */
#ifndef UMEM_CUDA_DRIVER_H
#define UMEM_CUDA_DRIVER_H

#include "cuda/cuda_calls.h"

/* The table, whose cufile is the given function. Where there is no driver, or one without a function that umem needs,
 * absence of the table says so, and all calls fail with umemCudaInsufficientDriver. */
umemCudaRt const *umemCudaDriver_get(struct umemCufileRt const *(*cufile)(void));

#endif
