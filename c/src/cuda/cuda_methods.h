/* cuda_methods.h - what the tables of contexts that GPUs copy have in common. */
#ifndef UMEM_CUDA_METHODS_H
#define UMEM_CUDA_METHODS_H

#include "cuda/cuda_copy.h"
#include "cuda/cuda_direct.h"
#include "cuda/cuda_state.h"

#define UMEM_CUDA_METHODS                                                                          \
  .is_same_device = umemCuda_is_same_device, .alloc = umemCuda_alloc, .free = umemCuda_free,       \
  .set = umemCuda_set, .copy_to = umemCuda_copy_to, .copy_from = umemCuda_copy_from,               \
  .copy_direct = umemCuda_copy_direct, .realloc = umemCuda_realloc

#endif
