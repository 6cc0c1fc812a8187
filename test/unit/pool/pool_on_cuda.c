/* pool_on_cuda.c - views of a pool on streams of CUDA: blocks that change streams, and captures. On
 * a double of the runtime that does nothing before it is demanded. */
#include "pool_cuda_help.h"

enum { n = 1 << 20, small = 4096, in_span = 16 };

static void open_all(void *below, size_t maximum) { open_over(below, 0, maximum); }

static uint64_t reserved(void) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  expect_ok(umemPool_stats(&pool, &stats));
  return stats.reserved;
}

/* What the last byte at adr is when the work of both is done, of b first. */
static int last_byte(uintptr_t adr) {
  unsigned char byte = 0;
  expect_ok(umem_synchronize(&b));
  expect_ok(umem_synchronize(&a));
  assert_true(fake_cudart_peek(adr + small - 1, &byte, 1));
  return byte;
}

/* A test of a pool of chunks, over the GPU's memory or over each upstream. */
#define IN_CHUNKS(name) TEST_CASE_WITH(name, chunks_set_up, all_tear_down)
#define IN_CHUNKS_EACH(name)                                                                       \
  static void name(void **state);                                                                  \
  TEST_CASE_AGAIN(name, over_a_stream, chunks_set_up, all_tear_down, &base)                        \
  IN_CHUNKS(name)

/* Also one of pages. */
#define IN_BOTH(name)                                                                              \
  static void name(void **state);                                                                  \
  TEST_CASE_AGAIN(name, of_pages, all_set_up, all_tear_down, &gpu)                                 \
  IN_CHUNKS(name)
#define IN_BOTH_EACH(name)                                                                         \
  static void name(void **state);                                                                  \
  TEST_CASE_AGAIN(name, of_pages, all_set_up, all_tear_down, &gpu)                                 \
  TEST_CASE_AGAIN(name, of_pages_over_a_stream, all_set_up, all_tear_down, &base)                  \
  IN_CHUNKS_EACH(name)

/* ---- order ---- */

/* That the double shows what happens where nobody waits. */
IN_CHUNKS(without_waiting_the_work_is_in_disorder) {
  uintptr_t adr = block_of(&gpu, small);
  expect_ok(umem_set(&a, adr, 1, small));
  expect_ok(umem_set(&b, adr, 2, small));
  assert_int_equal(last_byte(adr), 1);
  umem_free(&gpu, adr);
}

/* Of a span, a range that waits for its like, and a range. */
IN_BOTH_EACH(a_block_changes_streams_in_order) {
  size_t const sizes[] = {small, n, 8 * n};
  for (size_t k = 0; k < 3; k++) {
    size_t size = sizes[k];
    open_all(upstream, size < n ? 64 << 10 : size);
    uintptr_t adr = block_of(&on_a, size);
    expect_ok(umem_set(&on_a, adr, 1, size));
    umem_free(&on_a, adr);
    if (size < n) expect_ok(umem_trim(&on_a, SIZE_MAX)); /* too little to be marked by itself */
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
IN_BOTH_EACH(a_chunk_changes_streams_in_order) {
  open_all(upstream, n);
  uintptr_t adr = block_of(&on_a, n);
  expect_ok(umem_set(&on_a, adr, 1, n));
  umem_free(&on_a, adr);
  expect_ok(umem_trim(&pool, 0));
  assert_int_equal(reserved(), 0);
  adr = block_of(&on_b, n);
  expect_ok(umem_set(&on_b, adr, 2, n));
  assert_int_equal(last_byte(adr), 2);
}

IN_BOTH(copies_are_those_of_the_queue) {
  unsigned char bytes[small], back[small];
  CONTEXT(umemHost, host);
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
}

/* Neither written twice nor waited for. */
IN_BOTH(zeros_are_one_set_in_the_queue) {
  unsigned char bytes[2] = {1, 1};
  open_all(&gpu, 0);
  unsigned long sets = fake_cudart_calls_of("memset_async");
  uintptr_t zeros = umem_calloc(&on_a, n, 3);
  assert_int_equal(fake_cudart_calls_of("memset_async") - sets, 1);
  assert_true(fake_cudart_is_late(stream_of(&a)));
  expect_ok(umem_synchronize(&on_a));
  assert_true(fake_cudart_peek(zeros, bytes, 1) &&
              fake_cudart_peek(zeros + 3 * n - 1, bytes + 1, 1));
  assert_int_equal(bytes[0] | bytes[1], 0);
  umem_free(&on_a, zeros);
  close_all();
}

/* ---- what is on the legacy stream ---- */

/* The last bytes of a short copy may arrive when it has returned. */
IN_BOTH(late_bytes_come_before_who_gets_the_block) {
  unsigned char bytes[small];
  size_t const sizes[] = {small, n, 8 * n};
  fake_cudart_machine()->late_pageable = true;
  CONTEXT(umemHost, host);
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
}

static void write_threes(void *adr) { memset(fake_cudart_at((uintptr_t)adr, small), 3, small); }

/* Kernels too, whose blocks may be freed when they are queued. */
IN_BOTH(kernels_come_before_who_gets_the_block) {
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
}

/* Also where the block went back to a pool below this one, which gives it out as a chunk. */
IN_BOTH(kernels_come_before_who_gets_the_chunk) {
  umemPoolOptions options = {sizeof options, 0, 0, n, umemPoolPages, 0};
  CONTEXT(umemPool, below, &gpu, &options);
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
}

/* ---- captures ---- */

IN_BOTH_EACH(a_captured_view_gives_what_it_has) {
  open_all(upstream, 0);
  umem_free(&on_b, block_of(&on_b, 2 * n)); /* which a would take otherwise */
  uintptr_t large = block_of(&on_a, n), tiny = block_of(&on_a, small);
  FREE(&on_a, large, tiny);
  uint64_t before = reserved();
  begin_capture();
  assert_int_equal(block_of(&on_a, n), large);
  assert_int_equal(block_of(&on_a, small), tiny);
  expect_ok(umem_set(&on_a, large, 1, n));
  umem_free(&on_a, tiny);
  assert_int_equal(block_of(&on_a, small), tiny);
  if (upstream == &gpu) { /* new memory is in nobody's order */
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
}

/* This thread makes no call on the stream of a from begin to end, as another one may capture it. */
static void leave_stream(void) { fake_cudart_bar(stream_of(&a), true); }
static void return_to_stream(void) { fake_cudart_bar(stream_of(&a), false); }

/* It is marked. */
IN_BOTH_EACH(what_was_freed_before_a_capture_passes) {
  size_t const sizes[] = {small, n, 8 * n};
  for (size_t k = 0; k < 3; k++) {
    open_all(upstream, sizes[k] < n ? 64 << 10 : sizes[k]);
    uintptr_t adr = block_of(&on_a, sizes[k]);
    umem_free(&on_a, adr);
    if (sizes[k] < n) expect_ok(umem_synchronize(&on_a));
    begin_capture();
    leave_stream();
    for (uintptr_t got = 0; got != adr;) got = block_of(&on_b, sizes[k]);
    expect_ok(umem_synchronize(&b)); /* it has not become a part of the capture */
    return_to_stream();
    end_capture();
    close_all();
  }
}

IN_CHUNKS_EACH(what_is_freed_in_a_capture_stays) {
  open_all(upstream, 2 * n);
  umem_set_label(&on_a, "captured");
  uintptr_t adr = block_of(&on_a, n);
  begin_capture();
  umem_free(&on_a, adr);
  leave_stream();
  umem_free(&on_b, block_of(&on_b, n));
  assert_int_equal(reserved(), 2 * n);
  expect_report(
      umem_alloc(&on_b, 2 * n), umemMemoryError,
      "no room for 2097152 bytes: the pool holds 1048576 of at most 2097152 bytes; another "
      "view \"captured\" keeps 1048576 free bytes that it has not marked since");
  expect_ok(umem_trim(&pool, 0));
  assert_int_equal(reserved(), n); /* of a */
  expect_ok(umem_synchronize(&b));
  return_to_stream();
  end_capture();
  umem_free(&on_a, block_of(&on_a, n)); /* which another view has looked for in vain */
  umem_free(&on_b, block_of(&on_b, 2 * n));
}

/* ---- marks ---- */

static unsigned long records(void) { return fake_cudart_calls_of("event_record"); }

/* One for many frees; none for blocks that are allocated and freed in turns. */
IN_BOTH(few_marks_are_set) {
  uintptr_t adr[64];
  open_all(&gpu, 0);
  for (int i = 0; i < 64; i++) adr[i] = block_of(&on_a, n);
  unsigned long before = records();
  for (int i = 0; i < 64; i++) umem_free(&on_a, adr[i]);
  unsigned long set = records() - before;
  if (set < 10 || set > 16) fail_msg("%lu marks", set);
  before = records();
  for (int i = 0; i < 10000; i++) umem_free(&on_a, block_of(&on_a, small));
  for (int i = 0; i < 10000; i++) umem_free(&on_a, block_of(&on_a, n));
  for (int i = 0; i < 10000; i++) umem_free(&on_a, block_of(&on_a, 3 * n));
  if (records() - before > 4) fail_msg("%lu marks", records() - before);
}

/* Until the view marks it, which its next call does if another view has looked for it. */
IN_BOTH_EACH(what_is_not_marked_stays) {
  uintptr_t adr[16];
  open_all(upstream, 16 * n);
  for (int i = 0; i < 16; i++) adr[i] = block_of(&on_a, n);
  umem_free(&on_a, adr[0]); /* a sixteenth: is marked */
  umem_free(&on_a, block_of(&on_a, 17 * small));
  leave_stream();
  umem_free(&on_b, block_of(&on_b, n / 2));
  expect_report(umem_alloc(&on_b, n), umemMemoryError, "no room for 1048576 bytes");
  umem_clear_status(&on_b);
  return_to_stream();
  umem_free(&on_a, adr[1]);
  leave_stream();
  umem_free(&on_b, block_of(&on_b, n));
  return_to_stream();
}

/* A thread that only frees sets no mark: another one may capture the stream. */
static void *free_all(void *blocks) {
  leave_stream();
  for (uintptr_t *adr = blocks; *adr; adr++) umem_free(&on_a, *adr);
  return blocks;
}

IN_BOTH_EACH(who_only_frees_does_not_use_the_stream) {
  uintptr_t adr[16] = {0};
  open_all(upstream, 15 * n);
  for (int i = 0; i < 15; i++) adr[i] = block_of(&on_a, n);
  assert_non_null(join_thread(start_thread(free_all, adr)));
  expect_report(umem_alloc(&on_b, n), umemMemoryError, "keeps 15728640 free bytes");
  umem_clear_status(&on_b);
  umem_free(&on_a, block_of(&on_a, n));
  umem_free(&on_b, block_of(&on_b, n));
}

/* More ranges than the view notes one by one. */
IN_BOTH(many_frees_are_not_forgotten) {
  enum { most = 300, size = 17 * small };
  static uintptr_t adr[most + 1], freed[most + 1];
  size_t count = 0, i = 0;
  open_all(&gpu, 16 * n);
  while (count < most && (adr[count] = umem_alloc(&on_a, size)) != 0) count++;
  FORGET(&on_a);
  assert_true(count > 200 && count < most);
  memset(freed, 0, sizeof freed);
  for (i = 0; i < count / 2; i++) freed[i] = adr[2 * i];
  assert_non_null(join_thread(start_thread(free_all, freed)));
  expect_report(umem_alloc(&on_b, size), umemMemoryError, "free bytes that it has not marked");
  umem_clear_status(&on_b);
  expect_ok(umem_synchronize(&on_a));
  for (i = 0; i < count / 2; i++) block_of(&on_b, size);
}

/* A mark that cannot move in a capture remains what it was. */
IN_BOTH_EACH(a_capture_spoils_no_mark) {
  open_all(upstream, 8 * n);
  uintptr_t adr = block_of(&on_a, 2 * n), other = block_of(&on_a, 6 * n);
  umem_free(&on_a, adr);
  begin_capture();
  umem_free(&on_a, other);
  leave_stream();
  umem_free(&on_b, block_of(&on_b, 2 * n));
  expect_ok(umem_synchronize(&b)); /* it has not become a part of the capture */
  return_to_stream();
  end_capture();
}

/* The work that it waits for is that of the mark, and no later one. */
IN_BOTH(later_work_is_not_waited_for) {
  open_all(&gpu, n);
  uintptr_t adr = block_of(&on_a, n), other = block_of(&gpu, small);
  umem_free(&on_a, adr);
  expect_ok(umem_set(&a, other, 1, small));
  assert_int_equal(block_of(&on_b, n), adr);
  expect_ok(umem_synchronize(&b));
  assert_true(fake_cudart_is_late(stream_of(&a)));
  umem_free(&gpu, other);
}

/* ---- spans ---- */

/* Blocks freed while a is captured, in a span that b has free blocks of too. */
IN_BOTH_EACH(captured_frees_keep_nobody_waiting) {
  uintptr_t adr[in_span];
  open_all(upstream, 0);
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
}

/* Nor does anybody take such a span. */
IN_BOTH_EACH(captured_frees_are_out_of_reach) {
  uintptr_t adr[in_span];
  open_all(upstream, in_span * small);
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
  expect_ok(umem_synchronize(&on_a));
  for (int i = 0; i < in_span - 1; i++) block_of(&on_b, small);
}

/* The pool's own order is that of a, which is captured. */
IN_CHUNKS(an_upstream_may_be_captured) {
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
  FORGET(&a);
}

IN_BOTH_EACH(a_view_may_end_while_it_is_captured) {
  open_all(upstream, 0);
  uintptr_t live = block_of(&on_a, n);
  umem_free(&on_a, block_of(&on_a, small));
  umem_free(&on_a, block_of(&on_a, 2 * n));
  begin_capture();
  expect_report(umem_dtor(&on_a), umemNotSupportedError,
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
}
