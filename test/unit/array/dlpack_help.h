/* dlpack_help.h - what the tests of umem/dlpack.h share. */
#pragma once

#include "array_help.h"

static inline void end(umemDLManagedTensorVersioned *tensor) { tensor->deleter(tensor); }

/* ---- tensors of others ---- */

static int deleted;
static inline void count_end(umemDLManagedTensorVersioned *self UNUSED) {
  __atomic_add_fetch(&deleted, 1, __ATOMIC_RELAXED);
}

static int32_t numbers[6] = {0, 1, 2, 3, 4, 5};
static int64_t two_by_three[] = {2, 3};

/* The numbers in two rows. Forgets how many were ended. */
static inline umemDLManagedTensorVersioned of_numbers(void) {
  deleted = 0;
  return (umemDLManagedTensorVersioned){.version = {1, 0},
                                        .deleter = count_end,
                                        .dl_tensor = {.data = numbers,
                                                      .device = {umemDLCPU, 0},
                                                      .ndim = 2,
                                                      .dtype = {0, 32, 1},
                                                      .shape = two_by_three}};
}
