/* cuda_order.c - the order that the CUDA contexts promise: what is queued is late, what waits
 * comes after, what takes part in a copy without being pinned is done with on return, and
 * captures stay whole. */
#include "order_help.h"

/* Of LeakSanitizer, where that is. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* ---- queues ---- */

ORDER_TEST(queued_work_becomes_true_when_synchronized) {
  uintptr_t adr = block_of(&a, n), copy = block_of(&a, n);
  expect_ok(umem_set(&a, adr, 1, n));
  expect_ok(umem_copy_to(&a, adr, &a, copy, n));
  to_page(&a, copy);
  umem_free(&a, adr); /* after the copy */
  assert_true(is_late(&a));
  assert_true(page_is(0));
  expect_ok(umem_synchronize(&a));
  assert_false(is_late(&a));
  assert_true(page_is(1));
  memset(page, 2, n);
  expect_ok(umem_copy_from(&a, copy, &pinned, (uintptr_t)page, n));
  assert_true(is_late(&a)); /* pinned memory must live on */
  expect_ok(umem_synchronize(&a));
  memset(page, 0, n);
  to_page(&a, copy);
  expect_ok(umem_synchronize(&a));
  assert_true(page_is(2));
}

ORDER_TEST(synchronous_contexts_finish) {
  uintptr_t adr = block_of(&plain, n);
  expect_ok(umem_set(&plain, adr, 1, n));
  unsigned char byte = 0;
  assert_true(fake_cudart_peek(adr + n - 1, &byte, 1));
  assert_int_equal(byte, 1);
  to_page(&plain, adr);
  assert_true(page_is(1));
}

/* ---- waiting ---- */

static void wait_for_one_another(umemCudaAsync *one, umemCudaAsync *two) {
  uintptr_t adr = block_of(one, n);
  memset(page, 0, n);
  expect_ok(umem_set(one, adr, 1, n));
  expect_ok(umem_wait(two, one));
  assert_true(is_late(one)); /* nobody has waited here */
  to_page(two, adr);
  expect_ok(umem_wait(one, two));
  expect_ok(umem_set(one, adr, 2, n)); /* after it was read */
  assert_true(page_is(0));
  expect_ok(umem_synchronize(one));
  assert_true(page_is(1));
  expect_ok(umem_synchronize(two));
  assert_true(page_is(1));
  umem_free(one, adr);
}

ORDER_TEST(contexts_wait_for_one_another) {
  wait_for_one_another(&a, &b);
  wait_for_one_another(&b, &a);
  wait_for_one_another(&a, &other);
  wait_for_one_another(&other, &a);
}

ORDER_TEST(a_wait_is_for_what_is_queued_so_far) {
  uintptr_t adr = block_of(&a, n);
  expect_ok(umem_set(&a, adr, 1, n));
  expect_ok(umem_wait(&b, &a));
  expect_ok(umem_set(&a, adr, 2, n));
  expect_ok(umem_synchronize(&b));
  assert_true(is_late(&a));
  expect_ok(umem_wait(&a, &a)); /* of itself: nothing */
  expect_ok(umem_wait(&a, &plain));
  assert_true(is_late(&a));
}

ORDER_TEST(others_wait_for_a_stream) {
  void *file = opened("file:");
  void *const waiting[] = {&host, file, &fake, &plain, &pinned};
  uintptr_t adr = block_of(&a, n);
  for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++) {
    expect_ok(umem_set(&a, adr, (int)i, n));
    expect_ok(umem_wait(waiting[i], &a));
    assert_false(is_late(&a));
  }
  unsigned char byte = 0;
  uintptr_t there = block_of(&fake, 8);
  expect_ok(umem_set(&fake, there, 5, 8));
  expect_ok(umem_copy_to(&fake, there, &host, (uintptr_t)&byte, 1));
  expect_ok(umem_wait(&a, &fake)); /* the fake's work is done */
  assert_int_equal(byte, 5);
}

/* ---- copies between contexts ---- */

static bool is_ordered(void *ctx) { return ((umemVirtual *)ctx)->capabilities & umemOrdered; }

/* A -> B -> C and so on, with nobody waiting in between; each block is freed, or changed by its
 * own context, as soon as it was read. */
ORDER_TEST(chains_of_copies_are_ordered) {
  void *file = opened("file:");
  void *const chains[][6] = {
      {&a, &b, &a, &b, NULL},           {&a, &other, &b, NULL},
      {&other, &a, &other, NULL},       {&a, &pinned, &b, NULL},
      {&a, &fake, &b, &fake, NULL},     {&a, file, &other, NULL},
      {&plain, &a, &plain_1, NULL},     {&plain, &other, &plain, &a, NULL},
      {&plain, &plain_1, &plain, NULL}, {&plain_1, &a, file, &plain, NULL},
  };
  for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
    void *ctx = chains[c][0];
    uintptr_t adr = block_of(ctx, n);
    put_bytes(ctx, adr, n, (unsigned)c); /* what it is copied from is gone */
    for (size_t i = 1; chains[c][i]; i++) {
      void *next = chains[c][i];
      uintptr_t there = umem_alloc(next, n);
      expect_ok(umem_set(next, there, 0xEE, n));
      expect_ok(umem_copy_to(ctx, adr, next, there, n));
      if (!is_ordered(ctx)) expect_ok(umem_wait(ctx, next)); /* its own work is no queue's */
      if (!is_ordered(next)) expect_ok(umem_wait(next, ctx));
      expect_ok(umem_set(ctx, adr, 0xDD, n));
      umem_free(ctx, adr);
      ctx = next;
      adr = there;
    }
    if (!has_bytes(ctx, adr, n, (unsigned)c)) fail_msg("chain %zu", c);
    umem_free(ctx, adr);
    expect_no_misuse();
  }
}

/* What cudaMemcpy promises to what follows on the legacy stream, umem promises to all its
 * copies. */
ORDER_TEST(short_copies_come_before_those_of_streams) {
  void *const from[] = {&plain, &plain_1}, *const to[] = {&a, &other, &plain, &plain_1};
  static unsigned char bytes[n], back[n];
  for (size_t i = 0; i < 2; i++)
    for (size_t k = 0; k < 4; k++) {
      uintptr_t adr = block_of(from[i], n), there = block_of(to[k], n);
      fill(bytes, n, 7);
      expect_ok(umem_copy_from(from[i], adr, &host, (uintptr_t)bytes, n));
      memset(bytes, 0, n);
      expect_ok(umem_copy_to(from[i], adr, to[k], there, n));
      expect_ok(umem_copy_to(to[k], there, &host, (uintptr_t)back, n));
      if (!is_filled(back, n, 7)) fail_msg("from %zu to %zu", i, k);
      fill(bytes, n, 8); /* and the other way about: written, then overwritten */
      expect_ok(umem_synchronize(to[k]));
      expect_ok(umem_set(to[k], there, 9, n));
      expect_ok(umem_copy_from(from[i], adr, &host, (uintptr_t)bytes, n));
      expect_ok(umem_copy_from(from[i], adr, to[k], there, n));
      expect_ok(umem_synchronize(to[k]));
      expect_ok(umem_copy_to(from[i], adr, &host, (uintptr_t)back, n));
      assert_int_equal(back[0] * 1000 + back[n - 1], 9009);
      umem_free(to[k], there);
      umem_free(from[i], adr);
    }
}

/* Connected addresses of one GPU are one, and true for the streams of both. */
ORDER_TEST(what_is_connected_is_there_for_every_stream) {
  static unsigned char bytes[n];
  uintptr_t adr = block_of(&plain, n);
  memset(bytes, 7, n);
  expect_ok(umem_copy_from(&plain, adr, &host, (uintptr_t)bytes, n));
  assert_int_equal(umem_connect(&plain, adr, n, &a, 0), adr);
  to_page(&a, adr);
  expect_ok(umem_synchronize(&a));
  assert_true(page_is(7));
  memset(bytes, 8, n);
  expect_ok(umem_copy_from(&plain, adr, &host, (uintptr_t)bytes, n));
  expect_ok(umem_synchronize(&plain));
  to_page(&a, adr);
  expect_ok(umem_disconnect(&plain, adr, &a, adr, 0)); /* waits for both */
  assert_true(page_is(8));
}

/* ---- host memory ---- */

ORDER_TEST(staged_copies_keep_their_place) {
  static unsigned char bytes[large], back[large];
  uintptr_t adr = block_of(&a, large);
  expect_ok(umem_set(&a, adr, 1, large));
  expect_ok(umem_copy_to(&a, adr, &host, (uintptr_t)back, large)); /* after the set */
  assert_int_equal(back[0] + back[large / 2] + back[large - 1], 3);
  fill(bytes, large, 5);
  expect_ok(umem_set(&a, adr, 2, large));
  expect_ok(umem_copy_from(&a, adr, &host, (uintptr_t)bytes, large)); /* after that */
  memset(bytes, 0, large);
  expect_ok(umem_set(&a, adr + large - n, 3, n)); /* before this */
  to_page(&a, adr + large - n);
  expect_ok(umem_copy_to(&a, adr, &host, (uintptr_t)back, large - n));
  assert_true(is_filled(back, large - n, 5));
  assert_true(page_is(3));
  /* Not only by the stream: what it waits for comes before, too. */
  uintptr_t there = block_of(&other, large);
  expect_ok(umem_set(&other, there, 4, large));
  expect_ok(umem_copy_from(&a, adr, &other, there, large));
  expect_ok(umem_copy_to(&a, adr, &host, (uintptr_t)back, large));
  assert_int_equal(back[0] + back[large - 1], 8);
}

ORDER_TEST(unpinned_memory_is_done_with_on_return) {
  static size_t const sizes[] = {1, 100, n, 64 << 10, (64 << 10) + 1, 1 << 20, large};
  static unsigned char back[large];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t size = sizes[i];
    uintptr_t adr = block_of(&a, size);
    put_bytes(&a, adr, size, (unsigned)i);
    expect_ok(umem_copy_to(&a, adr, &host, (uintptr_t)back, size));
    if (!is_filled(back, size, (unsigned)i)) fail_msg("%zu bytes", size);
    umem_free(&a, adr);
  }
}

/* Half pinned: not pinned. */
ORDER_TEST(partly_pinned_memory_is_unpinned) {
  static unsigned char bytes[300 << 10];
  size_t const size = sizeof bytes / 2;
  memset(bytes, 0, sizeof bytes);
  enter(0);
  ok(rt->host_register(bytes, size, 0));
  uintptr_t adr = block_of(&a, size);
  expect_ok(umem_set(&a, adr, 6, size));
  expect_ok(umem_copy_to(&a, adr, &host, (uintptr_t)bytes, size));
  assert_int_equal(bytes[size - 1], 0); /* this was */
  expect_ok(umem_copy_to(&a, adr, &host, (uintptr_t)bytes + size, size));
  assert_int_equal(bytes[size], 6);
  assert_int_equal(bytes[2 * size - 1], 6);
  expect_ok(umem_synchronize(&a));
  ok(rt->host_unregister(bytes));
  leave(0);
}

enum { edge = 10 };

/* A face of a cube of edge, as rows with gaps. */
static void copy_face(void *src, uintptr_t from, void *dst, uintptr_t to) {
  size_t const extents[] = {edge, edge};
  ptrdiff_t const strides[] = {edge * edge, edge};
  umemLayout layout = {sizeof layout, 4, 2, extents, strides, strides};
  expect_ok(umem_copy_strided(src, from, dst, to, &layout));
}

ORDER_TEST(strided_copies_are_late_only_when_pinned) {
  unsigned char cube[edge * edge * edge] = {0};
  uintptr_t adr = block_of(&a, sizeof cube), there = block_of(&other, sizeof cube);
  expect_ok(umem_set(&a, adr, 1, sizeof cube));
  copy_face(&a, adr, &host, (uintptr_t)cube);
  assert_int_equal(cube[0] + cube[3] + cube[edge * edge * (edge - 1) + edge * (edge - 1) + 3], 3);
  assert_int_equal(cube[4] + cube[edge - 1], 0);
  memset(cube, 2, sizeof cube);
  copy_face(&host, (uintptr_t)cube, &a, adr);
  memset(cube, 9, sizeof cube);
  copy_face(&a, adr, &pinned, (uintptr_t)page);
  assert_true(page_is(0));
  assert_true(is_late(&a));
  expect_ok(umem_set(&a, adr, 3, sizeof cube));
  expect_ok(umem_synchronize(&a));
  assert_int_equal(page[0] + page[3] + page[4], 4);
  expect_ok(umem_set(&other, there, 0, sizeof cube));
  copy_face(&a, adr, &other, there); /* between GPUs */
  expect_ok(umem_set(&a, adr, 8, sizeof cube));
  expect_ok(umem_copy_to(&other, there, &host, (uintptr_t)cube, sizeof cube));
  assert_int_equal(cube[0] + cube[3] + cube[4], 6);
}

ORDER_TEST(the_legacy_stream_is_one_for_all) {
  void *legacy = opened("cuda-async:0?stream=legacy");
  uintptr_t adr = block_of(&plain, n);
  expect_ok(umem_set(legacy, adr, 1, n)); /* late, on memory of the other */
  to_page(&plain, adr);
  assert_true(page_is(1));
}

/* ---- captures ---- */

static uint64_t info_stream_of(void *ctx) {
  umemInfo info = UMEM_INFO_INIT;
  expect_ok(umem_get_info(ctx, &info));
  return info.stream;
}

/* Each layer over a stream answers for it, and only those over this one. */
ORDER_TEST(layers_answer_for_their_stream) {
  CONTEXT(umemLimit, limit, &a, SIZE_MAX);
  CONTEXT(umemPool, pool, &limit, NULL);
  CONTEXT(umemCudaAsync, legacy, 0, 0);
  void *const over_a[] = {&a, &limit, &pool}, *const others[] = {&b,     &other,  &legacy,
                                                                 &plain, &pinned, &host};
  for (size_t i = 0; i < 3; i++) assert_true(info_stream_of(over_a[i]) == (uintptr_t)stream_of(&a));
  assert_true(info_stream_of(&b) == (uintptr_t)stream_of(&b));
  assert_true(info_stream_of(&legacy) == 0);
  for (size_t i = 3; i < 6; i++) assert_true(info_stream_of(others[i]) == UMEM_UNKNOWN);
  for (int captured = 0; captured < 2; captured++) {
    if (captured) ok(fake_cudart_begin_capture(stream_of(&a)));
    for (size_t i = 0; i < 3; i++) assert_true(umem_is_captured(over_a[i]) == captured);
    for (size_t i = 0; i < 6; i++) assert_false(umem_is_captured(others[i]));
    for (size_t i = 0; i < 3; i++)
      assert_true(info_stream_of(over_a[i]) == (uintptr_t)stream_of(&a));
  }
  end_capture();
  for (size_t i = 0; i < 3; i++) assert_false(umem_is_captured(over_a[i]));
}

ORDER_TEST(captured_work_is_recorded) {
  static unsigned char bytes[n], back[large];
  uintptr_t adr = block_of(&a, large), copy = block_of(&a, large);
  memset(bytes, 1, n);
  memset(back, 0, large);
  expect_ok(umem_set(&a, adr, 0, large));
  expect_ok(umem_synchronize(&a));
  ok(fake_cudart_begin_capture(stream_of(&a)));
  expect_ok(umem_copy_from(&a, adr, &host, (uintptr_t)bytes, n));
  expect_ok(umem_set(&a, adr + 1, 2, 1));
  expect_ok(umem_copy_to(&a, adr, &a, copy, large));
  copy_face(&a, adr, &host, (uintptr_t)back + large / 2);
  to_page(&a, copy);
  expect_ok(umem_copy_to(&a, copy, &host, (uintptr_t)back, large / 2));
  void *graph = end_capture();
  assert_true(page_is(0));
  assert_int_equal(back[0], 0);
  for (int k = 3; k < 6; k++) { /* again and again, with what is there then */
    memset(bytes, k, n);
    launch(graph);
    assert_int_equal(page[0] * 100 + page[1] * 10 + page[2], k * 101 + 20);
    assert_int_equal(back[0] * 10 + back[n], k * 10);
    assert_int_equal(back[large / 2], k);
  }
}

ORDER_TEST(what_cannot_be_captured_leaves_the_capture_whole) {
  static unsigned char bytes[n];
  char const *words = "the stream is being captured into a graph";
  void *file = opened("file:");
  uintptr_t adr = block_of(&a, n), live = block_of(&a, n), in_file = umem_alloc(file, 2 * n);
  uintptr_t in_fake = block_of(&fake, n), there = block_of(&b, n);
  expect_ok(umem_set(file, in_file + n, 1, n));
  expect_ok(umem_set(&b, there, 1, n));
  expect_ok(umem_synchronize(&a));
  ok(fake_cudart_begin_capture(stream_of(&a)));
  expect_ok(umem_set(&a, adr, 4, n));
  expect_report(umem_alloc(&a, 8), umemNotSupportedError, words);
  expect_report(umem_calloc(&a, 8, 8), umemNotSupportedError, words);
  expect_report(umem_free(&a, live), umemNotSupportedError, words);
  expect_report(umem_realloc(&a, live, n, 2 * n), umemNotSupportedError, words);
  expect_failure(umem_synchronize(&a), umemNotSupportedError, words);
  expect_failure(umem_wait(&host, &a), umemNotSupportedError, words);
  expect_failure(umem_wait(&a, &b), umemNotSupportedError, "cannot wait for work outside");
  expect_failure(umem_copy_to(&b, there, &a, adr, n), umemNotSupportedError, "outside");
  expect_failure(umem_trim(&a, 0), umemNotSupportedError, words);
  /* Through buffers that would be gone when the graph runs. */
  expect_failure(umem_copy_to(file, in_file + n, &a, adr, n), umemNotSupportedError, words);
  expect_failure(umem_copy_to(&a, adr, file, in_file, n), umemNotSupportedError, words);
  expect_failure(umem_copy_from(&a, adr, &fake, in_fake, n), umemNotSupportedError, words);
  size_t const extents[] = {2, 3};
  ptrdiff_t const back[] = {-8, 2}, forth[] = {6, 2};
  umemLayout layout = {sizeof layout, 2, 2, extents, back, forth};
  layout.item_size = 1;
  expect_failure(umem_copy_strided(file, in_file + n, &a, adr, &layout), umemNotSupportedError,
                 words);
  to_page(&a, adr);
  launch(end_capture());
  assert_true(page_is(4));
  umem_free(&a, live);
  expect_ok(umem_copy_to(&a, adr, &host, (uintptr_t)bytes, n));
  assert_int_equal(bytes[n - 1], 4);
}

/* Captures of the program forbid "potentially unsafe" calls, also in threads and contexts that
 * have nothing to do with them. */
ORDER_TEST(other_contexts_do_not_break_a_capture) {
  uintptr_t mine = block_of(&a, n);
  ok(fake_cudart_begin_capture(stream_of(&a)));
  expect_ok(umem_set(&a, mine, 4, n));
  void *const others[] = {&plain, &plain_1, &b, &other, &pinned};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    void *ctx = others[i];
    uintptr_t adr = block_of(ctx, large), more = umem_calloc(ctx, 1, large);
    put_bytes(ctx, adr, large, (unsigned)i);
    expect_ok(umem_copy_from(ctx, more, ctx, adr, large));
    assert_true(has_bytes(ctx, more, large, (unsigned)i));
    expect_ok(umem_trim(ctx, 0));
    FREE(ctx, adr, more);
  }
  static char const *const names[] = {"cuda:2", "cuda-managed:0?flags=prefetch", "cuda-async:2"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *ctx = opened("%s", names[i]);
    block_of(ctx, 8);
    expect_ok(close_one(ctx));
  }
  to_page(&a, mine);
  launch(end_capture());
  assert_true(page_is(4));
}

/* A second context is drawn into the capture by waiting for the first, and comes back. */
ORDER_TEST(a_capture_takes_in_who_waits_for_it) {
  uintptr_t adr = block_of(&a, n), there = block_of(&b, n);
  expect_ok(umem_synchronize(&a));
  expect_ok(umem_synchronize(&b));
  ok(fake_cudart_begin_capture(stream_of(&a)));
  expect_ok(umem_set(&a, adr, 7, n));
  expect_ok(umem_wait(&b, &a));
  expect_ok(umem_copy_to(&a, adr, &b, there, n));
  to_page(&b, there);
  expect_ok(umem_wait(&a, &b));
  void *graph = end_capture();
  assert_true(page_is(0));
  launch(graph);
  assert_true(page_is(7));
}

/* Its blocks can go neither in the order of the stream nor before the work on it: that is reported,
 * and the capture stays whole. */
ORDER_TEST(a_context_may_end_while_it_is_captured) {
  void *stream, *graph;
  umemCudaAsync ctx;
  enter(0);
  ok(rt->stream_create(&stream));
  expect_ok(umemCudaAsync_ctor(&ctx, 0, (uintptr_t)stream));
  uintptr_t adr = block_of(&ctx, n);
  expect_ok(umem_synchronize(&ctx));
  ok(fake_cudart_begin_capture(stream));
  expect_report(umem_dtor(&ctx), umemNotSupportedError, "cannot free the block");
  ok(fake_cudart_end_capture(stream, &graph));
  ok(rt->free((void *)adr));
  ok(rt->stream_destroy(stream));
  leave(0);
}

/* ---- a capture that another thread begins ---- */

static void begin_capture(void *stream) { ok(fake_cudart_begin_capture_in(stream, 2)); }

/* While a copy waits for its buffer: what was queued before still writes there, in memory that the
 * program may have by then. */
ORDER_TEST(a_buffer_stays_if_its_work_cannot_be_waited_for) {
  size_t const sizes[] = {1000, 13000};
  void *graph;
  SCOPED(umem_dtor) Fake far;
  expect_ok(fake_ctor(&far));
  for (size_t i = 0; i < 2; i++) {
    uintptr_t from = umem_alloc(&a, sizes[i]), to = umem_alloc(&far, sizes[i]);
    expect_ok(umem_set(&a, from, 1, sizes[i]));
    expect_ok(umem_synchronize(&a));
    fake_cudart_before("stream_synchronize", 1, begin_capture, stream_of(&a));
    if (__lsan_disable) __lsan_disable();
    expect_failure(umem_copy_to(&a, from, &far, to, sizes[i]), umemNotSupportedError, "captured");
    if (__lsan_enable) __lsan_enable();
    unsigned char *next = (unsigned char *)umem_calloc(&host, sizes[i], 1);
    fake_cudart_end_capture(stream_of(&a), &graph); /* the wait has broken it */
    umem_clear_status(&a);
    expect_ok(umem_synchronize(&a));
    for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(next[k], 0);
    umem_free(&host, (uintptr_t)next);
    umem_free(&a, from);
    umem_free(&far, to);
  }
}

int main(void) { return run_order_cases(); }
