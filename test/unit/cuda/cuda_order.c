/* cuda_order.c - the order that the CUDA contexts promise: what is queued is late, what waits
 * comes after, what takes part in a copy without being pinned is done with on return, and
 * captures stay whole.
 *
 * On a double of the runtime that does nothing before it is demanded; once as drivers are so
 * far, and once with copies of pageable memory as late as the manual allows. */
#include "cuda_help.h"

#include <poll.h>

#include "backends.h"
#include "fake/fake.h"
#include "core/context.h"
#include "cuda/cuda_pinned.h"

/* Of LeakSanitizer, where that is. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

enum { n = 5000, large = umemStagingToDevice + (1 << 20) }; /* large is staged, both ways */

static umemHost host;
static umemCudaAsync a, b, other; /* on GPU 0, 0 and 1 */
static umemCuda plain, plain_1;   /* on GPU 0 and 1 */
static umemCudaHost pinned;
static FakeAsync fake;
static unsigned char *page; /* n bytes of pinned memory, zero */

static bool late_pageable;

static int order_set_up(void **state) {
  cuda_set_up(state);
  expect_ok(umemHost_ctor(&host));
  expect_ok(umemCudaAsync_ctor(&a, 0, UMEM_STREAM_NEW));
  expect_ok(umemCudaAsync_ctor(&b, 0, UMEM_STREAM_NEW));
  expect_ok(umemCudaAsync_ctor(&other, 1, UMEM_STREAM_NEW));
  expect_ok(umemCuda_ctor(&plain, 0));
  expect_ok(umemCuda_ctor(&plain_1, 1));
  expect_ok(umemCudaHost_ctor(&pinned, 0));
  expect_ok(fake_async_ctor(&fake));
  page = (unsigned char *)umem_calloc(&pinned, n, 1);
  fake_cudart_machine()->late_pageable = late_pageable;
  return page ? 0 : -1;
}

static int order_tear_down(void **state) {
  void *const all[] = {&a, &b, &other, &plain, &plain_1, &pinned, &fake, &host};
  close_opened();
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) umem_dtor(all[i]);
  if (umem_thread_status() != umemOK) fail_msg("%s", umem_thread_message());
  return cuda_tear_down(state);
}

#define ORDER_TEST(name) TEST_CASE_WITH(name, order_set_up, order_tear_down)

static void *stream_of(umemCudaAsync *ctx) { return (void *)umemCudaAsync_stream(ctx); }

static bool is_late(umemCudaAsync *ctx) { return fake_cudart_is_late(stream_of(ctx)); }

/* Whether n pinned bytes are all this. */
static bool page_is(int value) {
  for (size_t i = 0; i < n; i++)
    if (page[i] != value) return false;
  return true;
}

static void to_page(void *ctx, uintptr_t adr) {
  expect_ok(umem_copy_to(ctx, adr, &pinned, (uintptr_t)page, n));
}

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

/* Ends the capture of a, which must be whole, and returns its graph. */
static void *end_capture(void) {
  void *graph = NULL;
  ok(fake_cudart_end_capture(stream_of(&a), &graph));
  assert_non_null(graph);
  return graph;
}

static void launch(void *graph) {
  ok(fake_cudart_launch_graph(graph, stream_of(&a)));
  expect_ok(umem_synchronize(&a));
}

static uint64_t info_stream_of(void *ctx) {
  umemInfo info = UMEM_INFO_INIT;
  expect_ok(umem_get_info(ctx, &info));
  return info.stream;
}

/* Each layer over a stream answers for it, and only those over this one. */
ORDER_TEST(layers_answer_for_their_stream) {
  umemLimit limit;
  umemPool pool;
  umemCudaAsync legacy;
  expect_ok(umemLimit_ctor(&limit, &a, SIZE_MAX));
  expect_ok(umemPool_ctor(&pool, &limit, NULL));
  expect_ok(umemCudaAsync_ctor(&legacy, 0, 0));
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
  DESTRUCT(&legacy, &pool, &limit);
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

/* ---- transfers ---- */

static umemTransfer *start_to_page(umemCudaAsync *ctx, uintptr_t adr) {
  umemTransfer *transfer = NULL;
  expect_ok(umem_start(ctx, adr, &pinned, (uintptr_t)page, n, NULL, &transfer));
  assert_non_null(transfer);
  return transfer;
}

static uint64_t done_of(umemTransfer *transfer) {
  uint64_t done = 1;
  expect_ok(umemTransfer_progress(transfer, &done, NULL));
  return done;
}

/* Between what is queued before and after it. */
ORDER_TEST(a_transfer_is_queued) {
  uintptr_t adr = block_of(&a, n);
  expect_ok(umem_set(&a, adr, 1, n));
  umemTransfer *transfer = start_to_page(&a, adr);
  expect_ok(umem_set(&a, adr, 2, n));
  assert_true(is_late(&a));
  assert_true(page_is(0));
  assert_int_equal(done_of(transfer), 0);
  assert_false(umemTransfer_poll(transfer));
  umemTransfer_cancel(transfer); /* it goes on */
  while (!umemTransfer_poll(transfer)) continue;
  assert_true(page_is(1));
  assert_int_equal(done_of(transfer), n);
  expect_ok(umemTransfer_wait(transfer));
  expect_ok(umemTransfer_release(transfer));
  transfer = start_to_page(&a, adr);
  while (!umemTransfer_wait_for(transfer, 1)) continue;
  assert_true(page_is(2));
  expect_ok(umemTransfer_release(transfer));
  expect_ok(umem_set(&a, adr, 3, n));
  transfer = start_to_page(&a, adr);
  expect_ok(umemTransfer_wait(transfer));
  assert_true(page_is(3));
  expect_ok(umemTransfer_release(transfer));
}

ORDER_TEST(later_work_sees_the_bytes_of_a_transfer) {
  umemTransfer *transfer;
  void *file = opened("file:");
  uintptr_t in_file = umem_alloc(file, n), adr = block_of(&a, n);
  expect_ok(umem_set(file, in_file, 5, n));
  expect_ok(umem_set(&a, adr, 1, n));
  expect_ok(umem_start(file, in_file, &a, adr, n, NULL, &transfer));
  to_page(&a, adr);
  expect_ok(umem_synchronize(&a));
  assert_true(page_is(5));
  expect_ok(umemTransfer_release(transfer));
}

/* Items of two queues, which are late, and one that threads copy. */
static umemTransfer *start_list(uintptr_t of_a, uintptr_t of_b, void *file, unsigned char *to) {
  umemTransfer *transfer = NULL;
  umemCopyItem const items[] = {{&a, of_a, &pinned, (uintptr_t)page, n / 2},
                                {file, 0, &host, (uintptr_t)to, large},
                                {&b, of_b, &pinned, (uintptr_t)(page + n / 2), n / 2}};
  expect_ok(umem_start_many(items, 3, NULL, &transfer));
  assert_non_null(transfer);
  return transfer;
}

ORDER_TEST(a_list_ends_after_all_its_queues) {
  void *file = opened("file:");
  uintptr_t of_a = block_of(&a, n), of_b = block_of(&b, n);
  SCOPED(free_bytes) unsigned char *to = calloc(1, large);
  assert_true(umem_alloc(file, large) == 0);
  expect_ok(umem_set(file, 0, 9, large));
  for (int way = 0; way < 4; way++) {
    expect_ok(umem_set(&a, of_a, way + 1, n));
    expect_ok(umem_set(&b, of_b, way + 1, n));
    umemTransfer *transfer = start_list(of_a, of_b, file, to);
    expect_ok(umem_set(&a, of_a, 77, n));
    expect_ok(umem_set(&b, of_b, 77, n));
    struct pollfd end = {way == 1 ? umemTransfer_descriptor(transfer) : -1, POLLIN, 0};
    if (way == 1) assert_int_equal(poll(&end, 1, 60000), 1);
    if (way == 2) umemTransfer_cancel(transfer); /* what is queued goes on */
    while (way == 3 && !umemTransfer_poll(transfer)) continue;
    umemStatusType status = umemTransfer_wait(transfer);
    assert_true(status == umemOK || (way == 2 && status == umemCancelledError));
    if (status != umemOK) umem_thread_clear();
    assert_true(page_is(way + 1));
    assert_true(status != umemOK || (to[large - 1] == 9 && done_of(transfer) == n + large));
    expect_ok(umemTransfer_release(transfer));
    umem_clear_status(&host);
    memset(to, 0, large);
  }
}

/* Those before it in the queue have ended, too, but no other list. */
ORDER_TEST(the_end_of_a_list_ends_earlier_transfers) {
  uintptr_t of_a = block_of(&a, n), of_b = block_of(&b, n);
  umemCopyItem const items[] = {{&a, of_a, &pinned, (uintptr_t)page, 1},
                                {&b, of_b, &pinned, (uintptr_t)(page + 1), 1}};
  umemTransfer *both, *alone;
  expect_ok(umem_start_many(items, 2, NULL, &both));
  umemTransfer *plain_one = start_to_page(&a, of_a);
  expect_ok(umem_start_many(items, 1, NULL, &alone));
  expect_ok(umemTransfer_wait(alone));
  assert_int_equal(done_of(plain_one), n);
  assert_true(is_late(&b));
  assert_int_equal(done_of(both), 0);
  expect_ok(umemTransfer_wait(both));
  assert_false(is_late(&b));
  assert_int_equal(done_of(both), 2);
  expect_ok(umemTransfer_release(both));
  expect_ok(umemTransfer_release(plain_one));
  expect_ok(umemTransfer_release(alone));
}

/* ---- a list through pinned chunks that takes long ---- */

static void slow_copy_to(umemVirtual *ctx UNUSED, uintptr_t src_adr, umemVirtual *that UNUSED,
                         uintptr_t dst_adr, size_t nbytes) {
  usleep(5000);
  for (size_t i = 0; i < nbytes; i++)
    ((unsigned char *)dst_adr)[i] = (unsigned char)((src_adr + i) >> 12);
}

static unsigned reports;

static bool count_reports(void *user UNUSED, uint64_t done UNUSED, uint64_t total UNUSED) {
  reports++;
  return true;
}

/* Pieces end with a run, and the list goes on behind it. */
ORDER_TEST(a_slow_list_to_a_gpu_is_whole) {
  enum { count = 96, length = 300 << 10 };
  static struct umemVtbl const vtbl = {.copy_to = slow_copy_to};
  static umemCopyItem items[count];
  SCOPED(umem_dtor) umemVirtual slow;
  umemVirtual_ctor(&slow, &host);
  slow.vptr = &vtbl;
  slow.capabilities |= umemOffsets | umemConcurrent;
  uintptr_t adr = block_of(&plain, (size_t)count * (length + 8));
  SCOPED(free_bytes) unsigned char *found = malloc(length);
  for (size_t i = 0; i < count; i++)
    items[i] = (umemCopyItem){&slow, (i * 7 % count) * (length + 64), &plain,
                              adr + i * (length + 8), length};
  umemCopyManyOptions options = {.size = sizeof options, .progress = count_reports, .step = length};
  reports = 0;
  expect_ok(umem_copy_many(items, count, &options));
  assert_int_equal(reports, count + 1);
  for (size_t i = 0; i < count; i++) {
    assert_true(fake_cudart_peek(items[i].dst_adr, found, length));
    for (size_t k = 0; k < length; k += 1000)
      assert_int_equal(found[k], (unsigned char)((items[i].src_adr + k) >> 12));
  }
}

/* A thread of umem looks how far the queue is. */
ORDER_TEST(a_descriptor_shows_the_end_of_a_queued_transfer) {
  uintptr_t adr = block_of(&a, n);
  expect_ok(umem_set(&a, adr, 1, n));
  umemTransfer *transfer = start_to_page(&a, adr);
  struct pollfd end = {umemTransfer_descriptor(transfer), POLLIN, 0};
  assert_int_equal(poll(&end, 1, 60000), 1);
  assert_true(umemTransfer_poll(transfer));
  assert_true(page_is(1));
  expect_ok(umemTransfer_release(transfer));
  transfer = start_to_page(&a, adr);
  assert_true(umemTransfer_descriptor(transfer) >= 0);
  while (!umemTransfer_wait_for(transfer, 1)) continue;
  expect_ok(umemTransfer_release(transfer));
}

ORDER_TEST(a_context_waits_for_transfers_in_its_queue) {
  umemCudaAsync ctx;
  expect_ok(umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW));
  uintptr_t adr = block_of(&ctx, n);
  expect_ok(umem_set(&ctx, adr, 1, n));
  umemTransfer *transfer = start_to_page(&ctx, adr);
  umem_dtor(&ctx);
  assert_true(umemTransfer_poll(transfer));
  assert_true(page_is(1));
  expect_ok(umemTransfer_release(transfer));
  expect_ok(umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW));
  umemCopyItem const items[] = {{&a, block_of(&a, n), &pinned, (uintptr_t)page, 1},
                                {&ctx, block_of(&ctx, n), &pinned, (uintptr_t)(page + 1), n - 1}};
  expect_ok(umem_set(&ctx, items[1].src_adr, 2, n));
  expect_ok(umem_start_many(items, 2, NULL, &transfer));
  umem_dtor(&ctx);
  assert_true(umemTransfer_poll(transfer));
  assert_int_equal(page[n - 1], 2);
  expect_ok(umemTransfer_release(transfer));
}

/* Memory of the queue goes in its order, all other after the queue has done the copy. */
ORDER_TEST(who_frees_a_block_waits_unless_its_queue_does) {
  uintptr_t adr = block_of(&a, n), to = umem_alloc(&pinned, n);
  umemTransfer *transfer;
  expect_ok(umem_set(&a, adr, 1, n));
  expect_ok(umem_start(&a, adr, &pinned, to, n, NULL, &transfer));
  umem_free(&a, adr);
  assert_true(is_late(&a));
  assert_int_equal(done_of(transfer), 0);
  umem_free(&pinned, to);
  assert_int_equal(done_of(transfer), n);
  expect_ok(umemTransfer_release(transfer));
}

ORDER_TEST(transfers_are_no_part_of_a_capture) {
  umemTransfer *transfer;
  uintptr_t adr = block_of(&a, n);
  expect_ok(umem_synchronize(&a));
  ok(fake_cudart_begin_capture(stream_of(&a)));
  expect_failure(umem_start(&a, adr, &pinned, (uintptr_t)page, n, NULL, &transfer),
                 umemNotSupportedError, "captured");
  expect_failure(umem_start(&host, (uintptr_t)page, &a, adr, n, NULL, &transfer),
                 umemNotSupportedError, "captured");
  umemCopyItem const items[] = {{&host, (uintptr_t)page, &host, (uintptr_t)(page + 1), 1},
                                {&host, (uintptr_t)(page + 2), &a, adr, 2}};
  expect_failure(umem_start_many(items, 2, NULL, &transfer), umemNotSupportedError, "captured");
  assert_null(transfer);
  expect_ok(umem_set(&a, adr, 6, n));
  to_page(&a, adr);
  launch(end_capture());
  assert_true(page_is(6));
}

/* Each enters the GPU three times, to look for a capture, to copy, and to set a mark. The events of
 * those that are done serve again. The queue of the double moves when it is waited for. */
ORDER_TEST(short_transfers_take_few_calls) {
  enum { many = 800, most_behind = 40, most_calls = 3 * 5 + 5 };
  umemTransfer *transfers[many];
  uintptr_t adr = block_of(&a, n);
  unsigned long before = fake_cudart_calls(), created = fake_cudart_calls_of("event_create");
  for (int i = 0; i < many; i++) {
    transfers[i] = start_to_page(&a, adr);
    if (i % most_behind == 0) expect_ok(umem_synchronize(&a));
  }
  expect_ok(umem_synchronize(&a));
  for (int i = 0; i < many; i++) {
    expect_ok(umemTransfer_wait(transfers[i]));
    assert_int_equal(done_of(transfers[i]), n);
    expect_ok(umemTransfer_release(transfers[i]));
  }
  assert_in_range(fake_cudart_calls() - before, many, most_calls * many);
  assert_in_range(fake_cudart_calls_of("event_create") - created, 1, 3 * most_behind);
}

/* Starts a transfer of a value that its page does not have yet. */
static void *start_beside(void *transfer) {
  uintptr_t adr = block_of(&a, 1);
  expect_ok(umem_set(&a, adr, 7, 1));
  expect_ok(umem_start(&a, adr, &pinned, (uintptr_t)page, 1, NULL, transfer));
  return NULL;
}

static void start_in_another_thread(void *transfer) {
  join_thread(start_thread(start_beside, transfer));
}

/* Another thread queues a copy behind the mark of a transfer, before that is known to the others:
 * the end of the transfer says nothing of this copy. */
ORDER_TEST(a_transfer_ends_only_those_with_earlier_marks) {
  uintptr_t adr = block_of(&a, n);
  umemTransfer *later = NULL;
  expect_ok(umem_synchronize(&a));
  unsigned long looks = fake_cudart_calls_of("stream_capture");
  expect_ok(umemTransfer_release(start_to_page(&a, adr)));
  looks = fake_cudart_calls_of("stream_capture") - looks;
  fake_cudart_before("stream_capture", looks, start_in_another_thread, &later);
  umemTransfer *transfer = start_to_page(&a, adr);
  assert_non_null(later);
  while (!umemTransfer_poll(transfer)) continue;
  assert_true(is_late(&a));
  assert_int_equal(done_of(later), 0);
  expect_ok(umemTransfer_wait(later));
  assert_int_equal(page[0], 7);
  expect_ok(umemTransfer_release(later));
  expect_ok(umemTransfer_release(transfer));
}

/* Without a mark the start waits; what is found wrong later belongs to the transfer. */
ORDER_TEST(failures_of_marks) {
  uintptr_t adr = block_of(&a, n);
  static char const *const calls[] = {"event_create", "event_record", "stream_capture"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    expect_ok(umem_set(&a, adr, (int)i, n));
    fake_cudart_fail_in(calls[i], 1, umemCudaOutOfMemory);
    umemTransfer *transfer = start_to_page(&a, adr);
    fake_cudart_fail_in(calls[i], 0, 0);
    expect_ok(umemTransfer_wait(transfer));
    assert_true(page_is((int)i));
    expect_ok(umemTransfer_release(transfer));
  }
  void *file = opened("file:");
  unsigned char *to = malloc(large);
  uintptr_t of_b = block_of(&b, n);
  assert_true(umem_alloc(file, large) == 0);
  for (unsigned long call = 1; call < 3; call++) { /* the list waits at the start for one queue */
    fake_cudart_fail_in("event_create", call, umemCudaOutOfMemory);
    umemTransfer *list = start_list(adr, of_b, file, to);
    fake_cudart_fail_in("event_create", 0, 0);
    expect_ok(umemTransfer_wait(list));
    expect_ok(umemTransfer_release(list));
  }
  free(to);
  umemTransfer *transfer = start_to_page(&a, adr);
  fake_cudart_fail_in("event_query", 1, umemCudaLaunchFailure);
  assert_true(umemTransfer_poll(transfer));
  expect_failure(umemTransfer_wait(transfer), umemRuntimeError, "queued work has failed");
  expect_ok(umemTransfer_release(transfer));
  umem_clear_status(&a);
}

/* A start that looks how far the queue is finds what has failed: that is the transfer's. */
ORDER_TEST(a_start_has_no_failure_of_another_transfer) {
  enum { many = 64 };
  umemTransfer *transfers[many];
  uintptr_t adr = block_of(&a, n);
  unsigned failed = 0;
  fake_cudart_fail_in("event_query", 1, umemCudaLaunchFailure);
  for (int i = 0; i < many; i++) transfers[i] = start_to_page(&a, adr);
  for (int i = 0; i < many; i++) {
    umemStatusType status = umemTransfer_wait(transfers[i]);
    failed += status == umemRuntimeError;
    assert_true(status == umemOK || strstr(umem_thread_message(), "queued work has failed"));
    expect_ok(umemTransfer_release(transfers[i]));
  }
  assert_int_equal(failed, 1);
  FORGET(&a);
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

/* All of it once as drivers are so far, and once with copies of pageable memory as late as the
 * manual allows. */
int main(void) {
  int failed = run_cases(NULL, NULL);
  late_pageable = true;
  return failed + run_cases(NULL, NULL);
}
