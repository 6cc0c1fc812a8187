/* array_gpu.h - tests of arrays on the double of CUDA's runtime. */
#pragma once

#include "cuda_double.h"

#include "array_help.h"

static inline void set_up_gpu(void **state) {
  set_up(state);
  begin_double();
}

static inline void tear_down_gpu(void **state) {
  end_double();
  tear_down(state);
}

#define GPU_TEST(name) TEST_CASE_WITH(name, set_up_gpu, tear_down_gpu)
