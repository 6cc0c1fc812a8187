/* array_gpu.h - tests of arrays on the double of CUDA's runtime. */
#pragma once

#include "cuda_double.h"

#include "array_help.h"

static inline int set_up_gpu(void **state) {
  int failed = set_up(state);
  begin_double();
  return failed;
}

static inline int tear_down_gpu(void **state) {
  end_double();
  return tear_down(state);
}

#define GPU_TEST(name) TEST_CASE_WITH(name, set_up_gpu, tear_down_gpu)
