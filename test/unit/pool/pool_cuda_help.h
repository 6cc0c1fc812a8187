/* pool_cuda_help.h - a pool in the memory of a GPU, views of it on two streams, and captures of
 * one; on a double of the runtime that does nothing before it is demanded. */
#pragma once

#include "unit/cuda/cuda_help.h"

static umemCuda gpu;
static umemCudaAsync base, a, b;
static umemPool pool;
static umemPoolOn on_a, on_b; /* on a and b */

static void *upstream; /* of the test: gpu, or base */

static inline void open_over(void *below, size_t growth, size_t maximum) {
  umemPoolOptions options = {sizeof options, 0, growth, maximum, umemPoolPages, 0};
  expect_ok(umemPool_ctor(&pool, below, &options));
  expect_ok(umemPoolOn_ctor(&on_a, &pool, &a));
  expect_ok(umemPoolOn_ctor(&on_b, &pool, &b));
}

static inline void close_all(void) {
  DESTRUCT(&on_a, &on_b, &pool);
  if (umem_thread_status() != umemOK) fail_msg("%s", umem_thread_message());
}

/* Nothing that the pool has mapped is left. */
static inline void close_empty(void) {
  close_all();
  assert_int_equal(fake_cudart_live().pages + fake_cudart_live().ranges, 0);
}

static inline void open_contexts(void *below) {
  upstream = below ? below : &gpu;
  expect_ok(umemCuda_ctor(&gpu, 0));
  expect_ok(umemCudaAsync_ctor(&base, 0, UMEM_STREAM_NEW));
  expect_ok(umemCudaAsync_ctor(&a, 0, UMEM_STREAM_NEW));
  expect_ok(umemCudaAsync_ctor(&b, 0, UMEM_STREAM_NEW));
}

/* With pages the pool maps them; without it allocates chunks. */
static inline void all_set_up(void **state) {
  cuda_set_up(state);
  open_contexts(*state);
}
static inline void chunks_set_up(void **state) {
  cuda_set_up(state);
  fake_cudart_machine()->device[0].no_pages = true;
  open_contexts(*state);
}

/* The pool and the views, if they are open, end too. */
static inline void all_tear_down(void **state) {
  close_empty();
  DESTRUCT(&a, &b, &base, &gpu);
  cuda_tear_down(state);
}

#define ON_TEST(name) TEST_CASE_WITH(name, all_set_up, all_tear_down)

/* With each upstream. */
#define ON_EACH(name)                                                                              \
  static void name(void **state);                                                                  \
  TEST_CASE_AGAIN(name, over_a_stream, all_set_up, all_tear_down, &base)                           \
  ON_TEST(name)

static inline void *stream_of(umemCudaAsync *ctx) { return (void *)umemCudaAsync_stream(ctx); }

/* ---- captures of the stream of a ---- */

static inline void begin_capture(void) { ok(fake_cudart_begin_capture(stream_of(&a))); }

/* It must be whole. */
static inline void end_capture(void) {
  void *graph = NULL;
  ok(fake_cudart_end_capture(stream_of(&a), &graph));
  assert_non_null(graph);
}

/* By another thread, from begin to end. */
static struct {
  pthread_t thread;
  pthread_barrier_t ends;
  bool begun;    /* atomic */
  bool is_whole; /* when it has ended */
} capture;

static inline void *capture_a(void *unused) {
  void *graph = NULL;
  int error = fake_cudart_begin_capture(stream_of(&a));
  __atomic_store_n(&capture.begun, true, __ATOMIC_RELEASE);
  pthread_barrier_wait(&capture.ends);
  if (!error) error = fake_cudart_end_capture(stream_of(&a), &graph);
  capture.is_whole = !error && graph;
  return unused;
}

/* Returns when the capture has begun. For fake_cudart_before. */
static inline void begin_in_thread(void *unused) {
  capture.begun = capture.is_whole = false;
  if (pthread_barrier_init(&capture.ends, NULL, 2)) abort();
  capture.thread = start_thread(capture_a, unused);
  await(&capture.begun);
}

static inline void end_in_thread(void) {
  pthread_barrier_wait(&capture.ends);
  join_thread(capture.thread);
  pthread_barrier_destroy(&capture.ends);
}
