/* pool_room.c - pools whose room runs out: exhaustion, fragmentation, trimming, and memory for the
 * records that fails.
 *
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#include "pool_help.h"
#include "failing_memory.h"
#include "returns_null.h"

static umemLimit limit; /* over plain, of some tests */
static umemRetry retry; /* over limit */

static void open_limited(size_t most) {
  assert_ok(umemLimit_ctor(&limit, &plain, most));
  assert_ok(umemPool_ctor(&pool, &limit, NULL));
}

static void close_limited(void **state) {
  DESTRUCT(&pool, &retry);
  if (limit.super.vptr) assert_int_equal(umemLimit_used(&limit), 0);
  umem_dtor(&limit);
  close_all(state);
}

#define LIMITED_TEST(name) TEST_CASE_WITH(name, have_host, close_limited)

/* ---- exhaustion ---- */

TEST(the_maximum_is_named) {
  open_pool(&pool, &host, 0, mebi, 2 * mebi);
  uintptr_t one = new_block(&pool, mebi), other = new_block(&pool, 900000);
  expect_no_block(
      &pool, umem_alloc(&pool, 200000), umemMemoryError,
      "umem_alloc: no room for 200000 bytes: the pool holds 2097152 of at most 2097152");
  assert_true(umem_is_ok(&host));
  umem_free(&pool, one);
  uintptr_t last = new_block(&pool, mebi);
  assert_true(stats_of(&pool).reserved == 2 * mebi);
  FREE(&pool, last, other);
}

/* A maximum that is no whole number of pages has less room than it says. */
TEST(pages_are_named_where_the_bytes_alone_would_fit) {
  for (int initial = 0; initial < 2; initial++) {
    open_pool(&pool, &host, initial ? 1000001 : 0, 0, 1000001);
    expect_no_block(&pool, umem_alloc(&pool, 1000000), umemMemoryError,
                    "no room for 1000000 bytes: the pool holds 0 of at most 1000001 bytes, in "
                    "whole pages of 4096 bytes");
    umem_free(&pool, new_block(&pool, 999424));
    umem_dtor(&pool);
  }
}

/* The alignment alone takes more addresses than the kernel grants. */
TEST_OF_PAGES(an_impossible_alignment_is_named) {
  size_t const large = (size_t)1 << 50;
  expect_no_block(&pool, umem_aligned_alloc(&pool, large, 100), umemMemoryError,
                  "at a multiple of 1125899906842624");
  umem_clear_status(&host);
  assert_true(umem_aligned_alloc(&host, large, 100) == 0);
  assert_non_null(strstr(umem_thread_message(),
                         "Host cannot allocate 100 bytes at a multiple of 1125899906842624"));
  FORGET(&host);
}

/* Every byte up to the maximum can be used: where no span fits, blocks are taken alone. */
TEST(the_maximum_is_used_up) {
  open_pool(&pool, &host, 0, 0, 3 * 4096 + 5);
  uintptr_t adr[3];
  for (int i = 0; i < 3; i++) adr[i] = new_block(&pool, 50);
  expect_no_block(&pool, umem_alloc(&pool, 50), umemMemoryError,
                  "no room for 50 bytes: the pool holds 12288 of at most 12293");
  free_blocks(&pool, adr, 3);
  adr[0] = new_block(&pool, 12288);
  expect_refused_free(&pool, adr[0] + 4096);
  umem_free(&pool, adr[0]);
}

/* Blocks of one class, all freed, make room for those of another, and for a large one. */
TEST(classes_make_room_for_each_other) {
  enum { count = 3000 };
  static uintptr_t adr[count];
  size_t const sizes[] = {16, 300, 4000, 60000, 100000, 1000};
  open_pool(&pool, &host, 0, 0, 2 * mebi);
  for (size_t k = 0; k < 6; k++) {
    size_t n = 0;
    while (n < count && (adr[n] = umem_alloc(&pool, sizes[k]))) n++;
    if (n < count) expect_failure(&pool, umemMemoryError, "at most 2097152");
    assert_true(n == count || n * sizes[k] > 1500 * kibi);
    while (n) umem_free(&pool, adr[--n]);
  }
  umem_free(&pool, new_block(&pool, 70000)); /* waits for the next of its size */
  umem_free(&pool, new_block(&pool, 2 * mebi));
}

LIMITED_TEST(an_upstream_without_memory_is_asked_again) {
  enum { count = 1000 };
  static uintptr_t adr[count];
  open_limited(4 * mebi);
  new_blocks(&pool, adr, count, 2000);
  free_blocks(&pool, adr, count);
  uintptr_t large = new_block(&pool, 3800 * kibi); /* only when the small ones' chunks went back */
  assert_true(umem_is_ok(&limit) && umem_is_ok(&pool) && umem_thread_status() == umemOK);
  assert_true(umem_alloc(&pool, 300 * kibi) == 0);
  assert_non_null(strstr(umem_get_message(&limit), "umem_alloc: "));
  assert_string_equal(umem_get_message(&pool), umem_get_message(&limit));
  assert_int_equal(umem_clear_status(&limit), umemOK);
  expect_failure(&pool, umemMemoryError, "umem_alloc: ");
  umem_free(&pool, large);
  umem_free(&pool, new_block(&pool, 300 * kibi));
}

/* A small block, for which a chunk that is free is too small. */
LIMITED_TEST(a_small_block_may_need_a_chunk_to_go_back) {
  open_limited(40 * kibi);
  umem_free(&pool, new_block(&pool, 20000));
  assert_true(stats_of(&pool).reserved == 20 * kibi);
  uintptr_t adr = new_block(&pool, 32000);
  assert_true(stats_of(&pool).reserved == 32 * kibi && umem_thread_status() == umemOK);
  umem_free(&pool, adr);
}

/* From now on the next calls of plain fail so. Counts begin anew. */
static void fail_next(uint64_t times, unsigned calls, umemStatusType status) {
  umemFaultPlan plan = {.size = sizeof plan, .calls = calls, .status = status, .nth = 1};
  plan.times = times;
  assert_ok(umemFault_set_plan(&plain, &plan));
  umem_clear_status(&plain);
}

/* Trimming helps against want of memory, and against nothing else. */
TEST(other_failures_are_reported_at_once) {
  open_pool(&pool, &plain, mebi, 0, 0);
  fail_next(100, umemFaultAligned, umemNotSupportedError);
  expect_no_block(&pool, umem_alloc(&pool, 2 * mebi), umemNotSupportedError, "umem_alloc: ");
  assert_true(umemFault_count(&plain, umemFaultFree) == 0);
  assert_true(stats_of(&pool).reserved == mebi);
  umem_free(&pool, new_block(&pool, 1000)); /* what is there can be used */
  fail_next(100, umemFaultAligned, umemMemoryError);
  expect_no_block(&pool, umem_alloc(&pool, 2 * mebi), umemMemoryError, "umem_alloc: ");
  assert_true(umemFault_count(&plain, umemFaultFree) == 1);
  fail_next(0, umemFaultAligned, umemMemoryError);
  umem_free(&pool, new_block(&pool, 1000)); /* there is something to give back again */
  /* The second try succeeds, and the first is not reported. */
  fail_next(1, umemFaultAligned, umemMemoryError);
  umem_free(&pool, new_block(&pool, 2 * mebi));
  assert_true(umemFault_failures(&plain) == 1);
  assert_true(umem_is_ok(&plain) && umem_is_ok(&pool) && umem_thread_status() == umemOK);
  umem_dtor(&pool);
}

static void expect_queries(size_t nbytes, uint64_t queries) {
  fail_next(100, umemFaultAligned, umemMemoryError); /* counts from 0 */
  expect_no_block(&pool, umem_alloc(&pool, nbytes), umemMemoryError, "umem_alloc: ");
  assert_int_equal(umemFault_count(&plain, umemFaultAligned), queries);
  fail_next(0, umemFaultAligned, umemMemoryError);
}

/* A request is refused only when all was tried; but nothing is tried twice in vain. */
TEST_OF_CHUNKS(an_upstream_is_asked_a_few_times) {
  expect_queries(100, 3); /* 1 MiB, a span, a block alone */
  expect_queries(100 * kibi, 2);
  expect_queries(2 * mebi, 1);
  uintptr_t adr = new_block(&pool, 3000 * kibi);
  umem_free(&pool, adr);
  expect_queries(4 * mebi, 1); /* the 3 MiB go back before */
  assert_true(stats_of(&pool).reserved == 0);
  close_pool(&pool);
  open_pool(&pool, &plain, 3 * mebi, 0, 0);
  expect_queries(4 * mebi, 2); /* once more without the initial bytes */
  assert_true(stats_of(&pool).reserved == 0);
  umem_dtor(&pool);
}

/* ---- growth ---- */

TEST_OF_PAGES(a_free_chunk_goes_back_before_the_pool_is_larger_than_ever) {
  umem_free(&pool, new_block(&pool, 80 * mebi));
  uintptr_t adr = new_block(&pool, 100 * mebi);
  assert_true(stats_of(&pool).reserved_peak == 100 * mebi && stats_of(&pool).chunks == 1);
  umem_free(&pool, adr);
}

/* The smallest chunk that suffices goes back, or else the largest; and none if the pool was as
 * large once. */
TEST_OF_CHUNKS(few_chunks_go_back) {
  uintptr_t adr[4];
  for (size_t i = 0; i < 4; i++) adr[i] = new_block(&pool, (i + 1) * 100 * mebi);
  free_blocks(&pool, adr, 4);
  adr[0] = new_block(&pool, 500 * mebi); /* for which 400 and then 100 go back */
  expect_held(&pool, 1000 * mebi, 3);
  adr[1] = new_block(&pool, 250 * mebi); /* of the 300 */
  expect_held(&pool, 1000 * mebi, 3);
  adr[2] = new_block(&pool, 210 * mebi); /* the 200 go back, and no more are free */
  expect_held(&pool, 1010 * mebi, 3);
  umem_free(&pool, adr[2]);
  assert_ok(umem_trim(&pool, 0));
  adr[2] = new_block(&pool, 200 * mebi); /* as large as it was once */
  assert_true(stats_of(&pool).reserved == 1000 * mebi &&
              stats_of(&pool).reserved_peak == 1010 * mebi);
  adr[3] = new_block(&pool, 40 * mebi);
  assert_true(stats_of(&pool).reserved == 1000 * mebi);
  free_blocks(&pool, adr, 4);
}

TEST(the_initial_bytes_stay) {
  open_pool(&pool, &plain, 100 * mebi, 0, 0);
  uintptr_t adr = new_block(&pool, 200 * mebi);
  assert_true(stats_of(&pool).reserved == 300 * mebi);
  umem_free(&pool, adr);
  umem_free(&pool, new_block(&pool, 400 * mebi));
  expect_held(&pool, 500 * mebi, 2);
}

/* A chunk that the upstream does not take back stays, and the pool grows beside it. */
TEST_OF_CHUNKS(a_refused_chunk_stays_in_a_pool_that_grows) {
  umem_free(&pool, new_block(&pool, 80 * mebi));
  fail_next(100, umemFaultFree, umemNotSupportedError);
  uintptr_t adr = new_block(&pool, 100 * mebi);
  assert_true(umemFault_count(&plain, umemFaultFree) == 1 && umem_is_ok(&pool));
  assert_true(umem_thread_status() == umemOK && stats_of(&pool).reserved == 180 * mebi);
  fail_next(0, umemFaultFree, umemNotSupportedError);
  umem_free(&pool, adr);
  assert_ok(umem_trim(&pool, 0));
  close_pool(&pool);
}

/* A program that is asked for help by the pool's upstream, and helps with the pool itself. */
static uintptr_t spares[100];
static size_t spare_count;
static unsigned calls;
static uintptr_t hostage; /* of the limit, so that it can have room again */

RETRY_CALLBACK(help) {
  calls++;
  if (!spare_count) return false;
  while (spare_count) umem_free(&pool, spares[--spare_count]);
  if (umem_trim(&pool, 0) != umemOK) return false;
  umem_free(&pool, new_block(&pool, 1000)); /* the thread keeps some of them now */
  umem_free(&limit, hostage);
  return true;
}

LIMITED_TEST(the_upstream_may_use_the_pool) {
  size_t const sizes[] = {1000, 20000, 70000, 500000};
  assert_ok(umemLimit_ctor(&limit, &plain, 4 * mebi));
  assert_ok(umemRetry_ctor(&retry, &limit, help, NULL));
  assert_ok(umemPool_ctor(&pool, &retry, NULL));
  for (size_t k = 0; k < 4; k++) {
    static uintptr_t adr[5000];
    size_t count = 0;
    calls = 0;
    hostage = new_block(&limit, mebi);
    for (size_t i = 0; i < 100 && i * sizes[k] < mebi; i++)
      spares[spare_count++] = new_block(&pool, sizes[k]);
    while (count < 5000 && spare_count) {
      adr[count] = new_block(&pool, sizes[k]);
      memset((void *)adr[count], (int)count, sizes[k]);
      count++;
    }
    assert_true(calls > 0 && count < 5000);
    for (size_t i = 0; i < count; i++)
      assert_int_equal(*(unsigned char *)(adr[i] + sizes[k] - 1), i & 255);
    assert_true(stats_of(&pool).blocks == count);
    free_blocks(&pool, adr, count);
    assert_true(umem_is_ok(&pool) && umem_thread_status() == umemOK);
    expect_nothing_left(&pool);
  }
}

static uintptr_t inner;

/* Makes room in the upstream, and allocates what the maximum leaves beside the chunk that is asked
 * for. */
RETRY_CALLBACK(use_up) {
  if (attempt > 1) return false;
  umem_free(&limit, hostage);
  inner = umem_alloc(&pool, 2 * mebi);
  return true;
}

/* A chunk that has come counts once: what was asked for is not expected any more. */
LIMITED_TEST(a_request_counts_until_it_is_answered) {
  assert_ok(umemLimit_ctor(&limit, &plain, 8 * mebi));
  assert_ok(umemRetry_ctor(&retry, &limit, use_up, NULL));
  open_pool(&pool, &retry, 0, mebi, 4 * mebi);
  uintptr_t first = new_block(&pool, mebi);
  hostage = umem_alloc(&limit, 7 * mebi);
  uintptr_t outer = new_block(&pool, mebi);
  assert_true(inner);
  assert_true(stats_of(&pool).reserved == 4 * mebi);
  FREE(&pool, first, outer, inner);
}

/* A chunk that the upstream does not take back is not lost. */
TEST_OF_CHUNKS(refused_chunks_stay) {
  uintptr_t special = umem_aligned_alloc(&pool, 64 * mebi, 100);
  assert_true(special != 0);
  uintptr_t small = new_block(&pool, 100);
  fail_next(3, umemFaultFree, umemNotSupportedError);
  umem_aligned_free(&pool, special);
  expect_failure(&pool, umemNotSupportedError, "umem_aligned_free: ");
  expect_refused_free(&pool, special); /* the block itself is free */
  umem_free(&pool, small);
  expect_status(&pool, umem_trim(&pool, 0), umemNotSupportedError, "umem_trim: ");
  expect_held(&pool, mebi + 4096, 2);
  umem_free(&pool, new_block(&pool, mebi));
  assert_true(stats_of(&pool).chunks == 2);
  close_pool(&pool);
}

/* ---- fragmentation ---- */

/* Threads and the depot are for some blocks, and not for all that were ever freed. */
TEST(little_is_kept_for_threads) {
  enum { count = 3000 };
  static uintptr_t adr[count];
  open_pool(&pool, &host, 16 * mebi, 0, 0);
  new_blocks(&pool, adr, count, 4000);
  free_blocks(&pool, adr, count);
  assert_true(stats_of(&pool).largest_free >= 10 * mebi);
}

TEST_OF_PAGES(growing_sizes_reuse_what_is_freed) {
  uintptr_t kept = new_block(&pool, 16);
  for (size_t size = 16; size < 4 * mebi; size += size / 16) {
    uintptr_t next = new_block(&pool, size);
    umem_free(&pool, kept);
    kept = next;
  }
  umem_free(&pool, kept);
  assert_true(stats_of(&pool).reserved_peak <= 24 * mebi);
}

TEST(alternating_lifetimes_reuse_the_gaps) {
  enum { count = 4000 };
  static uintptr_t adr[count];
  size_t const sizes[] = {48, 700, 5000, 70000};
  for (size_t k = 0; k < 4; k++) {
    size_t n = sizes[k] > 60000 ? 100 : sizes[k] > 4096 ? 500 : count;
    open_pool(&pool, &host, 0, 0, 0);
    new_blocks(&pool, adr, n, sizes[k]);
    uint64_t reserved = stats_of(&pool).reserved;
    for (int round = 0; round < 10; round++) {
      for (size_t i = (size_t)round % 2; i < n; i += 2) umem_free(&pool, adr[i]);
      for (size_t i = (size_t)round % 2; i < n; i += 2) adr[i] = new_block(&pool, sizes[k]);
    }
    assert_true(stats_of(&pool).reserved == reserved);
    free_blocks(&pool, adr, n);
    close_pool(&pool);
  }
}

TEST(one_survivor_holds_one_chunk) {
  enum { chunks = 8, per_chunk = 8, count = chunks * per_chunk };
  uintptr_t adr[count];
  open_pool(&pool, &plain, 0, mebi, 0);
  new_blocks(&pool, adr, count, 128 * kibi);
  assert_true(stats_of(&pool).chunks == chunks);
  for (size_t i = 0; i < count; i++)
    if (i % per_chunk != 3) umem_free(&pool, adr[i]);
  assert_ok(umem_trim(&pool, 0));
  umemPoolStats stats = stats_of(&pool);
  assert_true(stats.chunks == chunks && stats.largest_free == 512 * kibi);
  assert_true(stats.fragmentation > 0.9);
  for (size_t i = 3; i < count / 2; i += per_chunk) umem_free(&pool, adr[i]);
  assert_ok(umem_trim(&pool, 0));
  assert_true(stats_of(&pool).chunks == chunks / 2);
  for (size_t i = count / 2 + 3; i < count; i += per_chunk) umem_free(&pool, adr[i]);
}

/* ---- trimming ---- */

TEST(trims_to_what_is_to_be_kept) {
  uintptr_t adr[10];
  open_pool(&pool, &host, 0, mebi, 0);
  new_blocks(&pool, adr, 10, mebi);
  free_blocks(&pool, adr, 10);
  assert_true(stats_of(&pool).reserved == 10 * mebi);
  assert_ok(umem_trim(&pool, 4 * mebi));
  assert_true(stats_of(&pool).reserved == 4 * mebi);
  assert_ok(umem_trim(&pool, SIZE_MAX));
  assert_true(stats_of(&pool).reserved == 4 * mebi);
  expect_nothing_left(&pool);
  umem_free(&pool, new_block(&pool, 100));
}

TEST(a_pool_over_a_pool_trims_both) {
  umemPool below;
  open_pool(&below, &host, 0, 0, 0);
  assert_ok(umemPool_ctor(&pool, &below, NULL));
  uintptr_t adr = new_block(&pool, 100);
  assert_true(stats_of(&below).blocks == 1);
  umem_free(&pool, adr);
  assert_ok(umem_trim(&pool, 0));
  assert_true(stats_of(&pool).reserved == 0 && stats_of(&below).reserved == 0);
  DESTRUCT(&pool, &below);
}

/* ---- no memory for the records ---- */

/* Everything that needs memory once. Calls that fail say so. */
static void use_all(void) {
  enum { count = 300 };
  static uintptr_t adr[count];
  for (size_t i = 0; i < count; i++) {
    size_t size = i < count / 2 ? some_sizes[i % some] : mebi; /* at last each is a chunk */
    adr[i] = umem_alloc(&pool, size);
    if (adr[i]) {
      memset((void *)adr[i], (int)i, size < 4096 ? size : 4096);
    } else {
      assert_int_equal(umem_get_status(&pool), umemMemoryError);
      FORGET(&pool, &limit);
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (adr[i]) assert_int_equal(*(unsigned char *)adr[i], i & 255);
    umem_free(&pool, adr[i]);
  }
  assert_true(umem_is_ok(&pool));
  assert_true(stats_of(&pool).blocks == 0);
  assert_ok(umem_trim(&pool, 0));
}

LIMITED_TEST(fails_at_each_allocation_of_its_own) {
  bool reached = true;
  assert_ok(umemLimit_ctor(&limit, &plain, SIZE_MAX / 2)); /* counts what is not given back */
  for (unsigned n = 0; reached; n++) {
    fail_memory(n, 1);
    umemPoolOptions options = {sizeof options, 0, mebi, 0, umemPoolPages, 0};
    umemStatusType status = umemPool_ctor(&pool, &limit, &options);
    if (status == umemOK) {
      use_all();
      reached = end_failing();
      close_pool(&pool);
    }
    end_failing();
    if (status != umemOK) assert_int_equal(status, umemMemoryError);
    assert_true(umemLimit_used(&limit) == 0);
    umem_thread_clear();
  }
}
