/* pool_pages_cuda.c - pools that map pages of a GPU, and views of them on streams: a page moves
 * only when the work on it is done, and stays where a capture may use it. On a double of the
 * runtime that does nothing before it is demanded, and finds each use of a page that is gone. */
#include "settings.h"
#include "pool_cuda_help.h"

enum { mebi = 1 << 20, page = 2 * mebi, piece = 3 * page, some = 4096 };

static void open_all(void *below) { open_over(below, 0, 0); }

static size_t pages(void) { return fake_cudart_live().pages; }

/* A freed piece, on which work is queued, and behind it a block that keeps it from growing. Returns
 * that block. */
static uintptr_t free_busy_piece(void *on) {
  uintptr_t busy = block_of(on, piece), wall = block_of(on, page);
  expect_ok(umem_set(on, wall, 8, some));
  expect_ok(umem_set(on, busy + page - some / 2, 1, some)); /* of two pages */
  umem_free(on, busy);
  return wall;
}

static void expect_byte(uintptr_t adr, unsigned char c) {
  unsigned char byte = 0;
  assert_true(fake_cudart_peek(adr, &byte, 1));
  assert_int_equal(byte, c);
}

/* ---- order ---- */

ON_EACH(a_moved_page_has_no_work) {
  open_all(upstream);
  uintptr_t wall = free_busy_piece(&on_a);
  assert_true(fake_cudart_is_late(stream_of(&a)));
  assert_int_equal(pages(), 4);
  uintptr_t large = block_of(&on_a, 5 * page);
  assert_int_equal(pages(), 6); /* three have moved */
  expect_ok(umem_set(&on_a, large + 5 * page - some, 2, some));
  expect_ok(umem_synchronize(&a));
  expect_byte(large + 5 * page - 1, 2);
  expect_byte(wall, 8);
  FREE(&on_a, large, wall);
}

ON_EACH(pages_of_another_view_move) {
  open_all(upstream);
  uintptr_t wall = free_busy_piece(&on_a);
  uintptr_t large = block_of(&on_b, 5 * page);
  assert_int_equal(pages(), 6);
  expect_ok(umem_set(&on_b, large + 5 * page - some, 2, some));
  expect_ok(umem_synchronize(&b));
  expect_byte(large + 5 * page - 1, 2);
  umem_free(&on_b, large);
  umem_free(&on_a, wall);
}

/* Large pages, of this view and of another one: from a block on which work is queued to another
 * block, and back to the driver. */
ON_EACH(large_pages_have_no_work) {
  enum { large = 32 * mebi };
  for (int other = 0; other < 2; other++) {
    void *on = other ? (void *)&on_b : (void *)&on_a;
    open_over(upstream, large, 0);
    uintptr_t busy = block_of(&on_a, 2 * (size_t)large), wall = block_of(&on_a, large);
    expect_ok(umem_set(&on_a, wall, 8, some));
    expect_ok(umem_set(&on_a, busy + large - some / 2, 1, some));
    umem_free(&on_a, busy);
    assert_true(fake_cudart_is_late(stream_of(&a)));
    assert_int_equal(pages(), 3);
    uintptr_t block = block_of(on, 4 * (size_t)large);
    assert_int_equal(pages(), 5); /* two have moved */
    expect_ok(umem_set(on, block + 3 * (size_t)large - some / 2, 2, some));
    umem_free(on, block);
    expect_ok(umem_trim(on, 0)); /* what a view has goes to the pool */
    expect_ok(umem_trim(&pool, 0));
    assert_int_equal(pages(), 1);
    expect_ok(umem_synchronize(&a));
    expect_ok(umem_synchronize(&b));
    expect_byte(wall, 8);
    umem_free(&on_a, wall);
    close_empty();
  }
}

ON_EACH(trimmed_pages_have_no_work) {
  open_all(upstream);
  uintptr_t wall = free_busy_piece(&on_a);
  expect_ok(umem_trim(&pool, 0));
  assert_int_equal(pages(), 1);
  expect_ok(umem_synchronize(&a));
  expect_byte(wall, 8);
  umem_free(&on_a, wall);
}

/* Also at the end of the pool. */
ON_EACH(pages_end_after_their_work) {
  open_all(upstream);
  umem_dtor(&on_b);
  umem_free(&on_a, free_busy_piece(&on_a));
  DESTRUCT(&pool, &on_a);
  expect_ok(umem_synchronize(&a));
  assert_int_equal(pages(), 0);
}

/* A kernel of the program, on the legacy stream. */
static void write_there(void *adr) {
  if (!fake_cudart_poke((uintptr_t)adr, "k", 1)) abort();
}

ON_TEST(a_moved_page_has_no_kernel) {
  expect_ok(umemPool_ctor(&pool, &gpu, NULL));
  uintptr_t busy = block_of(&pool, piece), wall = block_of(&pool, page);
  enter(0);
  ok(fake_cudart_launch(NULL, write_there, (void *)(busy + page)));
  leave(0);
  umem_free(&pool, busy);
  uintptr_t large = block_of(&pool, 5 * page);
  assert_int_equal(pages(), 6);
  FREE(&pool, large, wall);
  umem_dtor(&pool);
}

/* ---- small blocks ---- */

enum { small = page / 2 - some, part = page / 4 * 3, whole = 6 * page };

static bool is_among_large(uintptr_t adr, uintptr_t large) {
  return adr >= large && adr - large < whole;
}

/* A pool of at most 7 pages that has moved 3. Returns the block for which it did. */
static uintptr_t move_pages(void) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.spare = 0;
  options.maximum = 7 * page;
  expect_ok(umemPool_ctor(&pool, &gpu, &options));
  uintptr_t freed = block_of(&pool, piece), wall = block_of(&pool, page);
  umem_free(&pool, freed);
  uintptr_t large = block_of(&pool, whole);
  assert_int_equal(pages(), 7);
  assert_true(wall > 0);
  return large;
}

ON_TEST(small_blocks_do_not_cut_large_ones_where_pages_move) {
  uintptr_t large = move_pages();
  umem_free(&pool, large);
  uintptr_t adr[2] = {block_of(&pool, small), block_of(&pool, small)};
  assert_false(is_among_large(adr[0], large) || is_among_large(adr[1], large));
  assert_true(adr[0] / page == adr[1] / page);
  assert_int_equal(block_of(&pool, whole - page), large);
  assert_int_equal(pages(), 7);
  umem_dtor(&pool);
}

ON_TEST(small_blocks_use_what_is_free_where_no_page_is) {
  uintptr_t large = move_pages(), parts[whole / part];
  umem_free(&pool, large);
  for (size_t i = 0; i < whole / part; i++) parts[i] = block_of(&pool, part);
  umem_free(&pool, parts[1]);
  uintptr_t adr =
      block_of(&pool, small); /* no whole page is free, and the pool may have no other */
  assert_true(is_among_large(adr, large));
  assert_true(is_among_large(block_of(&pool, some), large)); /* nor one for a span */
  assert_int_equal(pages(), 7);
  umem_dtor(&pool);
}

ON_TEST(small_blocks_use_what_is_free_where_no_page_moves) {
  expect_ok(umemPool_ctor(&pool, &gpu, NULL));
  umem_free(&pool, block_of(&pool, whole));
  size_t const before = pages();
  FREE(&pool, block_of(&pool, small), block_of(&pool, some));
  assert_true(before > 0 && pages() == before);
  umem_dtor(&pool);
}

/* ---- another GPU ---- */

enum { huge = 5 * page, at_border = page - some / 2 }; /* of two pages */

/* The other GPU writes to the block, which has size bytes, and reads it: at its ends, and across
 * two pages. The copies go directly, because it may use all pages. */
static void use_from(umemCuda *other, uintptr_t there, void *on, uintptr_t adr, size_t size,
                     unsigned char c) {
  size_t const places[] = {0, size - some, at_border};
  for (size_t i = 0; i < (size > page ? 3 : 2); i++) {
    unsigned long before = fake_cudart_done().direct_peer;
    expect_ok(umem_set(other, there, c, some));
    expect_ok(umem_copy_to(other, there, on, adr + places[i], some));
    expect_ok(umem_set(other, there, 0, some));
    expect_ok(umem_copy_from(other, there, on, adr + places[i], some));
    expect_ok(umem_synchronize(on));
    expect_ok(umem_synchronize(other));
    assert_int_equal(fake_cudart_done().direct_peer - before, 2);
    expect_byte(there, c);
    expect_byte(there + some - 1, c);
    expect_byte(adr + places[i], c);
  }
}

ON_EACH(another_gpu_uses_pages_wherever_they_move) {
  CONTEXT(umemCuda, other, 1);
  uintptr_t there = block_of(&other, some);
  void *const views[] = {&pool, &on_a, &on_b};
  for (size_t i = 0; i < 3; i++) {
    open_all(upstream);
    void *on = views[i];
    uintptr_t first = block_of(on, piece), wall = block_of(on, page);
    use_from(&other, there, on, first, piece, 1);
    use_from(&other, there, on, wall, page, 2);
    umem_free(on, first);
    uintptr_t moved = block_of(on, huge);
    assert_int_equal(pages(), 6); /* three have moved */
    use_from(&other, there, on, moved, huge, 3);
    expect_byte(wall, 2);
    umem_free(on, moved); /* and are used again, and beside them new ones */
    uintptr_t again = block_of(&on_b, huge), more = block_of(on, piece);
    use_from(&other, there, &on_b, again, huge, 4);
    use_from(&other, there, on, more, piece, 5);
    FREE(on, wall, more);
    umem_free(&on_b, again);
    expect_ok(umem_trim(&pool, 0));
    assert_int_equal(pages(), 0);
    close_empty();
  }
  umem_free(&other, there);
}

/* ---- captures ---- */

ON_EACH(pages_of_a_captured_view_stay) {
  open_all(upstream);
  uintptr_t wall = free_busy_piece(&on_a);
  begin_capture();
  uintptr_t again = block_of(&on_a, piece); /* the graph uses it */
  expect_ok(umem_set(&on_a, again, 3, some));
  umem_free(&on_a, again);
  uintptr_t large = block_of(&on_b, 5 * page);
  assert_int_equal(pages(), 9);
  expect_ok(umem_trim(&pool, 0));
  assert_int_equal(pages(), 9);
  umem_free(&on_b, large);
  expect_ok(umem_trim(&pool, 0));
  assert_int_equal(pages(), 4);
  end_capture();
  umem_free(&on_a, wall);
}

/* By a chunk, where CUDA allocates in a capture. */
ON_TEST(a_captured_view_gets_no_pages) {
  open_all(&gpu);
  begin_capture();
  uintptr_t adr = block_of(&on_a, piece);
  assert_int_equal(pages(), 0);
  assert_int_equal(fake_cudart_live().blocks, 1);
  umem_free(&on_a, adr);
  end_capture();
}

ON_TEST(a_view_gets_pages_of_a_captured_upstream) {
  open_all(&a);
  begin_capture();
  uintptr_t adr = block_of(&on_b, piece);
  expect_ok(umem_set(&on_b, adr, 1, some));
  expect_ok(umem_synchronize(&b));
  umem_free(&on_b, adr);
  expect_failure(umem_trim(&pool, 0), umemNotSupportedError, "captured");
  umem_clear_status(&pool);
  umem_clear_status(&a);
  end_capture();
}

/* Another thread does, while pages move. */
ON_EACH(a_capture_may_begin_at_any_call) {
  static char const *const calls[] = {"event_record", "event_synchronize", "stream_capture",
                                      "stream_wait",  "page_retain",       "page_map",
                                      "page_unmap",   "page_create",       "page_allow"};
  unsigned met = 0;
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
    for (unsigned long nth = 1; nth <= 6; nth++)
      for (int k = 0; k < 2; k++) {
        void *on = k ? &on_b : &on_a;
        open_all(upstream);
        uintptr_t wall = free_busy_piece(&on_a);
        capture.begun = false;
        fake_cudart_before(calls[c], nth, begin_in_thread, NULL);
        uintptr_t large = umem_alloc(on, 5 * page);
        fake_cudart_before(NULL, 0, NULL, NULL);
        if (large && !capture.begun) expect_ok(umem_set(on, large + page - some / 2, 2, some));
        if (capture.begun) {
          end_in_thread();
          assert_true(capture.is_whole);
          met++;
        }
        FORGET(on, upstream);
        expect_ok(umem_synchronize(&b));
        expect_ok(umem_synchronize(&a));
        if (large) umem_free(on, large);
        umem_free(&on_a, wall);
        close_empty();
      }
  assert_true(met > 10);
}

/* ---- failures ---- */

ON_EACH(each_call_may_fail) {
  int const errors[] = {umemCudaOutOfMemory, umemCudaNotSupported};
  for (int k = 0; k < 2; k++) {
    unsigned long nth = 0, calls = 0, before;
    do {
      nth++;
      open_all(upstream);
      uintptr_t wall = free_busy_piece(&on_a);
      before = fake_cudart_calls();
      fake_cudart_fail(nth, errors[k]);
      uintptr_t large = umem_alloc(&on_a, 5 * page);
      umem_trim(&pool, 0);
      calls = fake_cudart_calls() - before;
      fake_cudart_fail(0, 0);
      FORGET(&on_a, &pool, upstream, &a);
      if (large) {
        expect_ok(umem_set(&on_a, large + 5 * page - some, 2, some));
        expect_ok(umem_synchronize(&a));
        expect_byte(large + 5 * page - 1, 2);
        umem_free(&on_a, large);
      }
      large = block_of(&on_a, 9 * page); /* works again */
      expect_ok(umem_synchronize(&a));
      expect_byte(wall, 8);
      FREE(&on_a, large, wall);
      close_empty();
    } while (nth <= calls);
    assert_true(nth > 30);
  }
}

/* A GPU on which the driver maps nothing any more serves chunks. */
ON_TEST(a_driver_that_maps_nothing_allocates) {
  static char const *const calls[] = {"range_reserve", "page_create", "page_map", "page_allow"};
  for (size_t c = 0; c < 4; c++) {
    open_all(&gpu);
    fake_cudart_fail_in(calls[c], 1, umemCudaNotSupported);
    uintptr_t adr = block_of(&pool, piece);
    bool again = c == 0; /* a shorter range */
    assert_int_equal(fake_cudart_live().blocks, !again);
    umem_free(&pool, adr);
    umem_clear_status(&gpu);
    close_empty();
  }
}

/* Nothing is mapped for what the GPU has not, so that other programs find their memory
 * meanwhile. */
ON_TEST(what_is_not_there_maps_no_page) {
  if (setting_qemu()) skip(); /* it has a record of each page that is reserved */
  umemInfo info = info_of(&gpu);
  size_t const sizes[] = {(size_t)info.capacity + 1, (size_t)1 << 40, (size_t)1 << 46};
  open_all(&gpu);
  unsigned long before = fake_cudart_calls_of("page_create");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(umem_alloc(&pool, sizes[i]), 0);
    assert_int_equal(umem_thread_status(), umemMemoryError);
    umem_thread_clear();
  }
  assert_int_equal(fake_cudart_calls_of("page_create"), before);
  umem_free(&pool, block_of(&pool, piece));
  umem_clear_status(&pool);
  umem_clear_status(&gpu);
}
