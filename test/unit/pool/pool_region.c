/* pool_region.c - what is where in the memory of a pool, and that a limit ends it only when its
 * blocks leave no room. */
#include "pool_help.h"

enum { most_blocks = 400, limit = 64 * mebi };

typedef struct Block {
  uintptr_t adr;
  size_t size;
} Block;

typedef struct Run {
  Block blocks[most_blocks];
  size_t count;
  uint64_t state, denied;
} Run;

/* ---- one region after the other ---- */

/* Ends, like a file that is read, with false and no status. */
static size_t count_regions(umemPoolRegion *sum) {
  size_t count = 0;
  umemPoolRegion region = UMEM_POOL_REGION_INIT, before = UMEM_POOL_REGION_INIT;
  *sum = before;
  for (uintptr_t adr = 0; umemPool_next_region(&pool, adr, &region); adr = region.adr + 1) {
    assert_true(!count || region.adr >= before.adr + before.nbytes);
    assert_true(region.used + region.largest_free <= region.nbytes);
    assert_true(!region.used == !region.ranges);
    sum->nbytes += region.nbytes;
    sum->used += region.used;
    sum->ranges += region.ranges;
    before = region;
    count++;
  }
  assert_ok(umem_thread_status());
  return count;
}

static void check_regions(Run *run) {
  umemPoolRegion sum;
  count_regions(&sum);
  umemPoolStats stats = stats_of(&pool);
  assert_true(sum.nbytes == stats.reserved && sum.used >= stats.used);
  assert_true(sum.ranges == run->count &&
              sum.used == stats.used); /* there are large blocks alone */
  for (size_t i = 0; i < run->count; i++) {
    umemPoolRegion region = UMEM_POOL_REGION_INIT;
    uintptr_t from = 0;
    while (umemPool_next_region(&pool, from, &region) &&
           region.adr + region.nbytes <= run->blocks[i].adr)
      from = region.adr + 1;
    assert_true(region.adr <= run->blocks[i].adr &&
                run->blocks[i].adr + run->blocks[i].size <= region.adr + region.nbytes);
  }
}

/* ---- why a limit may end an allocation ---- */

/* Chunks without a block go back, so those with one leave too little. */
static bool chunks_leave_room(Run *run UNUSED, size_t size) {
  uint64_t held = 0;
  umemPoolRegion region = UMEM_POOL_REGION_INIT;
  for (uintptr_t adr = 0; umemPool_next_region(&pool, adr, &region); adr = region.adr + 1)
    if (region.used) held += region.nbytes;
  return held + (size + 4095) / 4096 * 4096 <= limit;
}

/* Pages without a byte of a block go where they are needed. A block that begins and ends inside of
 * pages needs one more than its size says. */
static bool pages_leave_room(Run *run, size_t size) {
  enum { page = 2 * mebi };
  static uintptr_t pages[most_blocks * 8];
  size_t count = 0, held = 0;
  for (size_t i = 0; i < run->count; i++)
    for (uintptr_t at = run->blocks[i].adr / page;
         at <= (run->blocks[i].adr + run->blocks[i].size - 1) / page; at++)
      pages[count++] = at;
  for (size_t i = 0; i < count; i++) {
    size_t j = 0;
    while (j < i && pages[j] != pages[i]) j++;
    held += j == i;
  }
  return (held + (size + page - 1) / page + 1) * page <= limit;
}

static void allocate(Run *run, bool (*leave_room)(Run *, size_t)) {
  size_t size = 68 * kibi + below(&run->state, below(&run->state, 8) ? mebi : 8 * mebi);
  uintptr_t adr = umem_alloc(&pool, size);
  if (adr) {
    run->blocks[run->count++] = (Block){adr, size};
    return;
  }
  expect_failure(&pool, umemMemoryError, "no room for");
  run->denied++;
  if (leave_room(run, size)) fail_msg("%zu bytes were denied, but there is room", size);
}

static void release(Run *run) {
  Block *block = &run->blocks[below(&run->state, run->count)];
  umem_free(&pool, block->adr);
  *block = run->blocks[--run->count];
}

static void run_under_limit(void *upstream, bool (*leave_room)(Run *, size_t)) {
  static Run run;
  run = (Run){.state = 1};
  open_pool(&pool, upstream, 0, 0, limit);
  uint64_t count = operations() > 300000 ? operations() / 100 : 3000;
  for (uint64_t i = 0; i < count; i++) {
    if (run.count < most_blocks && (!run.count || below(&run.state, 100) < 55))
      allocate(&run, leave_room);
    else
      release(&run);
    if (i % 1000 == 0) check_regions(&run);
    assert_true(stats_of(&pool).reserved <= limit);
  }
  assert_true(run.denied > count / 1000);
  while (run.count) release(&run);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

TEST(chunks_serve_what_their_blocks_leave) { run_under_limit(&plain, chunks_leave_room); }

TEST(pages_serve_what_their_blocks_leave) { run_under_limit(&host, pages_leave_room); }

/* ---- what it says ---- */

TEST(regions_are_described) {
  umemPoolRegion region = UMEM_POOL_REGION_INIT, sum;
  CONTEXT(umemFile, file, NULL, "w+");
  open_pool(&pool, &file, 0, 0, 0);
  assert_false(umemPool_next_region(&pool, 0, &region));
  uintptr_t one = new_block(&pool, 2 * mebi), other = new_block(&pool, 4 * mebi);
  uintptr_t small = new_block(&pool, 100), third = new_block(&pool, 100 * kibi);
  assert_true(count_regions(&sum) == 3 && stats_of(&pool).chunks == 3);
  assert_true(umemPool_next_region(&pool, one, &region) && region.adr == one);
  assert_true(region.nbytes == 2 * mebi && region.used == 2 * mebi && region.age == 2 &&
              region.ranges == 1);
  assert_true(umemPool_next_region(&pool, one + 1, &region) && region.adr == other &&
              region.age == 1);
  umem_free(&pool, other);
  assert_true(umemPool_next_region(&pool, other, &region) && !region.used && !region.ranges);
  assert_true(region.largest_free == 4 * mebi);
  assert_true(umemPool_next_region(&pool, other + 1, &region) && region.age == 0);
  assert_true(region.used == 64 * kibi + 100 * kibi && region.ranges == 2); /* a span, a block */
  assert_false(umemPool_next_region(&pool, region.adr + 1, &region));
  umem_free(&pool, one), umem_free(&pool, small), umem_free(&pool, third);
  umem_dtor(&pool);
}

TEST_OF_PAGES(pages_have_no_age) {
  umemPoolRegion region = UMEM_POOL_REGION_INIT;
  uintptr_t adr = new_block(&pool, 5 * mebi);
  assert_true(umemPool_next_region(&pool, 0, &region) && region.age == UMEM_UNKNOWN);
  assert_true(region.adr <= adr && adr + 5 * mebi <= region.adr + region.nbytes);
  assert_true(region.nbytes == stats_of(&pool).reserved);
  umem_free(&pool, adr);
}

/* As the option says, in a struct and in a name. */
TEST(a_pool_has_chunks_on_request) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  umemPoolRegion region = UMEM_POOL_REGION_INIT;
  options.memory = umemPoolChunks;
  assert_ok(umemPool_ctor(&pool, &host, &options));
  new_block(&pool, 5 * mebi);
  assert_true(umemPool_next_region(&pool, 0, &region) && region.age == 0 &&
              region.nbytes == 5 * mebi);
  umem_dtor(&pool);
  for (int chunks = 0; chunks < 2; chunks++) {
    umemPool *named = umem_open(chunks ? "pool+host:?memory=chunks" : "pool+host:?memory=pages");
    new_block(named, 5 * mebi);
    assert_true(umemPool_next_region(named, 0, &region) &&
                region.age == (chunks ? 0 : UMEM_UNKNOWN));
    assert_ok(umem_close(named));
  }
  options.memory = 2;
  expect_status(&pool, umemPool_ctor(&pool, &host, &options), umemValueError,
                "memory is 2: it must be umemPoolPages or umemPoolChunks");
  options.memory = umemPoolChunks;
  options.size = offsetof(umemPoolOptions, memory); /* of a program that does not know the option */
  assert_ok(umemPool_ctor(&pool, &host, &options));
  new_block(&pool, 5 * mebi);
  assert_true(umemPool_next_region(&pool, 0, &region) && region.age == UMEM_UNKNOWN);
  umem_dtor(&pool); /* with a block */
}

/* What was freed through the pool keeps no chunk of it when a view grows. */
TEST_OF_CHUNKS(a_view_that_grows_frees_a_chunk_of_the_pool) {
  CONTEXT(umemPoolOn, view, &pool, &plain);
  uintptr_t large = new_block(&pool, 32 * mebi), medium = new_block(&pool, 900 * kibi);
  expect_held(&pool, 40 * mebi, 2);
  umem_free(&pool, medium);
  uintptr_t adr = umem_alloc(&view, 64 * mebi);
  assert_true(adr && stats_of(&pool).reserved == 96 * mebi);
  umem_free(&view, adr);
  umem_free(&pool, large);
}

/* Freed neighbours that wait for requests of their size serve a larger one, before the pool has to
 * grow. */
TEST(freed_neighbours_serve_before_a_pool_grows) {
  enum { count = 65 }; /* of them a chunk is full */
  uintptr_t adr[count];
  open_pool(&pool, &plain, 0, 64 * mebi, 0);
  new_blocks(&pool, adr, count, 1000 * kibi);
  assert_true(stats_of(&pool).reserved == 64 * mebi && adr[11] == adr[10] + 1000 * kibi);
  FREE(&pool, adr[10], adr[11]);
  assert_true(new_block(&pool, 1900 * kibi) == adr[10]);
  assert_true(stats_of(&pool).reserved == 64 * mebi);
  umem_dtor(&pool); /* with blocks */
}

/* Whether huge pages are advised for the mapping at adr. */
static bool is_advised(uintptr_t adr) {
  FILE *file = fopen("/proc/self/smaps", "r");
  char line[512];
  bool inside = false, advised = false;
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    uintmax_t start, end;
    if (sscanf(line, "%jx-%jx ", &start, &end) == 2) inside = start <= adr && adr < end;
    if (inside && !strncmp(line, "VmFlags:", 8)) advised = strstr(line, " hg");
  }
  fclose(file);
  return advised;
}

/* Large blocks have huge pages; a pool of small ones takes only what they touch. */
TEST_OF_PAGES(small_blocks_are_not_put_on_huge_pages) {
  if (setting_qemu() || access("/sys/kernel/mm/transparent_hugepage", F_OK))
    return; /* no flags are shown */
  uintptr_t small = new_block(&pool, 100), large = new_block(&pool, 20 * mebi);
  assert_true(!is_advised(small) && is_advised(large + 16 * mebi));
  FREE(&pool, small, large);
}

static long number_in(char const *path) {
  FILE *file = fopen(path, "r");
  long number = 0;
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%ld", &number), 1);
  fclose(file);
  return number;
}

static long count_mappings(void) {
  FILE *file = fopen("/proc/self/maps", "r");
  long lines = 0;
  assert_non_null(file);
  for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
  fclose(file);
  return lines;
}

/* A pool whose pages are in very many pieces takes chunks, before the process has no mapping left:
 * nor does a trim. */
TEST_OF_PAGES(pages_leave_mappings_to_the_program) {
  enum { count = 60000 };
  static uintptr_t adr[count];
  if (setting_small() || setting_qemu()) return;
  long most = number_in("/proc/sys/vm/max_map_count") * 3 / 4;
  new_blocks(&pool, adr, count, 5 * mebi / 2);
  for (size_t i = 0; i < count; i += 2) umem_free(&pool, adr[i]);
  for (size_t i = 0; i < count; i += 2) adr[i] = new_block(&pool, 9 * mebi / 2);
  assert_true(count_mappings() < most);
  for (size_t i = 1; i < count; i += 2) umem_free(&pool, adr[i]);
  assert_ok(umem_trim(&pool, 0));
  assert_true(count_mappings() < most);
  for (size_t i = 0; i < count; i += 2) umem_free(&pool, adr[i]);
  close_pool(&pool);
  assert_ok(umem_thread_status());
}

TEST_OF_PAGES(the_factor_is_of_the_peaks) {
  assert_true(stats_of(&pool).factor == 0);
  umem_free(&pool, new_block(&pool, 100 * mebi));
  umemPoolStats stats = stats_of(&pool);
  assert_true(stats.factor == (double)stats.reserved_peak / (double)stats.used_peak &&
              stats.factor >= 1);
}

TEST_OF_PAGES(wrong_questions_are_refused) {
  umemPoolRegion region = {.size = 8};
  umem_free(&pool, new_block(&pool, 100));
  assert_false(umemPool_next_region(&pool, 0, &region));
  expect_failure(&pool, umemValueError, "region");
  assert_false(umemPool_next_region(&pool, 0, NULL));
  expect_failure(&pool, umemValueError, "region");
  assert_false(umemPool_next_region((umemPool *)&host, 0, &region));
  expect_failure(&host, umemTypeError, "");
  struct {
    umemPoolRegion region;
    uint64_t more;
  } newer = {{.size = sizeof newer}, 7};
  assert_true(umemPool_next_region(&pool, 0, &newer.region));
  assert_true(newer.region.size == sizeof newer && newer.more == 7);
}

int main(void) {
  if (umemHost_ctor(&host) != umemOK) return 1;
  int failed = run_cases(NULL, NULL);
  umem_dtor(&host);
  return failed;
}
