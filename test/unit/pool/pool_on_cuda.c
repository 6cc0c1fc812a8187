/* pool_on_cuda.c - views of a pool on streams of CUDA: blocks that change streams, and captures. On
 * a double of the runtime that does nothing before it is demanded. */
#include "unit/cuda/cuda_help.h"

enum { n = 1 << 20, small = 4096, in_span = 16 };

static umemCuda gpu;
static umemCudaAsync base, a, b;
static umemPool pool;
static umemPoolOn on_a, on_b;

static void open_all(void *upstream, size_t maximum) {
  umemPoolOptions options = {sizeof options, 0, 0, maximum, umemPoolPages, 0};
  expect_ok(umemPool_ctor(&pool, upstream, &options));
  expect_ok(umemPoolOn_ctor(&on_a, &pool, &a));
  expect_ok(umemPoolOn_ctor(&on_b, &pool, &b));
}

static void close_all(void) {
  umem_dtor(&on_a);
  umem_dtor(&on_b);
  umem_dtor(&pool);
  if (umem_thread_status() != umemOK) fail_msg("%s", umem_thread_message());
}

static int open_contexts(void) {
  expect_ok(umemCuda_ctor(&gpu, 0));
  expect_ok(umemCudaAsync_ctor(&base, 0, UMEM_STREAM_NEW));
  expect_ok(umemCudaAsync_ctor(&a, 0, UMEM_STREAM_NEW));
  expect_ok(umemCudaAsync_ctor(&b, 0, UMEM_STREAM_NEW));
  return 0;
}

/* With pages the pool maps them; without it allocates chunks. */
static int all_set_up(void **state) {
  cuda_set_up(state);
  return open_contexts();
}
static int chunks_set_up(void **state) {
  cuda_set_up(state);
  fake_cudart_machine()->device[0].no_pages = true;
  return open_contexts();
}

static int all_tear_down(void **state) {
  umem_dtor(&a);
  umem_dtor(&b);
  umem_dtor(&base);
  umem_dtor(&gpu);
  return cuda_tear_down(state);
}

static void *const upstreams[] = {&gpu, &base};

static uint64_t reserved(void) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  expect_ok(umemPool_stats(&pool, &stats));
  return stats.reserved;
}

static void *stream_of(umemCudaAsync *ctx) { return (void *)umemCudaAsync_stream(ctx); }

static void begin_capture(void) { ok(fake_cudart_begin_capture(stream_of(&a))); }

/* Of a; it must be whole. */
static void end_capture(void) {
  void *graph = NULL;
  ok(fake_cudart_end_capture(stream_of(&a), &graph));
  assert_non_null(graph);
}

/* What the last byte at adr is when the work of both is done, of b first. */
static int last_byte(uintptr_t adr) {
  unsigned char byte = 0;
  expect_ok(umem_synchronize(&b));
  expect_ok(umem_synchronize(&a));
  assert_true(fake_cudart_peek(adr + small - 1, &byte, 1));
  return byte;
}

/* ---- order ---- */

/* That the double shows what happens where nobody waits. */
static void without_waiting_the_work_is_in_disorder(void **state) {
  (void)state;
  uintptr_t adr = block_of(&gpu, small);
  expect_ok(umem_set(&a, adr, 1, small));
  expect_ok(umem_set(&b, adr, 2, small));
  assert_int_equal(last_byte(adr), 1);
  umem_free(&gpu, adr);
}

/* Of a span, a range that waits for its like, and a range. */
static void a_block_changes_streams_in_order(void **state) {
  (void)state;
  size_t const sizes[] = {small, n, 8 * n};
  for (size_t k = 0; k < 6; k++) {
    size_t size = sizes[k / 2];
    open_all(upstreams[k % 2], size < n ? 64 << 10 : size);
    uintptr_t adr = block_of(&on_a, size);
    expect_ok(umem_set(&on_a, adr, 1, size));
    umem_free(&on_a, adr);
    for (uintptr_t got = 0; got != adr;) {
      got = block_of(&on_b, size);
      expect_ok(umem_set(&on_b, got, 2, size));
    }
    assert_true(fake_cudart_is_late(stream_of(&a))); /* and the program has waited for nobody */
    assert_int_equal(last_byte(adr), 2);
    close_all();
  }
}

/* What went back to the upstream and comes again. */
static void a_chunk_changes_streams_in_order(void **state) {
  (void)state;
  for (size_t k = 0; k < 2; k++) {
    open_all(upstreams[k], n);
    uintptr_t adr = block_of(&on_a, n);
    expect_ok(umem_set(&on_a, adr, 1, n));
    umem_free(&on_a, adr);
    expect_ok(umem_trim(&pool, 0));
    assert_int_equal(reserved(), 0);
    adr = block_of(&on_b, n);
    expect_ok(umem_set(&on_b, adr, 2, n));
    assert_int_equal(last_byte(adr), 2);
    close_all();
  }
}

static void copies_are_those_of_the_queue(void **state) {
  (void)state;
  umemHost host;
  unsigned char bytes[small], back[small];
  expect_ok(umemHost_ctor(&host));
  open_all(&gpu, 0);
  fill(bytes, small, 3);
  uintptr_t one = block_of(&on_a, small), other = umem_calloc(&on_b, 1, small);
  expect_ok(umem_copy_from(&on_a, one, &host, (uintptr_t)bytes, small));
  expect_ok(umem_wait(&on_b, &on_a));
  expect_ok(umem_copy_to(&on_a, one, &on_b, other, small));
  expect_ok(umem_copy_to(&on_b, other, &host, (uintptr_t)back, small));
  expect_ok(umem_synchronize(&on_b));
  expect_ok(umem_synchronize(&on_a));
  assert_true(is_filled(back, small, 3));
  assert_int_equal(umemCudaAsync_stream(&on_a), umemCudaAsync_stream(&a));
  close_all();
  umem_dtor(&host);
}

/* ---- what is on the legacy stream ---- */

/* The last bytes of a short copy may arrive when it has returned. */
static void late_bytes_come_before_who_gets_the_block(void **state) {
  (void)state;
  umemHost host;
  unsigned char bytes[small];
  size_t const sizes[] = {small, n, 8 * n};
  fake_cudart_machine()->late_pageable = true;
  expect_ok(umemHost_ctor(&host));
  memset(bytes, 1, small);
  for (size_t k = 0; k < 3; k++) {
    open_all(&gpu, k ? sizes[k] : 64 << 10);
    uintptr_t adr = block_of(&pool, sizes[k]);
    expect_ok(umem_copy_from(&pool, adr, &host, (uintptr_t)bytes, small));
    umem_free(&pool, adr);
    for (uintptr_t got = 0; got != adr;) {
      got = block_of(&on_b, sizes[k]);
      expect_ok(umem_set(&on_b, got, 2, small));
    }
    expect_ok(umem_synchronize(&b));
    expect_ok(umem_synchronize(&gpu));
    assert_int_equal(last_byte(adr), 2);
    close_all();
  }
  umem_dtor(&host);
}

static void write_threes(void *adr) { memset(fake_cudart_at((uintptr_t)adr, small), 3, small); }

/* Kernels too, whose blocks may be freed when they are queued. */
static void kernels_come_before_who_gets_the_block(void **state) {
  (void)state;
  open_all(&gpu, n);
  uintptr_t adr = block_of(&pool, n);
  enter(0);
  ok(fake_cudart_launch(NULL, write_threes, (void *)adr));
  leave(0);
  umem_free(&pool, adr);
  assert_int_equal(block_of(&on_b, n), adr);
  assert_true(fake_cudart_is_late(stream_of(&b))); /* and the program has not waited */
  expect_ok(umem_set(&on_b, adr, 2, small));
  assert_int_equal(last_byte(adr), 2);
  expect_ok(umem_synchronize(&gpu));
  assert_int_equal(last_byte(adr), 2);
  close_all();
}

/* Also where the block went back to a pool below this one, which gives it out as a chunk. */
static void kernels_come_before_who_gets_the_chunk(void **state) {
  (void)state;
  umemPool below;
  umemPoolOptions options = {sizeof options, 0, 0, n, umemPoolPages, 0};
  expect_ok(umemPool_ctor(&below, &gpu, &options));
  open_all(&below, n);
  uintptr_t adr = block_of(&below, n);
  enter(0);
  ok(fake_cudart_launch(NULL, write_threes, (void *)adr));
  leave(0);
  umem_free(&below, adr);
  assert_int_equal(block_of(&on_b, n), adr);
  expect_ok(umem_set(&on_b, adr, 2, small));
  assert_int_equal(last_byte(adr), 2);
  expect_ok(umem_synchronize(&gpu));
  assert_int_equal(last_byte(adr), 2);
  close_all();
  umem_dtor(&below);
}

/* ---- captures ---- */

static void a_captured_view_gives_what_it_has(void **state) {
  (void)state;
  for (size_t k = 0; k < 2; k++) {
    open_all(upstreams[k], 0);
    umem_free(&on_b, block_of(&on_b, 2 * n)); /* which a would take otherwise */
    uintptr_t large = block_of(&on_a, n), tiny = block_of(&on_a, small);
    umem_free(&on_a, large);
    umem_free(&on_a, tiny);
    uint64_t before = reserved();
    begin_capture();
    assert_int_equal(block_of(&on_a, n), large);
    assert_int_equal(block_of(&on_a, small), tiny);
    expect_ok(umem_set(&on_a, large, 1, n));
    umem_free(&on_a, tiny);
    assert_int_equal(block_of(&on_a, small), tiny);
    if (k == 0) { /* new memory is in nobody's order */
      umem_free(&on_a, block_of(&on_a, 8 * n));
      assert_true(reserved() > before);
    } else {
      expect_report(
          umem_alloc(&on_a, 8 * n), umemNotSupportedError,
          "umem_alloc: no 8388608 bytes are free in the order of this stream, which is being "
          "captured into a graph");
      assert_int_equal(umem_get_status(&on_a), umemNotSupportedError);
      umem_clear_status(&on_a);
    }
    expect_report(umem_trim(&on_a, 0), umemNotSupportedError, "is being captured");
    end_capture();
    umem_free(&on_a, block_of(&on_a, 8 * n));
    close_all();
  }
}

static void nobody_takes_from_a_captured_view(void **state) {
  (void)state;
  for (size_t k = 0; k < 2; k++) {
    open_all(upstreams[k], 2 * n);
    uintptr_t adr = block_of(&on_a, n);
    umem_free(&on_a, adr);
    begin_capture();
    umem_free(&on_b, block_of(&on_b, n));
    assert_int_equal(reserved(), 2 * n);
    expect_report(umem_alloc(&on_b, 2 * n), umemMemoryError, "no room for 2097152 bytes");
    expect_ok(umem_trim(&pool, 0));
    assert_int_equal(reserved(), n); /* of a */
    expect_ok(umem_synchronize(&b)); /* it has not become a part of the capture */
    end_capture();
    umem_free(&on_b, block_of(&on_b, 2 * n));
    close_all();
  }
}

/* Blocks freed while a is captured, in a span that b has free blocks of too. */
static void captured_frees_keep_nobody_waiting(void **state) {
  (void)state;
  uintptr_t adr[in_span];
  for (size_t k = 0; k < 2; k++) {
    open_all(upstreams[k], 0);
    for (int i = 0; i < in_span; i++) adr[i] = block_of(&on_b, small);
    expect_ok(umem_wait(&a, &b));
    umem_free(&on_b, adr[0]);
    expect_ok(umem_trim(&on_b, SIZE_MAX)); /* the thread keeps it no more */
    begin_capture();
    for (int i = 1; i < in_span; i++) umem_free(&on_a, adr[i]);
    for (int i = 0; i < 100; i++) {
      uintptr_t one = block_of(&on_b, small);
      for (int j = 1; j < in_span; j++) assert_true(one != adr[j]);
      expect_ok(umem_set(&on_b, one, 1, small));
    }
    expect_ok(umem_synchronize(&b));
    end_capture();
    close_all();
  }
}

/* Nor does anybody take such a span. */
static void captured_frees_are_out_of_reach(void **state) {
  (void)state;
  uintptr_t adr[in_span];
  for (size_t k = 0; k < 2; k++) {
    open_all(upstreams[k], in_span * small);
    for (int i = 0; i < in_span; i++) adr[i] = block_of(&on_b, small);
    expect_ok(umem_wait(&a, &b));
    umem_free(&on_b, adr[0]);
    expect_ok(umem_trim(&on_b, SIZE_MAX));
    begin_capture();
    for (int i = 1; i < in_span - 1; i++) umem_free(&on_a, adr[i]);
    expect_ok(umem_trim(&pool, 0));
    expect_report(umem_trim(&on_a, SIZE_MAX), umemNotSupportedError, "captured");
    umem_clear_status(&on_a);
    expect_report(umem_alloc(&on_b, small), umemMemoryError, "no room for 4096 bytes");
    expect_ok(umem_synchronize(&b));
    end_capture();
    for (int i = 0; i < in_span - 1; i++) block_of(&on_b, small);
    close_all();
  }
}

/* The pool's own order is that of a, which is captured. */
static void an_upstream_may_be_captured(void **state) {
  (void)state;
  open_all(&a, 4 * n);
  uintptr_t adr = block_of(&on_b, n), other = block_of(&pool, n);
  umem_free(&on_b, adr);
  umem_free(&pool, other);
  begin_capture();
  assert_int_equal(block_of(&on_b, n), adr);
  expect_report(umem_alloc(&on_b, n), umemNotSupportedError, "captured");
  umem_clear_status(&on_b);
  assert_int_equal(block_of(&pool, n), other);
  expect_report(umem_trim(&on_b, 0), umemNotSupportedError, "captured");
  umem_dtor(&on_b); /* waits for b itself */
  end_capture();
  umem_clear_status(&a);
  umem_thread_clear();
  close_all();
}

static void a_view_may_end_while_it_is_captured(void **state) {
  (void)state;
  for (size_t k = 0; k < 2; k++) {
    open_all(upstreams[k], 0);
    uintptr_t live = block_of(&on_a, n);
    umem_free(&on_a, block_of(&on_a, small));
    umem_free(&on_a, block_of(&on_a, 2 * n));
    begin_capture();
    expect_report(
        umem_dtor(&on_a), umemNotSupportedError,
        "umem_dtor: the stream is being captured into a graph: what is free in its order");
    end_capture();
    uint64_t before = reserved();
    umem_free(&on_b, block_of(&on_b, 2 * n)); /* of a new chunk */
    umem_free(&on_b, live);
    assert_true(reserved() > before);
    expect_ok(umem_trim(&pool, 0));
    assert_true(reserved() <= before && reserved() > 0);
    expect_ok(umemPoolOn_ctor(&on_a, &pool, &a));
    umem_free(&on_a, block_of(&on_a, 2 * n));
    close_all();
  }
}

#define ON_TEST(name) cmocka_unit_test_setup_teardown(name, all_set_up, all_tear_down)
#define IN_CHUNKS(name) cmocka_unit_test_setup_teardown(name, chunks_set_up, all_tear_down)

int main(void) {
  struct CMUnitTest const tests[] = {
      IN_CHUNKS(without_waiting_the_work_is_in_disorder),
      IN_CHUNKS(a_block_changes_streams_in_order),
      IN_CHUNKS(a_chunk_changes_streams_in_order),
      IN_CHUNKS(copies_are_those_of_the_queue),
      IN_CHUNKS(late_bytes_come_before_who_gets_the_block),
      IN_CHUNKS(kernels_come_before_who_gets_the_block),
      IN_CHUNKS(kernels_come_before_who_gets_the_chunk),
      IN_CHUNKS(a_captured_view_gives_what_it_has),
      IN_CHUNKS(nobody_takes_from_a_captured_view),
      IN_CHUNKS(captured_frees_keep_nobody_waiting),
      IN_CHUNKS(captured_frees_are_out_of_reach),
      IN_CHUNKS(an_upstream_may_be_captured),
      IN_CHUNKS(a_view_may_end_while_it_is_captured),
      ON_TEST(a_block_changes_streams_in_order),
      ON_TEST(a_chunk_changes_streams_in_order),
      ON_TEST(copies_are_those_of_the_queue),
      ON_TEST(late_bytes_come_before_who_gets_the_block),
      ON_TEST(kernels_come_before_who_gets_the_block),
      ON_TEST(kernels_come_before_who_gets_the_chunk),
      ON_TEST(a_captured_view_gives_what_it_has),
      ON_TEST(captured_frees_keep_nobody_waiting),
      ON_TEST(captured_frees_are_out_of_reach),
      ON_TEST(a_view_may_end_while_it_is_captured),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
