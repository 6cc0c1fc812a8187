/* cuda_streams.c - umemCudaStreams of umem/cuda.h, on a double of the runtime. */
#include "cuda_help.h"

enum { many = 5 };

CUDA_TEST(streams_come_in_turn) {
  umemCudaStreams streams;
  expect_ok(umemCudaStreams_open(&streams, 0, many));
  assert_int_equal(umemCudaStreams_count(&streams), many);
  for (unsigned i = 0; i < 3 * many; i++) {
    uintptr_t stream = umemCudaStreams_next(&streams);
    assert_true(stream && stream == umemCudaStreams_at(&streams, i % many));
    for (unsigned k = 0; k < i % many; k++) assert_true(stream != umemCudaStreams_at(&streams, k));
  }
  assert_int_equal(umemCudaStreams_at(&streams, many), 0);
  expect_failure(umem_thread_status(), umemIndexError, "there is no stream 5 among 5");
  umemCudaStreams_close(&streams);
  umemCudaStreams_close(&streams); /* once is enough */
  assert_int_equal(umemCudaStreams_count(&streams), 0);
  assert_true(fake_cudart_is_clean());
  assert_null(current_context());
}

CUDA_TEST(contexts_are_on_them) {
  umemCudaStreams streams;
  umemCudaAsync one, other;
  expect_ok(umemCudaStreams_open(&streams, 1, 2));
  expect_ok(umemCudaAsync_ctor(&one, 1, umemCudaStreams_next(&streams)));
  expect_ok(umemCudaAsync_ctor(&other, 1, umemCudaStreams_next(&streams)));
  assert_true(umemCudaAsync_stream(&one) != umemCudaAsync_stream(&other));
  uintptr_t adr = block_of(&one, 100);
  umem_free(&one, adr);
  umem_dtor(&one), umem_dtor(&other);
  umemCudaStreams_close(&streams);
  assert_true(fake_cudart_is_clean());
}

/* Returns NULL if all was right. */
static void *take(void *streams) {
  bool right = true;
  for (int i = 0; i < 1000; i++) right = umemCudaStreams_next(streams) && right;
  return right ? NULL : streams;
}

CUDA_TEST(threads_take_streams) {
  umemCudaStreams streams;
  expect_ok(umemCudaStreams_open(&streams, 0, many));
  run_at_once(4, take, &streams, 0);
  assert_int_equal(umemCudaStreams_next(&streams), umemCudaStreams_at(&streams, 0));
  umemCudaStreams_close(&streams);
}

CUDA_TEST(streams_that_cannot_be_leave_nothing) {
  umemCudaStreams streams;
  expect_failure(umemCudaStreams_open(NULL, 0, 1), umemValueError, "the streams are NULL");
  expect_failure(umemCudaStreams_open(&streams, 0, 0), umemValueError, "0 streams");
  expect_failure(umemCudaStreams_open(&streams, 99, 1), umemValueError, "there is no GPU 99");
  assert_int_equal(umemCudaStreams_next(&streams), 0);
  expect_failure(umem_thread_status(), umemValueError, "not constructed");
  umemCudaStreams_close(&streams);
  for (unsigned long nth = 1;; nth++) {
    fake_cudart_fail(nth, umemCudaLaunchFailure);
    bool made = umemCudaStreams_open(&streams, 0, many) == umemOK;
    fake_cudart_fail(0, 0);
    umem_thread_clear();
    umemCudaStreams_close(&streams);
    assert_int_equal(fake_cudart_live().streams, 0);
    if (made) break;
    forget_all();
  }
}
