/* cuda_pages.c - memory of GPUs that is mapped page by page: who has it, who may use it, and what
 * stays when a call of the runtime fails. On a double of the runtime. */
#include "cuda_help.h"

typedef struct Range {
  umemVirtual *ctx;
  umemPages const *pages;
  uintptr_t adr;
  size_t page;
} Range;

enum { room = 6 };

static void begin_range(Range *range, void *ctx) {
  range->ctx = ctx;
  range->pages = range->ctx->vptr->pages(range->ctx);
  assert_non_null(range->pages);
  range->page = range->pages->page_size;
  range->adr = range->pages->reserve(range->ctx, room * range->page);
  assert_true(range->adr != 0);
}

static void end_range(Range *range) {
  assert_true(range->pages->release(range->ctx, range->adr, room * range->page));
}

/* Each returns the number of pages. */
static size_t map(Range *range, size_t first, size_t count) {
  return range->pages->map(range->ctx, range->adr + first * range->page, count * range->page) /
         range->page;
}
static size_t unmap(Range *range, size_t first, size_t count) {
  return range->pages->unmap(range->ctx, range->adr + first * range->page, count * range->page) /
         range->page;
}
static size_t move(Range *range, size_t from, size_t to, size_t count) {
  return range->pages->move(range->ctx, range->adr + from * range->page,
                            range->adr + to * range->page, count * range->page) /
         range->page;
}

/* Exactly these pages have memory, as digits, and the device no other. */
static void expect_mapped(Range *range, char const *which) {
  char found[room + 1] = {0};
  size_t count = 0;
  for (size_t i = 0; i < room; i++) {
    bool has = fake_cudart_at(range->adr + i * range->page, range->page);
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
  umemCudaAsync bounded;
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.maximum_size = 1 << 20;
  expect_ok(umemCudaAsync_ctor_with(&bounded, 0, UMEM_STREAM_NEW, &options));
  assert_null(bounded.super.vptr->pages(&bounded.super)); /* they would pass the maximum by */
  umem_dtor(&bounded);
}

/* Of 32 MiB, each one allocation of the driver. */
CUDA_TEST(large_pages_are_one_allocation_each) {
  umemCuda cuda;
  umemCudaAsync bounded;
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.maximum_size = 1 << 20;
  expect_ok(umemCuda_ctor(&cuda, 0));
  umemPages const *ranges = cuda.super.vptr->pages(&cuda.super);
  umemPages const *large = cuda.super.vptr->large_pages(&cuda.super);
  assert_int_equal(large->page_size, 32 << 20);
  size_t const n = large->page_size;
  uintptr_t adr = ranges->reserve(&cuda.super, 4 * n);
  assert_int_equal(large->map(&cuda.super, adr, 2 * n), 2 * n);
  assert_int_equal(fake_cudart_live().pages, 2);
  assert_true(fake_cudart_at(adr, 2 * n));
  assert_int_equal(large->move(&cuda.super, adr, adr + 2 * n, 2 * n), 2 * n);
  assert_true(!fake_cudart_at(adr, 1) && fake_cudart_at(adr + 2 * n, 2 * n));
  assert_int_equal(large->unmap(&cuda.super, adr + 2 * n, 2 * n), 2 * n);
  assert_int_equal(fake_cudart_live().pages, 0);
  assert_true(ranges->release(&cuda.super, adr, 4 * n));
  expect_ok(umemCudaAsync_ctor_with(&bounded, 0, UMEM_STREAM_NEW, &options));
  assert_null(bounded.super.vptr->large_pages(&bounded.super));
  umem_dtor(&bounded);
  umem_dtor(&cuda);
}

CUDA_TEST(a_gpu_without_pages_has_none) {
  umemCuda cuda;
  fake_cudart_machine()->device[0].no_pages = true;
  expect_ok(umemCuda_ctor(&cuda, 0));
  assert_null(cuda.super.vptr->pages(&cuda.super));
  assert_int_equal(umem_thread_status(), umemOK);
  umem_dtor(&cuda);
}

/* What cannot be asked is not asked for good. */
CUDA_TEST(what_is_unknown_is_asked_again) {
  umemCuda cuda;
  expect_ok(umemCuda_ctor(&cuda, 0));
  fake_cudart_fail_in("can_access_peer", 1, umemCudaInvalidValue);
  assert_null(cuda.super.vptr->pages(&cuda.super));
  fake_cudart_fail_in("attribute", 1, umemCudaInvalidValue);
  assert_null(cuda.super.vptr->pages(&cuda.super));
  assert_int_equal(umem_thread_status(), umemOK);
  umemPages const *pages = cuda.super.vptr->pages(&cuda.super);
  assert_non_null(pages);
  assert_ptr_equal(cuda.super.vptr->pages(&cuda.super), pages);
  umem_dtor(&cuda);
}

CUDA_TEST(the_bus_reaches_pages_where_it_can) {
  for (int without = 0; without < 2; without++) {
    umemCuda cuda;
    Range range;
    fake_cudart_machine()->device[0].no_bus = without; /* a wrong flag is refused */
    expect_ok(umemCuda_ctor(&cuda, 0));
    begin_range(&range, &cuda);
    assert_int_equal(map(&range, 0, 1), 1);
    assert_int_equal(unmap(&range, 0, 1), 1);
    end_range(&range);
    umem_dtor(&cuda);
  }
}

static unsigned long direct_copies(void *from, uintptr_t src, void *to, uintptr_t dst) {
  unsigned long before = fake_cudart_done().direct_peer;
  expect_ok(umem_copy_to(from, src, to, dst, 1000));
  expect_ok(umem_synchronize(to));
  expect_ok(umem_synchronize(from));
  return fake_cudart_done().direct_peer - before;
}

CUDA_TEST(peers_use_pages) {
  Range range;
  void *zero = opened("cuda:0"), *one = opened("cuda:1"), *two = opened("cuda:2");
  begin_range(&range, zero);
  assert_int_equal(map(&range, 0, 1), 1);
  uintptr_t at_one = block_of(one, 1000), at_two = block_of(two, 1000);
  assert_int_equal(direct_copies(zero, range.adr, one, at_one), 1);
  assert_int_equal(direct_copies(one, at_one, zero, range.adr), 1);
  assert_int_equal(move(&range, 0, 3, 1), 1); /* and where they have moved */
  assert_int_equal(direct_copies(one, at_one, zero, range.adr + 3 * range.page), 1);
  assert_int_equal(direct_copies(zero, range.adr + 3 * range.page, two, at_two), 0);
  assert_int_equal(unmap(&range, 3, 1), 1);
  assert_false(fake_cudart_had_context(3));
  end_range(&range);
}

CUDA_TEST(no_context_is_made_on_peers) {
  Range range;
  void *zero = opened("cuda:0");
  begin_range(&range, zero);
  assert_int_equal(map(&range, 0, 2), 2);
  assert_int_equal(unmap(&range, 0, 2), 2);
  end_range(&range);
  assert_false(fake_cudart_had_context(1));
}

CUDA_TEST(pages_are_mapped_while_a_stream_is_captured) {
  Range range;
  void *stream, *graph;
  void *cuda = opened("cuda:0");
  begin_range(&range, cuda);
  enter(0);
  ok(rt->stream_create(&stream));
  ok(fake_cudart_begin_capture(stream));
  assert_int_equal(map(&range, 0, 2), 2);
  ok(fake_cudart_end_capture(stream, &graph)); /* whole */
  assert_non_null(graph);
  ok(rt->stream_destroy(stream));
  leave(0);
  assert_int_equal(unmap(&range, 0, 2), 2);
  end_range(&range);
}

/* ---- failures ---- */

static void expect_failed(Range *range, umemStatusType type, char const *words) {
  expect_failure(umem_thread_status(), type, words);
  umem_clear_status(range->ctx);
}

CUDA_TEST(a_full_gpu_maps_what_it_has) {
  Range range;
  void *cuda = opened("cuda:0");
  begin_range(&range, cuda);
  fake_cudart_machine()->device[0].capacity = 3 * range.page;
  assert_int_equal(map(&range, 1, 5), 3);
  expect_failed(&range, umemMemoryError, "cannot map 10485760 bytes");
  expect_mapped(&range, "011100");
  assert_int_equal(move(&range, 1, 4, 2), 2); /* that takes no memory */
  expect_mapped(&range, "000111");
  assert_int_equal(unmap(&range, 3, 3), 3);
  end_range(&range);
}

CUDA_TEST(what_is_not_mapped_is_as_before) {
  static char const *const calls[] = {"page_create", "page_map", "page_allow", "page_release"};
  Range range;
  void *cuda = opened("cuda:0");
  begin_range(&range, cuda);
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
    for (unsigned long nth = 1; nth <= 3; nth++) {
      bool at_end = c == 2, again = c == 3;
      if (at_end && nth > 1) break;
      fake_cudart_fail_in(calls[c], nth, umemCudaInvalidValue);
      size_t done = map(&range, 1, 3);
      assert_int_equal(done, again ? 3 : at_end ? 0 : nth - 1);
      if (!again) expect_failed(&range, umemValueError, at_end ? "cannot use" : "cannot map");
      expect_mapped(&range, done == 0   ? "000000"
                            : done == 1 ? "010000"
                            : done == 2 ? "011000"
                                        : "011100");
      if (done) assert_int_equal(unmap(&range, 1, done), done);
    }
  end_range(&range);
}

CUDA_TEST(what_is_not_unmapped_is_as_before) {
  Range range;
  void *cuda = opened("cuda:0");
  begin_range(&range, cuda);
  for (unsigned long nth = 1; nth <= 3; nth++) {
    assert_int_equal(map(&range, 1, 3), 3);
    fake_cudart_fail_in("page_unmap", nth, umemCudaInvalidValue);
    assert_int_equal(unmap(&range, 1, 3), nth - 1);
    expect_failed(&range, umemValueError, "cannot unmap");
    expect_mapped(&range, nth == 1 ? "011100" : nth == 2 ? "001100" : "000100");
    assert_int_equal(unmap(&range, nth, 4 - nth), 4 - nth);
  }
  end_range(&range);
}

CUDA_TEST(what_is_not_moved_is_as_before) {
  static char const *const calls[] = {"page_retain", "page_map", "page_unmap", "page_allow"};
  static char const *const results[] = {"111000", "011100", "001110", "000111"};
  Range range;
  void *cuda = opened("cuda:0");
  begin_range(&range, cuda);
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
    for (unsigned long nth = 1; nth <= 3; nth++) {
      bool at_end = c == 3;
      if (at_end && nth > 1) break;
      assert_int_equal(map(&range, 0, 3), 3);
      fake_cudart_fail_in(calls[c], nth, umemCudaInvalidValue);
      size_t done = move(&range, 0, 3, 3);
      assert_int_equal(done, at_end ? 0 : nth - 1);
      expect_failed(&range, umemValueError,
                    at_end   ? "cannot use"
                    : c == 2 ? "cannot unmap"
                             : "cannot move");
      expect_mapped(&range, results[done]);
      assert_int_equal(unmap(&range, done, 3), 3);
    }
  end_range(&range);
}

CUDA_TEST(ranges_that_fail) {
  Range range;
  void *cuda = opened("cuda:0");
  begin_range(&range, cuda);
  fake_cudart_fail_in("range_reserve", 1, umemCudaOutOfMemory);
  assert_true(range.pages->reserve(range.ctx, range.page) == 0);
  expect_failed(&range, umemMemoryError, "cannot reserve 2097152 bytes of addresses");
  fake_cudart_fail_in("range_free", 1, umemCudaInvalidValue);
  assert_false(range.pages->release(range.ctx, range.adr, room * range.page));
  expect_failed(&range, umemValueError, "cannot release 12582912 bytes of addresses");
  end_range(&range);
}

int main(void) { return run_cases(NULL, NULL); }
