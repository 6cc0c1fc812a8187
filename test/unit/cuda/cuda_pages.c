/* cuda_pages.c - memory of GPUs that is mapped page by page: who has it, who may use it, and what
 * stays when a call of the runtime fails. On a double of the runtime. */
#include "cuda_help.h"

enum { room = 6 };

/* Addresses for so many pages of a context. */
static umemVirtual *ctx;
static umemPages const *pages;
static uintptr_t range;
static size_t page; /* bytes */

static void begin_range(void) {
  ctx = opened("cuda:0");
  pages = ctx->vptr->pages(ctx);
  assert_non_null(pages);
  page = pages->page_size;
  range = pages->reserve(ctx, room * page);
  assert_true(range != 0);
}

static void range_set_up(void **state) {
  cuda_set_up(state);
  begin_range();
}

static void range_tear_down(void **state) {
  assert_true(pages->release(ctx, range, room * page));
  cuda_tear_down(state);
}

#define RANGE_TEST(name) TEST_CASE_WITH(name, range_set_up, range_tear_down)

/* Each returns the number of pages. */
static size_t map(size_t first, size_t count) {
  return pages->map(ctx, range + first * page, count * page) / page;
}
static size_t unmap(size_t first, size_t count) {
  return pages->unmap(ctx, range + first * page, count * page) / page;
}
static size_t move(size_t from, size_t to, size_t count) {
  return pages->move(ctx, range + from * page, range + to * page, count * page) / page;
}

/* Exactly these pages have memory, as digits, and the device no other. */
static void expect_mapped(char const *which) {
  char found[room + 1] = {0};
  size_t count = 0;
  for (size_t i = 0; i < room; i++) {
    bool has = fake_cudart_at(range + i * page, page);
    found[i] = has ? '1' : '0';
    count += has;
  }
  assert_string_equal(found, which);
  assert_int_equal(fake_cudart_live().pages, count);
}

CUDA_TEST(the_contexts_of_device_memory_have_pages) {
  bool const has[kinds] = {[aCuda] = true, [anAsync] = true};
  for (int kind = 0; kind < kinds; kind++) {
    umemVirtual *any = opened_kind(kind, 0);
    umemPages const *(*method)(umemVirtual *) = any->vptr->pages;
    assert_int_equal(method && method(any), has[kind]);
  }
  SCOPED(umem_dtor) umemCudaAsync bounded;
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.maximum_size = 1 << 20;
  expect_ok(umemCudaAsync_ctor_with(&bounded, 0, UMEM_STREAM_NEW, &options));
  assert_null(bounded.super.vptr->pages(&bounded.super)); /* they would pass the maximum by */
}

/* Of 32 MiB, each one allocation of the driver. */
CUDA_TEST(large_pages_are_one_allocation_each) {
  SCOPED(umem_dtor) umemCudaAsync bounded;
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.maximum_size = 1 << 20;
  umemVirtual *cuda = opened("cuda:0");
  umemPages const *ranges = cuda->vptr->pages(cuda);
  umemPages const *large = cuda->vptr->large_pages(cuda);
  assert_int_equal(large->page_size, 32 << 20);
  size_t const n = large->page_size;
  uintptr_t adr = ranges->reserve(cuda, 4 * n);
  assert_int_equal(large->map(cuda, adr, 2 * n), 2 * n);
  assert_int_equal(fake_cudart_live().pages, 2);
  assert_true(fake_cudart_at(adr, 2 * n));
  assert_int_equal(large->move(cuda, adr, adr + 2 * n, 2 * n), 2 * n);
  assert_true(!fake_cudart_at(adr, 1) && fake_cudart_at(adr + 2 * n, 2 * n));
  assert_int_equal(large->unmap(cuda, adr + 2 * n, 2 * n), 2 * n);
  assert_int_equal(fake_cudart_live().pages, 0);
  assert_true(ranges->release(cuda, adr, 4 * n));
  expect_ok(umemCudaAsync_ctor_with(&bounded, 0, UMEM_STREAM_NEW, &options));
  assert_null(bounded.super.vptr->large_pages(&bounded.super));
}

CUDA_TEST(a_gpu_without_pages_has_none) {
  fake_cudart_machine()->device[0].no_pages = true;
  umemVirtual *cuda = opened("cuda:0");
  assert_null(cuda->vptr->pages(cuda));
  assert_int_equal(umem_thread_status(), umemOK);
}

/* What cannot be asked is not asked for good. */
CUDA_TEST(what_is_unknown_is_asked_again) {
  umemVirtual *cuda = opened("cuda:0");
  fake_cudart_fail_in("can_access_peer", 1, umemCudaInvalidValue);
  assert_null(cuda->vptr->pages(cuda));
  fake_cudart_fail_in("attribute", 1, umemCudaInvalidValue);
  assert_null(cuda->vptr->pages(cuda));
  assert_int_equal(umem_thread_status(), umemOK);
  umemPages const *known = cuda->vptr->pages(cuda);
  assert_non_null(known);
  assert_ptr_equal(cuda->vptr->pages(cuda), known);
}

RANGE_TEST(the_bus_reaches_pages_where_it_can) {
  for (int without = 0; without < 2; without++) {
    assert_true(pages->release(ctx, range, room * page));
    close_opened();
    fake_cudart_machine()->device[0].no_bus = without; /* a wrong flag is refused */
    begin_range();
    assert_int_equal(map(0, 1), 1);
    assert_int_equal(unmap(0, 1), 1);
  }
}

static unsigned long direct_copies(void *from, uintptr_t src, void *to, uintptr_t dst) {
  unsigned long before = fake_cudart_done().direct_peer;
  expect_ok(umem_copy_to(from, src, to, dst, 1000));
  expect_ok(umem_synchronize(to));
  expect_ok(umem_synchronize(from));
  return fake_cudart_done().direct_peer - before;
}

RANGE_TEST(peers_use_pages) {
  void *one = opened("cuda:1"), *two = opened("cuda:2");
  assert_int_equal(map(0, 1), 1);
  uintptr_t at_one = block_of(one, 1000), at_two = block_of(two, 1000);
  assert_int_equal(direct_copies(ctx, range, one, at_one), 1);
  assert_int_equal(direct_copies(one, at_one, ctx, range), 1);
  assert_int_equal(move(0, 3, 1), 1); /* and where they have moved */
  assert_int_equal(direct_copies(one, at_one, ctx, range + 3 * page), 1);
  assert_int_equal(direct_copies(ctx, range + 3 * page, two, at_two), 0);
  assert_int_equal(unmap(3, 1), 1);
  assert_false(fake_cudart_had_context(3));
}

RANGE_TEST(no_context_is_made_on_peers) {
  assert_int_equal(map(0, 2), 2);
  assert_int_equal(unmap(0, 2), 2);
  assert_false(fake_cudart_had_context(1));
}

RANGE_TEST(pages_are_mapped_while_a_stream_is_captured) {
  void *stream, *graph;
  enter(0);
  ok(rt->stream_create(&stream));
  ok(fake_cudart_begin_capture(stream));
  assert_int_equal(map(0, 2), 2);
  ok(fake_cudart_end_capture(stream, &graph)); /* whole */
  assert_non_null(graph);
  ok(rt->stream_destroy(stream));
  leave(0);
  assert_int_equal(unmap(0, 2), 2);
}

/* ---- failures ---- */

static void expect_failed(umemStatusType type, char const *words) {
  expect_failure(umem_thread_status(), type, words);
  umem_clear_status(ctx);
}

RANGE_TEST(a_full_gpu_maps_what_it_has) {
  fake_cudart_machine()->device[0].capacity = 3 * page;
  assert_int_equal(map(1, 5), 3);
  expect_failed(umemMemoryError, "cannot map 10485760 bytes");
  expect_mapped("011100");
  assert_int_equal(move(1, 4, 2), 2); /* that takes no memory */
  expect_mapped("000111");
  assert_int_equal(unmap(3, 3), 3);
}

RANGE_TEST(what_is_not_mapped_is_as_before) {
  static char const *const calls[] = {"page_create", "page_map", "page_allow", "page_release"};
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
    for (unsigned long nth = 1; nth <= 3; nth++) {
      bool at_end = c == 2, again = c == 3;
      if (at_end && nth > 1) break;
      fake_cudart_fail_in(calls[c], nth, umemCudaInvalidValue);
      size_t done = map(1, 3);
      assert_int_equal(done, again ? 3 : at_end ? 0 : nth - 1);
      if (!again) expect_failed(umemValueError, at_end ? "cannot use" : "cannot map");
      expect_mapped(done == 0 ? "000000" : done == 1 ? "010000" : done == 2 ? "011000" : "011100");
      if (done) assert_int_equal(unmap(1, done), done);
    }
}

RANGE_TEST(what_is_not_unmapped_is_as_before) {
  for (unsigned long nth = 1; nth <= 3; nth++) {
    assert_int_equal(map(1, 3), 3);
    fake_cudart_fail_in("page_unmap", nth, umemCudaInvalidValue);
    assert_int_equal(unmap(1, 3), nth - 1);
    expect_failed(umemValueError, "cannot unmap");
    expect_mapped(nth == 1 ? "011100" : nth == 2 ? "001100" : "000100");
    assert_int_equal(unmap(nth, 4 - nth), 4 - nth);
  }
}

RANGE_TEST(what_is_not_moved_is_as_before) {
  static char const *const calls[] = {"page_retain", "page_map", "page_unmap", "page_allow"};
  static char const *const results[] = {"111000", "011100", "001110", "000111"};
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
    for (unsigned long nth = 1; nth <= 3; nth++) {
      bool at_end = c == 3;
      if (at_end && nth > 1) break;
      assert_int_equal(map(0, 3), 3);
      fake_cudart_fail_in(calls[c], nth, umemCudaInvalidValue);
      size_t done = move(0, 3, 3);
      assert_int_equal(done, at_end ? 0 : nth - 1);
      expect_failed(umemValueError, at_end   ? "cannot use"
                                    : c == 2 ? "cannot unmap"
                                             : "cannot move");
      expect_mapped(results[done]);
      assert_int_equal(unmap(done, 3), 3);
    }
}

RANGE_TEST(ranges_that_fail) {
  fake_cudart_fail_in("range_reserve", 1, umemCudaOutOfMemory);
  assert_true(pages->reserve(ctx, page) == 0);
  expect_failed(umemMemoryError, "cannot reserve 2097152 bytes of addresses");
  fake_cudart_fail_in("range_free", 1, umemCudaInvalidValue);
  assert_false(pages->release(ctx, range, room * page));
  expect_failed(umemValueError, "cannot release 12582912 bytes of addresses");
}
