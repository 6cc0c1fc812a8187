/* gds_help.h - what the tests of GPUDirect Storage share: pairs whose copies cuFile's double may
 * make. */
#pragma once

#include "cuda/cuda_methods.h"
#include "fake/cufile.h"

enum { page = 4096, piece = 4 << 20, from = umemCudaGdsFrom, most = 5 * piece + 54321 };

#include "pair_help.h"

/* Bytes that cuFile has moved. */
static inline size_t moved(void) {
  FakeCufileDone done = fake_cufile_done();
  return done.bytes_read + done.bytes_written;
}

/* ---- tests ---- */

static inline void set_up_gds(void **state) {
  cuda_set_up(state);
  fake_cufile_reset();
  fake_cufile_machine()->installed = true;
  set_up_pair(umemDirectOn);
}

static inline void tear_down_gds(void **state) {
  tear_down_pair();
  FakeCufileDone done = fake_cufile_done();
  assert_int_equal(done.registered, done.released);
  umemCudaGds_end();
  done = fake_cufile_done();
  assert_int_equal(done.opened, done.closed);
  fake_cufile_reset();
  cuda_tear_down(state);
}

#define PAIR_TEST(name) TEST_CASE_WITH(name, set_up_gds, tear_down_gds)

/* Runs the first count tests, 0: all. */
static inline int run_pair_tests(size_t count) {
  if (!has_direct()) {
    print_message("the file system of /tmp has no direct I/O: nothing is tested\n");
    return 0;
  }
  if (count) case_count = count;
  return run_cases(NULL, NULL);
}
