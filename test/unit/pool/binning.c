/* binning.c - umem/binning.h. */
#include "fixed_help.h"

#include "backends.h"
#include "fake/doubles.h"

/* Two bins and the rest, each with its records. */
static umemFixed small, middle;
static umemStats rest;
static umemBinning ctx;

static void open_bins(void *upstream) {
  umemBin const bins[] = {{100, &small}, {1000, &middle}};
  assert_ok(umemFixed_ctor(&small, upstream, 100, NULL));
  assert_ok(umemFixed_ctor(&middle, upstream, 1000, NULL));
  assert_ok(umemStats_ctor(&rest, upstream));
  assert_ok(umemBinning_ctor(&ctx, &rest, bins, 2));
}

static size_t in_small(void) { return (size_t)stats_of(&small).blocks; }
static size_t in_middle(void) { return (size_t)stats_of(&middle).blocks; }
static size_t in_rest(void) {
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  assert_ok(umemStats_get(&rest, &figures));
  return (size_t)figures.current_count;
}

static void expect_live(size_t in_first, size_t in_second, size_t in_third) {
  assert_int_equal(in_small(), in_first);
  assert_int_equal(in_middle(), in_second);
  assert_int_equal(in_rest(), in_third);
}

static void close_bins(void **state) {
  expect_live(0, 0, 0);
  end(&ctx);
  end(&rest);
  end(&middle);
  end(&small);
  tear_down(state);
}

/* The test opens the bins, and leaves none of their blocks. */
#define BINS_TEST(name) TEST_CASE_WITH(name, set_up, close_bins)

/* ---- where blocks come from, and go ---- */

BINS_TEST(requests_go_to_the_first_that_is_large_enough) {
  open_bins(&offsets);
  assert_string_equal(umem_get_device_name(&ctx), "Binning");
  size_t const sizes[] = {0, 1, 100, 101, 1000, 1001, 100000};
  uintptr_t adr[7];
  for (int i = 0; i < 7; i++) assert_true((adr[i] = umem_alloc(&ctx, sizes[i])) != UINTPTR_MAX);
  expect_live(3, 2, 2);
  for (int i = 0; i < 7; i++) umem_free(&ctx, adr[i]);
  expect_live(0, 0, 0);
  for (int i = 0; i < 7; i++) assert_true((adr[i] = umem_calloc(&ctx, sizes[i], 1)) != UINTPTR_MAX);
  expect_live(3, 2, 2);
  for (int i = 0; i < 7; i++) umem_free(&ctx, adr[i]);
}

/* One that a block of the bin could not be sure to hold goes further. */
BINS_TEST(alignment_counts) {
  open_bins(&fake);
  size_t natural = ctx.super.alignment;
  uintptr_t one = umem_aligned_alloc(&ctx, natural, 100);
  expect_live(1, 0, 0);
  uintptr_t two = umem_aligned_alloc(&ctx, 512, 100);
  expect_live(1, 1, 0);
  uintptr_t three = umem_aligned_alloc(&ctx, 512, 490);
  expect_live(1, 1, 1);
  uintptr_t four = umem_aligned_alloc(&ctx, 4096, 1);
  expect_live(1, 1, 2);
  assert_true(two % 512 == 0 && three % 512 == 0 && four % 4096 == 0);
  assert_true(umem_aligned_origin(&ctx, two) <= two);
  expect_no_block(&ctx, umem_aligned_origin(&ctx, two + 1), umemValueError, "is not a live block");
  umem_aligned_free(&ctx, two);
  umem_aligned_free(&ctx, four);
  umem_aligned_free(&ctx, one);
  umem_aligned_free(&ctx, three);
}

BINS_TEST(resizing_changes_bins) {
  size_t const sizes[] = {50, 100, 70, 900, 1000, 1001, 5000, 500, 10, 3000, 1};
  unsigned char bytes[5000], found[5000];
  open_bins(&offsets);
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + i / 256);
  uintptr_t adr = umem_alloc(&ctx, sizes[0]);
  assert_ok(umem_copy_from(&ctx, adr, &host, (uintptr_t)bytes, sizes[0]));
  for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
    size_t kept = sizes[i - 1] < sizes[i] ? sizes[i - 1] : sizes[i];
    adr = umem_realloc(&ctx, adr, sizes[i - 1], sizes[i]);
    assert_true(adr != UINTPTR_MAX);
    expect_live(sizes[i] <= 100, sizes[i] > 100 && sizes[i] <= 1000, sizes[i] > 1000);
    assert_ok(umem_copy_to(&ctx, adr, &host, (uintptr_t)found, kept));
    assert_memory_equal(found, bytes, kept);
    assert_ok(umem_copy_from(&ctx, adr, &host, (uintptr_t)bytes, sizes[i]));
  }
  expect_no_block(&ctx, umem_realloc(&ctx, adr + 1, 1, 5), umemValueError, "is not a live block");
  umem_free(&ctx, adr);
  expect_no_block(&ctx, umem_realloc(&ctx, adr, 1, 5000), umemValueError, "is not a live block");
}

BINS_TEST(wrong_frees_are_refused) {
  open_bins(&fake);
  uintptr_t one = umem_alloc(&ctx, 64), large = umem_alloc(&ctx, 5000);
  uintptr_t foreign = umem_alloc(&small, 64);
  uintptr_t const wrong[] = {one + 1, large + 1, foreign, 12345};
  for (int i = 0; i < 4; i++) {
    umem_free(&ctx, wrong[i]);
    expect_failure(&ctx, umemValueError, "umem_free: ");
    umem_aligned_free(&ctx, wrong[i]);
    expect_failure(&ctx, umemValueError, "umem_aligned_free: ");
  }
  FREE(&ctx, one, large);
  umem_free(&ctx, one);
  expect_failure(&ctx, umemValueError, "is not a live block");
  umem_free(&ctx, large);
  expect_failure(&ctx, umemValueError, "is not a live block");
  umem_free(&small, foreign);
}

/* ---- failures of bins ---- */

TEST(failures_of_bins_are_its_own) {
  SCOPED(end) umemLimit limit;
  umemBin const bin = {100, &limit};
  assert_ok(umemLimit_ctor(&limit, &offsets, 150));
  assert_ok(umemBinning_ctor(&ctx, &offsets, &bin, 1));
  uintptr_t adr = umem_alloc(&ctx, 100);
  uint64_t failures = umem_thread_failures();
  assert_true(umem_alloc(&ctx, 90) == UINTPTR_MAX); /* not from offsets, which has room */
  assert_true(umem_thread_failures() == failures + 1);
  expect_failure(&ctx, umemMemoryError, "umem_alloc: no room for 90 more bytes: 100 of the 150");
  assert_true(umem_is_ok(&limit));
  expect_no_block(&ctx, umem_calloc(&ctx, 9, 10), umemMemoryError,
                  "umem_calloc: no room for 90 more bytes");
  expect_no_block(&ctx, umem_aligned_alloc(&ctx, 16, 60), umemMemoryError, "umem_aligned_alloc: ");
  assert_true(umem_alloc(&ctx, SIZE_MAX / 2) == UINTPTR_MAX);
  expect_both(&ctx, &offsets, umemMemoryError, "umem_alloc: no room for");
  assert_true(umem_realloc(&ctx, adr, 100, SIZE_MAX / 2) == UINTPTR_MAX);
  expect_both(&ctx, &offsets, umemMemoryError, "umem_realloc: no room for");
  umemStats over; /* an adaptor takes it over */
  assert_ok(umemStats_ctor(&over, &ctx));
  assert_true(umem_alloc(&over, 90) == UINTPTR_MAX);
  expect_both(&over, &ctx, umemMemoryError, "90 more bytes");
  end(&over);
  umem_free(&ctx, adr);
  end(&ctx);
  assert_int_equal(umemLimit_used(&limit), 0);
}

static void refuse_free(umemVirtual *self, uintptr_t adr) {
  umemVirtual_fail(self, umemIOError, "not now: %zu", (size_t)adr);
}

TEST(a_refused_free_keeps_the_block) {
  CLEAN_CONTEXT(umemHost, stubborn);
  struct umemVtbl const *methods = stubborn.super.vptr;
  struct umemVtbl refusing = *methods;
  umemBin const bin = {100, &stubborn};
  assert_ok(umemBinning_ctor(&ctx, &host, &bin, 1));
  uintptr_t adr = umem_alloc(&ctx, 100);
  refusing.free = refuse_free;
  stubborn.super.vptr = &refusing;
  umem_free(&ctx, adr);
  stubborn.super.vptr = methods;
  expect_failure(&ctx, umemIOError, "umem_free: not now");
  umem_free(&ctx, adr);
  assert_true(umem_is_ok(&ctx));
  umem_free(&ctx, adr);
  expect_failure(&ctx, umemValueError, "is not a live block");
  end(&ctx);
}

BINS_TEST(trims_all) {
  open_bins(&fake);
  umem_free(&ctx, umem_alloc(&ctx, 50));
  umem_free(&ctx, umem_alloc(&ctx, 500));
  assert_int_equal(blocks_in(&fake), 2);
  assert_ok(umem_trim(&ctx, 0));
  assert_int_equal(blocks_in(&fake), 0);
}

/* ---- construction ---- */

static void expect_refused(void *upstream, umemBin const *bins, size_t count, umemStatusType type,
                           char const *words) {
  expect_status(&ctx, umemBinning_adopt(&ctx, upstream, bins, count), type, words);
  DESTRUCT(&ctx, &ctx);
}

TEST(bins_that_cannot_be) {
  umemHost none = {.super = {.vptr = NULL}}, other;
  assert_ok(umemHost_ctor(&other));
  umemBin const of_others[] = {{100, &fake}};
  expect_refused(&host, of_others, 1, umemValueError, "bin 0 is not of the upstream's memory");
  umemBin const falling[] = {{100, &host}, {100, &other}};
  expect_refused(&host, falling, 2, umemValueError, "bin 1 has 100 bytes after 100");
  umemBin const null[] = {{100, &host}, {101, NULL}};
  expect_refused(&host, null, 2, umemValueError, "the context is NULL");
  umemBin const zeros[] = {{100, &none}};
  expect_refused(&host, zeros, 1, umemValueError, "the context is not constructed");
  umemBin const itself[] = {{100, &ctx}};
  expect_refused(&host, itself, 1, umemValueError, "bin 0 is the context itself");
  expect_refused(&host, NULL, 1, umemValueError, "the bins are NULL");
  expect_refused(NULL, NULL, 0, umemValueError, "the upstream is NULL");
  assert_true(umem_is_ok(&host) && umem_is_ok(&fake));
  umem_dtor(&other);
}

/* Two contexts that keep records of one file, each for itself, would allocate the same offsets. */
TEST(two_records_of_one_file_are_refused) {
  umemFile one, other;
  char path[BACKEND_PATH_SIZE];
  assert_true(backend_temp_file(path));
  assert_ok(umemFile_ctor(&one, path, "w+"));
  assert_ok(umemFile_ctor(&other, path, "r"));
  assert_true(umem_is_same_device(&one, &other));
  umemBin const bin = {100, &other};
  expect_refused(&one, &bin, 1, umemValueError, "bin 0 is not of the upstream's memory");
  end(&other);
  end(&one);
  assert_int_equal(unlink(path), 0);
}

/* What one queue frees another may still be copying. */
TEST(two_queues_are_refused) {
  Backend const *row = backend_by_name("cuda-async");
  umemVirtual *one = backend_open(row), *other = backend_open(row);
  assert_true(one && other && umem_is_same_device(one, other));
  umemBin bin = {100, other};
  expect_refused(one, &bin, 1, umemValueError, "bin 0 is not of the upstream's memory");
  umemLimit limit; /* over the same queue */
  assert_ok(umemLimit_ctor(&limit, one, 1000));
  bin.ctx = &limit;
  assert_ok(umemBinning_ctor(&ctx, one, &bin, 1));
  end(&ctx);
  end(&limit);
  backend_close(row, other);
  backend_close(row, one);
  assert_null(doubles_complaint());
}

TEST(no_bins_are_as_good) {
  assert_ok(umemBinning_ctor(&ctx, &fake, NULL, 0));
  uintptr_t adr = umem_alloc(&ctx, 1);
  assert_int_equal(blocks_in(&fake), 1);
  umem_free(&ctx, adr);
  end(&ctx);
}

TEST(takes_over_what_all_have) {
  SCOPED(umem_dtor) umemHost odd;
  umemBin const bin = {100, &odd};
  assert_ok(umemHost_ctor(&odd));
  odd.super.capabilities &= ~(uint32_t)umemConcurrent;
  odd.super.capabilities |= umemFaultable;
  odd.super.alignment = 2;
  assert_ok(umemBinning_ctor(&ctx, &host, &bin, 1));
  assert_int_equal(ctx.super.alignment, 2);
  assert_int_equal(ctx.super.capabilities & (umemConcurrent | umemFaultable | umemSilent),
                   umemFaultable);
  assert_true(ctx.super.capabilities & umemCpuReadable);
  end(&ctx);
}

BINS_TEST(a_bin_comes_later) {
  open_bins(&fake);
  CONTEXT(umemFixed, later, &fake, 500, NULL);
  uintptr_t early = umem_alloc(&ctx, 300);
  expect_live(0, 1, 0);
  assert_ok(umemBinning_add(&ctx, &(umemBin){500, &later}));
  uintptr_t adr = umem_alloc(&ctx, 300), larger = umem_alloc(&ctx, 501);
  assert_int_equal(stats_of(&later).blocks, 1);
  expect_live(0, 2, 0);
  umemFound found = UMEM_FOUND_INIT;
  assert_true(umem_find_in(&ctx, adr, &found));
  umem_free(&ctx, early); /* in the bin that it came from */
  expect_live(0, 1, 0);
  adr = umem_realloc(&ctx, adr, 300, 1000);
  assert_int_equal(stats_of(&later).blocks, 0);
  umem_free(&ctx, adr), umem_free(&ctx, larger);
  assert_ok(umem_trim(&ctx, 0));

  umemBin const same = {500, &later}, self = {9, &ctx}, other = {9, &offsets};
  expect_status(&ctx, umemBinning_add(&ctx, &same), umemValueError, "there is a bin of 500 bytes");
  expect_status(&ctx, umemBinning_add(&ctx, &self), umemValueError, "the bin is the context");
  expect_status(&ctx, umemBinning_add(&ctx, &other), umemValueError, "not of the upstream's");
  expect_status(&ctx, umemBinning_add(&ctx, NULL), umemValueError, "the bin is NULL");
  expect_status(NULL, umemBinning_add((umemBinning *)&small, &same), umemTypeError, "Binning");
  umem_clear_status(&small);
}

TEST(a_later_bin_has_to_keep_the_promises) {
  SCOPED(umem_dtor) umemHost odd;
  umemBin const bin = {100, &odd};
  assert_ok(umemHost_ctor(&odd));
  assert_ok(umemBinning_ctor(&ctx, &host, NULL, 0));
  odd.super.alignment = 2;
  expect_status(&ctx, umemBinning_add(&ctx, &bin), umemValueError, "the bin aligns to 2 bytes");
  odd.super.alignment = host.super.alignment;
  odd.super.capabilities &= ~(uint32_t)umemConcurrent;
  expect_status(&ctx, umemBinning_add(&ctx, &bin), umemValueError, "what the context has promised");
  odd.super.capabilities |= umemConcurrent;
  assert_ok(umemBinning_add(&ctx, &bin));
  end(&ctx);
}

static void *allocate_and_free(void *number) {
  for (size_t i = 0; i < 2000; i++) {
    uintptr_t adr = umem_alloc(&ctx, 1 + (i * 7 + (uintptr_t)number) % 600);
    if (!adr) abort();
    umem_free(&ctx, adr);
  }
  return (void *)1;
}

enum { later_bins = 50 };

static void *add_bins(void *bins) {
  umemFixed *later = bins;
  for (size_t i = 0; i < later_bins; i++) {
    umemBin const bin = {10 + 10 * i, &later[i]};
    if (umemFixed_ctor(&later[i], &host, bin.largest, NULL) || umemBinning_add(&ctx, &bin)) abort();
    sched_yield();
  }
  return (void *)1;
}

TEST(bins_come_while_threads_allocate) {
  static umemFixed later[later_bins];
  assert_ok(umemBinning_ctor(&ctx, &host, NULL, 0));
  pthread_t adder = start_thread(add_bins, later);
  assert_true(in_threads(allocate_and_free));
  assert_non_null(join_thread(adder));
  for (size_t i = 0; i < later_bins; i++) assert_int_equal(stats_of(&later[i]).blocks, 0);
  end(&ctx);
  for (size_t i = 0; i < later_bins; i++) end(&later[i]);
}

TEST(adopted_contexts_end_in_order) {
  umemPool pool;
  Fake mine;
  umemBin const bins[] = {{100, &fixed}, {200, &fixed}, {300, &pool}};
  assert_ok(fake_ctor(&mine));
  assert_ok(umemPool_ctor(&pool, &mine, NULL));
  assert_ok(umemFixed_ctor(&fixed, &mine, 200, NULL));
  assert_ok(umemBinning_adopt(&ctx, &mine, bins, 3));
  for (size_t n = 50; n < 500; n += 50) assert_true(umem_alloc(&ctx, n));
  end(&ctx);
  assert_true(!fixed.super.vptr && !pool.super.vptr && !mine.super.vptr);
  assert_true(umem_is_ok(&fixed) && umem_is_ok(&pool) && umem_is_ok(&mine));
}

/* ---- copies ---- */

BINS_TEST(copies_pass_through_the_upstream) {
  unsigned char bytes[64], found[64] = {0};
  open_bins(&fake);
  uintptr_t one = umem_alloc(&ctx, 64), large = umem_alloc(&ctx, 5000);
  for (unsigned i = 0; i < 64; i++) bytes[i] = (unsigned char)i;
  assert_ok(umem_copy_from(&ctx, one, &host, (uintptr_t)bytes, 64));
  assert_ok(umem_copy_to(&ctx, one, &ctx, large, 64));
  assert_ok(umem_copy_to(&small, one, &ctx, large + 64, 64));
  assert_ok(umem_set(&ctx, one, 9, 64));
  assert_ok(umem_copy_to(&ctx, large, &host, (uintptr_t)found, 64));
  assert_memory_equal(found, bytes, 64);
  assert_ok(umem_copy_to(&fake, large + 64, &host, (uintptr_t)found, 64));
  assert_memory_equal(found, bytes, 64);
  assert_true(umem_is_same_device(&ctx, &fake));
  FREE(&ctx, one, large);
}

/* ---- against a naive model, by many threads ---- */

enum { most_live = 200 };

typedef struct Block {
  uintptr_t adr;
  size_t size;
  unsigned char byte;
} Block;

static size_t some_size(uint64_t *random) {
  return 1 + below(random, (size_t)1 << below(random, 13));
}

/* All of the block is its byte. */
static void check(Block const *block, size_t n) {
  unsigned char const *bytes = (unsigned char const *)block->adr;
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != block->byte) abort();
}

static void take(Block *block, uint64_t *random) {
  block->size = some_size(random);
  block->byte = (unsigned char)random64(random);
  block->adr = umem_alloc(&ctx, block->size);
  if (!block->adr) abort();
  memset((void *)block->adr, block->byte, block->size);
}

static void resize(Block *block, uint64_t *random) {
  size_t size = some_size(random), kept = size < block->size ? size : block->size;
  block->adr = umem_realloc(&ctx, block->adr, block->size, size);
  if (!block->adr) abort();
  check(block, kept);
  block->size = size;
  memset((void *)block->adr, block->byte, size);
}

static Block parcels[worker_count][most_live];

static void *use(void *number) {
  uint64_t random = (uintptr_t)number;
  Block *blocks = parcels[(uintptr_t)number];
  size_t count = 0;
  for (int i = 0; i < (setting_small() ? 2000 : 50000); i++) {
    size_t at = below(&random, count + 1);
    if (count < most_live && below(&random, 2)) {
      take(&blocks[count++], &random);
    } else if (at < count && below(&random, 3) == 0) {
      resize(&blocks[at], &random);
    } else if (at < count) {
      check(&blocks[at], blocks[at].size);
      umem_free(&ctx, blocks[at].adr);
      blocks[at] = blocks[--count];
    }
    if (i % 1000 == 0) umem_trim(&ctx, 0);
  }
  while (count < most_live) take(&blocks[count++], &random);
  return number;
}

/* Frees what another thread has allocated. */
static void *clear_next(void *number) {
  Block *blocks = parcels[((uintptr_t)number + 1) % worker_count];
  for (int i = 0; i < most_live; i++) {
    check(&blocks[i], blocks[i].size);
    umem_free(&ctx, blocks[i].adr);
  }
  return number;
}

BINS_TEST(agrees_with_a_model_in_threads) {
  open_bins(&host);
  in_threads(use);
  assert_int_equal(in_small() + in_middle() + in_rest(), worker_count * most_live);
  in_threads(clear_next);
}

int main(void) {
  doubles_use();
  return run_cases(NULL, NULL);
}
