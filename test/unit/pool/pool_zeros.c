/* pool_zeros.c - umem_calloc of a pool: bytes are zero whatever was there before, and memory that
 * is zero is not written. */
#include "pool_pages_help.h"

enum { replaced = 32 * mebi }; /* a used block of so many bytes gets other memory */

static void open_zeros(void) {
  paged_promise_zeros(&paged, false);
  open_plain(0);
}

static uintptr_t zeros(void *ctx, size_t nbytes) {
  uintptr_t adr = umem_calloc(ctx, 1, nbytes);
  assert_true(adr != umem_null(ctx));
  assert_true(is_filled(adr, nbytes, 0));
  return adr;
}

/* A block that comes as zeros, of which so many bytes were written. */
static uintptr_t zeros_by(size_t nbytes, size_t least, size_t most) {
  paged.set_bytes = 0;
  uintptr_t adr = zeros(&pool, nbytes);
  assert_in_range(paged.set_bytes, least, most);
  return adr;
}

/* ---- what is fresh ---- */

PAGES_TEST(new_pages_are_not_written) {
  open_zeros();
  uintptr_t one = zeros_by(10 * page, 0, 0), two = zeros_by(70000, 0, 0);
  uintptr_t three = zeros_by(3 * page + 5, 0, 0);
  FREE(&pool, one, two, three);
}

PAGES_TEST(without_the_promise_all_is_written) {
  open_plain(0);
  uintptr_t one = zeros_by(10 * page, 10 * page, 10 * page);
  umem_free(&pool, one);
}

static void open_chunks(void *upstream) {
  umemPoolOptions options = {sizeof options, 0, 0, 0, umemPoolChunks, 0};
  assert_ok(umemPool_ctor(&pool, upstream, &options));
}

PAGES_TEST(chunks_are_written) {
  paged_promise_zeros(&paged, false);
  open_chunks(&paged);
  uintptr_t one = zeros_by(10 * page, 10 * page, 10 * page);
  umem_free(&pool, one);
}

/* A place with the method calloc knows which of its memory is zero. */
static size_t chunks_of_zeros;

static uintptr_t knowing_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  uintptr_t adr = ctx->vptr->alloc(ctx, nmemb * size);
  if (adr) memset((void *)adr, 0, nmemb * size);
  chunks_of_zeros++;
  return adr;
}

static void open_knowing(void) {
  static struct umemVtbl knowing;
  paged_promise_zeros(&paged, false);
  knowing = *paged.super.vptr;
  knowing.calloc = knowing_calloc;
  paged.super.vptr = &knowing;
  chunks_of_zeros = 0;
  open_chunks(&paged);
}

PAGES_TEST(chunks_of_a_place_that_knows_its_zeros_are_not_written) {
  open_knowing();
  uintptr_t one = zeros_by(2 * page, 0, 0), two = zeros_by(3 * page + 5, 0, 0);
  uintptr_t used = filled_block(2 * page, 0xFF), three = zeros_by(4 * page, 0, 0);
  assert_int_equal(chunks_of_zeros, 1);
  FREE(&pool, one, two, used, three);
}

/* Of a chunk only what is behind all freed blocks is known to be zero. */
PAGES_TEST(used_parts_of_a_chunk_are_written) {
  open_knowing();
  uintptr_t one = zeros_by(2 * page, 0, 0), two = zeros_by(2 * page, 0, 0);
  fill(one, 2 * page, 0xFF);
  umem_free(&pool, one);
  one = zeros_by(2 * page, 2 * page, 2 * page);
  uintptr_t three = zeros_by(5 * page, 0, 0);
  fill(three, 5 * page, 0xFF);
  umem_free(&pool, three);
  three = zeros_by(8 * page, 5 * page, 5 * page);
  FREE(&pool, one, two, three);
}

PAGES_TEST(spans_that_ended_in_a_chunk_are_written) {
  enum { count = 200 };
  uintptr_t small[count];
  open_knowing();
  uintptr_t first = zeros_by(page + 1, 0, 0);
  for (int i = 0; i < count; i++) small[i] = filled_block(2000, 0xFF);
  for (int i = 0; i < count; i++) umem_free(&pool, small[i]);
  stats_of(&pool);
  umem_free(&pool, zeros(&pool, 10 * page));
  umem_free(&pool, first);
}

PAGES_TEST(a_chunk_that_is_not_for_zeros_is_written) {
  open_knowing();
  uintptr_t used = filled_block(2 * page, 0xFF), one = zeros_by(2 * page, 2 * page, 2 * page);
  assert_int_equal(chunks_of_zeros, 0);
  FREE(&pool, used, one);
}

/* The room in which such a chunk is aligned must not be what makes a request fail. */
PAGES_TEST(a_chunk_of_zeros_fits_the_maximum) {
  open_knowing();
  umem_dtor(&pool);
  umemPoolOptions options = {sizeof options, 0, 0, 16 * page, umemPoolChunks, 0};
  assert_ok(umemPool_ctor(&pool, &paged, &options));
  uintptr_t one = zeros_by(16 * page, 16 * page, 16 * page);
  assert_int_equal(chunks_of_zeros, 0);
  assert_int_equal(reserved(), 16 * page);
  umem_free(&pool, one);
  assert_ok(umem_trim(&pool, 0));
  one = zeros_by(15 * page, 0, 0);
  assert_int_equal(reserved(), 16 * page);
  assert_true(umem_alloc(&pool, page) == 0);
  FORGET(&pool);
  umem_free(&pool, one);
}

/* A neighbour that lives has not made its page used. */
PAGES_TEST(pages_are_fresh_beside_live_blocks) {
  open_zeros();
  uintptr_t small = filled_block(100, 1), large = filled_block(page + 5000, 2);
  uintptr_t one = zeros_by(8 * page, 0, 0);
  assert_true(is_filled(small, 100, 1) && is_filled(large, page + 5000, 2));
  FREE(&pool, small, large, one);
}

PAGES_TEST(what_an_adaptor_passes_on_is_not_written) {
  paged_promise_zeros(&paged, false);
  CONTEXT(umemLimit, limit, &paged, 100 * page);
  CONTEXT(umemStats, stats, &limit);
  open_pool(&pool, &stats, 0, 0, 0);
  uintptr_t one = zeros_by(10 * page, 0, 0);
  umem_free(&pool, one);
  close_pool(&pool);
  pool.super.vptr = NULL;
}

PAGES_TEST(a_view_gets_what_is_fresh) {
  open_zeros();
  CONTEXT(umemPoolOn, view, &pool, &paged);
  paged.set_bytes = 0;
  uintptr_t one = zeros(&view, 10 * page);
  assert_int_equal(paged.set_bytes, 0);
  fill(one, 10 * page, 1);
  umem_free(&view, one);
  umem_free(&view, zeros(&view, 10 * page));
}

/* ---- what was used ---- */

PAGES_TEST(a_freed_block_is_written) {
  open_zeros();
  for (size_t i = 0; i < some; i++) {
    size_t size = some_sizes[i];
    for (int k = 0; k < 3; k++) {
      uintptr_t adr = zeros(&pool, size);
      fill(adr, size, 0xFF);
      umem_free(&pool, adr);
    }
    uintptr_t adr = filled_block(size, 0xFF);
    umem_free(&pool, adr);
    umem_free(&pool, zeros(&pool, size));
  }
}

/* Spans that have ended, quick lists, and blocks that were resized. */
PAGES_TEST(memory_of_other_sizes_is_written) {
  enum { count = 300 };
  uintptr_t adr[count];
  open_zeros();
  for (size_t size = 3000; size < 300000; size *= 2) {
    for (int i = 0; i < count; i++) adr[i] = filled_block(size / 20, 0xFF);
    for (int i = 0; i < count; i++) umem_free(&pool, adr[i]);
    uintptr_t one = filled_block(size, 0xFF);
    one = umem_realloc(&pool, one, size, 3 * size);
    fill(one, 3 * size, 0xFF);
    umem_free(&pool, one);
    umem_free(&pool, zeros(&pool, 2 * size));
  }
  umem_free(&pool, zeros(&pool, 40 * page));
}

/* A block is freed beside one that is zero: only the page that they share counts as used. */
PAGES_TEST(only_used_pages_are_written) {
  open_zeros();
  uintptr_t used = filled_block(2 * page, 0xFF), kept = filled_block(page, 1);
  umem_free(&pool, used);
  uintptr_t all = zeros_by(2 * page, page, 3 * page), more = zeros_by(20 * page, 0, 2 * page);
  FREE(&pool, kept, all, more);
}

PAGES_TEST(pages_that_went_back_are_fresh_again) {
  open_zeros();
  uintptr_t used = filled_block(20 * page, 0xFF);
  umem_free(&pool, used);
  assert_ok(umem_trim(&pool, 0));
  uintptr_t one = zeros_by(20 * page, 0, 0);
  umem_free(&pool, one);
}

PAGES_TEST(pages_that_were_moved_are_written) {
  paged_promise_zeros(&paged, false);
  open_plain(12 * page);
  uintptr_t used[6], one;
  for (int i = 0; i < 6; i++) used[i] = filled_block(2 * page, 0xFF);
  for (int i = 0; i < 6; i += 2) umem_free(&pool, used[i]);
  one = zeros(&pool, 6 * page);
  assert_true(paged.calls[pagedMove] > 0);
  umem_free(&pool, one);
  for (int i = 1; i < 6; i += 2) umem_free(&pool, used[i]);
}

/* A page that was never used goes back, and a used one moves to its address. */
PAGES_TEST(a_used_page_at_a_fresh_address_is_written) {
  paged_promise_zeros(&paged, false);
  open_pool(&pool, &paged, 8 * page, 0, 0);
  uintptr_t used[3];
  for (int i = 0; i < 3; i++) used[i] = filled_block(2 * page, 0xFF);
  assert_ok(umem_trim(&pool, 0));
  assert_int_equal(reserved(), 6 * page);
  paged.capacity = 6;
  paged.no_alloc = true;
  FREE(&pool, used[0], used[2]);
  uintptr_t one = zeros(&pool, 4 * page);
  assert_int_equal(paged.calls[pagedMove], 1);
  FREE(&pool, used[1], one);
}

/* ---- large blocks that were used ---- */

static void use_large(bool keeps, size_t size) {
  paged_promise_zeros(&paged, keeps);
  open_plain(0);
  uintptr_t before = filled_block(5000 + page, 1);
  uintptr_t one = filled_block(size, 0xFF);
  umem_free(&pool, one);
  one = zeros(&pool, size);
  FREE(&pool, one, before);
}

PAGES_TEST(a_large_used_block_gets_other_memory) {
  use_large(false, replaced + 2 * page);
  assert_in_range(paged.zeroed_bytes, replaced, replaced + 2 * page);
  assert_in_range(paged.set_bytes, 0, 2 * page);
}

PAGES_TEST(a_large_used_block_is_written_where_it_keeps_its_memory) {
  use_large(true, replaced + 2 * page);
  assert_true(paged.zeroed_bytes == 0 && paged.set_bytes >= replaced);
}

PAGES_TEST(a_smaller_used_block_is_written) {
  use_large(false, replaced / 2);
  assert_true(paged.zeroed_bytes == 0 && paged.set_bytes >= replaced / 2);
}

PAGES_TEST(a_block_whose_zeros_fail_is_freed) {
  static struct umemVtbl failing;
  open_zeros();
  umem_free(&pool, filled_block(4 * page, 0xFF));
  failing = *paged.super.vptr;
  failing.set = NULL;
  failing.copy_from = NULL;
  paged.super.vptr = &failing;
  assert_true(umem_calloc(&pool, 4, page) == 0);
  expect_failure(&pool, umemNotImplementedError, "set");
  forget_failures();
  paged_promise_zeros(&paged, false);
  assert_int_equal(stats_of(&pool).blocks, 0);
}

/* ---- at random ---- */

enum { most_blocks = 64 };

static void use_at_random(uint64_t seed, size_t rounds) {
  static Block blocks[most_blocks];
  size_t count = 0, callocs = 0;
  for (size_t round = 0; round < rounds; round++) {
    size_t what = below(&seed, 100);
    if (count && (count == most_blocks || what < 40)) {
      Block *block = &blocks[below(&seed, count)];
      assert_true(is_whole(block));
      umem_free(&pool, block->adr);
      *block = blocks[--count];
    } else if (what < 41) {
      assert_ok(umem_trim(&pool, below(&seed, 3) * page * 20));
    } else {
      unsigned char c = (unsigned char)(1 + below(&seed, 255));
      size_t size = below(&seed, 4) ? random_size(&seed, 18) : 1 + below(&seed, 12 * page);
      Block block = {0, size, c};
      if (what < 70) block.adr = umem_calloc(&pool, 1, size);
      if (block.adr && !is_filled(block.adr, size, 0)) fail_msg("round %zu: not zero", round);
      callocs += block.adr != 0;
      if (what >= 70) block.adr = umem_alloc(&pool, size);
      forget_failures();
      if (!block.adr) continue;
      if (below(&seed, 5))
        fill(block.adr, size, c);
      else
        block.c = ((unsigned char *)block.adr)[0], block.size = 1;
      blocks[count++] = block;
    }
  }
  assert_true(callocs > rounds / 10);
  while (count) umem_free(&pool, blocks[--count].adr);
}

PAGES_TEST(zeros_are_zero_at_random) {
  paged_promise_zeros(&paged, false);
  size_t const rounds = setting_small() ? 3000 : 20000;
  for (uint64_t seed = 1; seed < 4; seed++) {
    open_plain(seed == 1 ? 0 : (60 + 40 * seed) * page);
    use_at_random(seed, rounds);
    close_pool(&pool);
    pool.super.vptr = NULL;
  }
}

/* Chunks of RAM: of malloc, of mappings of their own, of shared memory. */
TEST(zeros_of_chunks_are_zero_at_random) {
  umemHost mapped;
  umemShm shared;
  umemTrack track;
  umemHostOptions options = {.size = sizeof options, .policy = umemHostFirstTouch};
  assert_ok(umemHost_ctor_with(&mapped, &options));
  assert_ok(umemShm_ctor(&shared, NULL, 64 * mebi));
  assert_ok(umemTrack_ctor(&track, &host, NULL));
  void *const places[] = {&host, &mapped, &shared, &track};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    open_chunks(places[i]);
    use_at_random(i + 1, setting_small() ? 2000 : 10000);
    close_pool(&pool);
    pool.super.vptr = NULL;
  }
  DESTRUCT(&track, &shared, &mapped);
}

/* ---- RAM ---- */

/* Bytes of this process that have memory. */
static size_t resident(void) {
  unsigned long all = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%lu %lu", &all, &pages) != 2) pages = 0;
  if (file) fclose(file);
  return pages * 4096;
}

/* most: bytes that may become resident. */
static void expect_untouched_zeros(size_t most) {
  size_t const size = 512 * mebi;
  if (!resident()) skip();
  for (int i = 0; i < 3; i++) { /* again after free */
    size_t before = resident();
    uintptr_t adr = umem_calloc(&pool, size / 8, 8);
    assert_true(adr != 0 && resident() < before + most);
    unsigned char *bytes = (unsigned char *)adr;
    for (size_t at = 0; at < size; at += size / 7) {
      assert_int_equal(bytes[at], 0);
      bytes[at] = 1;
    }
    umem_free(&pool, adr);
  }
}

TEST_OF_PAGES(zeros_of_ram_take_no_memory) { expect_untouched_zeros(4 * mebi); }

/* malloc of a sanitizer has records of it. */
TEST(zeros_of_chunks_of_ram_take_no_memory) {
  if (setting_small()) skip();
  open_chunks(&host);
  expect_untouched_zeros(4 * mebi);
  close_pool(&pool);
  assert_ok(umemPool_ctor(&pool, &plain, NULL)); /* an adaptor between */
  expect_untouched_zeros(4 * mebi);
}

TEST(zeros_of_mappings_take_no_memory) {
  SCOPED(umem_dtor) umemHost mapped;
  umemHostOptions options = {.size = sizeof options, .policy = umemHostFirstTouch};
  assert_ok(umemHost_ctor_with(&mapped, &options));
  assert_ok(umemPool_ctor(&pool, &mapped, NULL));
  expect_untouched_zeros(4 * mebi);
  close_pool(&pool);
  pool.super.vptr = NULL;
}
