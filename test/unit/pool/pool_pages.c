/* pool_pages.c - pools over contexts with memory by pages: pages go to where a block is needed, no more are mapped than
 * blocks touch, and each refused call leaves all as it was. */
#include "pool_help.h"

#include <sys/wait.h>
#include <unistd.h>

#include "fake/paged.h"

static Paged paged;
static umemPool pool;
enum { page = pagedSize };

static int set_up(void **state) {
  (void)state;
  umem_thread_clear();
  return paged_ctor(&paged) != umemOK;
}

static int tear_down(void **state) {
  (void)state;
  if (!paged_is_clean(&paged))
    fail_msg("%zu pages and %zu blocks are left; %s", paged.pages, paged.blocks, paged.misuse);
  umem_dtor(&paged);
  assert_string_equal(umem_thread_message(), "");
  return 0;
}

static void open_plain(size_t maximum) { open_pool(&pool, &paged, 0, 0, maximum); }

static uint64_t reserved(void) { return stats_of(&pool).reserved; }

static void fill(uintptr_t adr, size_t nbytes, unsigned char c) { memset((void *)adr, c, nbytes); }
static bool is_filled(uintptr_t adr, size_t nbytes, unsigned char c) {
  unsigned char const *bytes = (unsigned char const *)adr;
  return bytes[0] == c && !memcmp(bytes, bytes + 1, nbytes - 1);
}

static uintptr_t filled_block(size_t nbytes, unsigned char c) {
  uintptr_t adr = new_block(&pool, nbytes);
  fill(adr, nbytes, c);
  return adr;
}

static unsigned long mapping_calls(void) {
  return paged.calls[pagedMap] + paged.calls[pagedUnmap] + paged.calls[pagedMove];
}

/* ---- where pages go ---- */

static void a_pool_maps_what_it_needs(void **state) {
  (void)state;
  open_plain(0);
  assert_true(reserved() == 0 && paged.calls[pagedReserve] == 0);
  uintptr_t one = filled_block(3 * page, 1);
  assert_true(reserved() == 3 * page && paged.pages == 3 && stats_of(&pool).chunks == 1);
  uintptr_t other = filled_block(page + 4096, 2);
  assert_true(reserved() == 5 * page);
  uintptr_t small = filled_block(100, 3); /* whose span finds no page of 64 KiB */
  assert_true(reserved() == 6 * page);
  assert_true(is_filled(one, 3 * page, 1) && is_filled(other, page + 4096, 2) && !paged.blocks);
  umem_free(&pool, one);
  umem_free(&pool, other);
  umem_free(&pool, small);
  expect_nothing_left(&pool);
  assert_int_equal(paged.pages, 0);
  umem_dtor(&pool);
}

static void a_loop_maps_nothing(void **state) {
  (void)state;
  open_plain(0);
  uintptr_t kept = new_block(&pool, 5 * page);
  umem_free(&pool, new_block(&pool, 20 * page));
  unsigned long before = mapping_calls();
  for (int i = 0; i < 1000; i++) umem_free(&pool, new_block(&pool, (size_t)(20 - i % 5) * page));
  assert_int_equal(mapping_calls(), before);
  umem_free(&pool, kept);
  umem_dtor(&pool);
}

static void free_pages_move_to_a_larger_block(void **state) {
  (void)state;
  open_plain(0);
  uintptr_t adr[6];
  for (int i = 0; i < 6; i++) adr[i] = filled_block((i % 2 ? 2 : 4) * page, (unsigned char)i);
  assert_true(reserved() == 18 * page);
  for (int i = 0; i < 6; i += 2) umem_free(&pool, adr[i]);
  unsigned long before = paged.calls[pagedMap];
  uintptr_t large = filled_block(12 * page, 9);
  assert_int_equal(paged.calls[pagedMap], before);
  assert_true(reserved() == 18 * page && stats_of(&pool).reserved_peak == 18 * page);
  for (int i = 1; i < 6; i += 2) assert_true(is_filled(adr[i], 2 * page, (unsigned char)i));
  assert_true(is_filled(large, 12 * page, 9));
  umem_free(&pool, large);
  for (int i = 1; i < 6; i += 2) umem_free(&pool, adr[i]);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* The gap that a moved page has left is filled again, between memory that stayed. */
static void gaps_are_stitched(void **state) {
  (void)state;
  open_plain(0);
  uintptr_t one = new_block(&pool, 2 * page), two = new_block(&pool, 4 * page);
  uintptr_t last = filled_block(2 * page, 1);
  umem_free(&pool, two);
  uintptr_t large = new_block(&pool, 7 * page); /* takes the pages of two */
  assert_true(reserved() == 11 * page && large > last);
  umem_free(&pool, one);
  assert_true(new_block(&pool, 6 * page) == one); /* where one and two were */
  assert_true(reserved() == 15 * page);
  assert_true(is_filled(last, 2 * page, 1));
  umem_free(&pool, one);
  umem_free(&pool, large);
  umem_free(&pool, last);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* Where the fewest pages have to be mapped or moved. */
static void the_place_with_most_memory_serves(void **state) {
  (void)state;
  size_t const sizes[] = {10 * page, 2 * page, 6 * page, 4 * page, 2 * page};
  uintptr_t adr[5];
  open_plain(0);
  for (int i = 0; i < 5; i++) adr[i] = new_block(&pool, sizes[i]);
  umem_free(&pool, adr[0]);
  umem_free(&pool, adr[3]);
  assert_ok(umem_trim(&pool, 0));
  umem_free(&pool, adr[2]);
  unsigned long before = paged.calls[pagedMove];
  assert_true(new_block(&pool, 9 * page) == adr[2]);
  assert_true(paged.calls[pagedMove] == before && reserved() == 13 * page);
  umem_free(&pool, adr[2]);
  umem_free(&pool, adr[1]);
  umem_free(&pool, adr[4]);
  umem_dtor(&pool);
}

static void options_count_in_pages(void **state) {
  (void)state;
  open_pool(&pool, &paged, 5 * page + 1, 8 * page, 0);
  assert_true(reserved() == 6 * page && stats_of(&pool).largest_free == 6 * page);
  uintptr_t adr[7];
  for (int i = 0; i < 3; i++) adr[i] = new_block(&pool, 2 * page);
  assert_true(reserved() == 6 * page);
  for (int i = 3; i < 7; i++) adr[i] = new_block(&pool, 2 * page);
  assert_true(reserved() == 14 * page);
  for (int i = 0; i < 7; i++) umem_free(&pool, adr[i]);
  umem_dtor(&pool);
}

static void trim_keeps_what_it_shall(void **state) {
  (void)state;
  open_plain(0);
  uintptr_t one = new_block(&pool, 10 * page), two = filled_block(2 * page, 1);
  umem_free(&pool, one);
  assert_ok(umem_trim(&pool, 5 * page));
  assert_true(reserved() == 5 * page && paged.pages == 5);
  assert_ok(umem_trim(&pool, 0));
  assert_true(reserved() == 2 * page && is_filled(two, 2 * page, 1));
  one = new_block(&pool, 10 * page);
  assert_true(reserved() == 12 * page);
  umem_free(&pool, one);
  umem_free(&pool, two);
  umem_dtor(&pool); /* with pages */
}

/* ---- tools ---- */

#pragma weak __lsan_do_recoverable_leak_check
int __lsan_do_recoverable_leak_check(void);

/* Where LeakSanitizer is: it sees what only a block of RAM points to. */
static void pointers_in_pages_are_seen(void **state) {
  (void)state;
  umemHost host;
  assert_ok(umemHost_ctor(&host));
  open_pool(&pool, &host, 0, 0, 0);
  void **block = (void **)new_block(&pool, 100);
  *block = malloc(123);
  assert_non_null(*block);
  if (__lsan_do_recoverable_leak_check) assert_int_equal(__lsan_do_recoverable_leak_check(), 0);
  free(*block);
  umem_free(&pool, (uintptr_t)block);
  umem_dtor(&pool);
  umem_dtor(&host);
}

/* ---- addresses ---- */

static void used_up_addresses_get_more(void **state) {
  (void)state;
  paged.longest = 17 * page; /* 16 for blocks */
  open_plain(0);
  uintptr_t adr[10];
  for (unsigned i = 0; i < 10; i++) adr[i] = filled_block(9 * page, (unsigned char)i);
  assert_true(reserved() == 90 * page && stats_of(&pool).chunks == 10);
  for (unsigned i = 0; i < 10; i++) assert_true(is_filled(adr[i], 9 * page, (unsigned char)i));
  for (unsigned i = 0; i < 10; i++) umem_free(&pool, adr[i]);
  uintptr_t large = new_block(&pool, 16 * page); /* of pages of two ranges */
  assert_true(reserved() == 90 * page);
  umem_free(&pool, large);
  paged.no_alloc = true;
  assert_true(umem_alloc(&pool, 17 * page) == 0); /* no range is so long */
  expect_failure(&pool, umemMemoryError, "no block here");
  umem_clear_status(&paged);
  umem_dtor(&pool);
}

static void alignments_are_kept(void **state) {
  (void)state;
  open_plain(0);
  uintptr_t adr[40];
  size_t const alignments[] = {4096, 8192, 16384, 32768, 65536};
  for (unsigned i = 0; i < 40; i++) {
    adr[i] = umem_aligned_alloc(&pool, alignments[i % 5], page + 4096 * (size_t)(i % 7));
    assert_true(adr[i] && adr[i] % alignments[i % 5] == 0);
    if (i % 3) {
      umem_aligned_free(&pool, adr[i]);
      adr[i] = 0;
    }
  }
  for (unsigned i = 0; i < 40; i++) umem_aligned_free(&pool, adr[i]);
  uintptr_t large = umem_aligned_alloc(&pool, 1024 * page, page);
  assert_true(large && large % (1024 * page) == 0 &&
              paged.blocks <= 1); /* a chunk, but for chance */
  umem_aligned_free(&pool, large);
  assert_int_equal(paged.blocks, 0);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* ---- out of memory ---- */

static void the_maximum_is_used_up(void **state) {
  (void)state;
  paged.no_alloc = true;
  open_plain(32 * page);
  uintptr_t adr[16];
  size_t const size = 2 * page;
  for (unsigned i = 0; i < 16; i++) adr[i] = filled_block(size - 4096 * (i % 2), (unsigned char)i);
  assert_true(umem_alloc(&pool, page + 1) == 0);
  expect_failure(&pool, umemMemoryError, "the pool holds 2097152 of at most 2097152 bytes");
  for (unsigned i = 0; i < 16; i += 2) umem_free(&pool, adr[i]);
  uintptr_t large = filled_block(8 * page, 77); /* of pages that are free as a whole */
  for (unsigned i = 1; i < 16; i += 2)
    assert_true(is_filled(adr[i], size - 4096, (unsigned char)i));
  assert_true(paged.pages_peak == 32);
  umem_free(&pool, large);
  for (unsigned i = 1; i < 16; i += 2) umem_free(&pool, adr[i]);
  umem_dtor(&pool);
}

static void a_full_upstream_serves_what_fits(void **state) {
  (void)state;
  paged.capacity = 10;
  paged.no_alloc = true;
  open_plain(0);
  uintptr_t one = filled_block(7 * page, 1), two = filled_block(2 * page, 2);
  umem_free(&pool, one);
  assert_true(umem_alloc(&pool, 10 * page) == 0);
  expect_failure(&pool, umemMemoryError, "no block here");
  umem_clear_status(&paged);
  assert_true(is_filled(two, 2 * page, 2));
  one = filled_block(8 * page, 3);
  assert_true(is_filled(two, 2 * page, 2) && reserved() == 10 * page);
  umem_free(&pool, one);
  umem_free(&pool, two);
  umem_dtor(&pool);
}

static void chunks_serve_where_pages_do_not(void **state) {
  (void)state;
  open_plain(0);
  paged_fail(&paged, pagedReserve, 1, 0, umemNotSupportedError);
  paged.longest = 1; /* nor any other */
  uintptr_t one = filled_block(3 * page, 1);
  assert_true(paged.blocks == 1 && reserved() >= 3 * page);
  paged.longest = 0;
  uintptr_t two = filled_block(30 * page, 2);
  assert_true(paged.pages >= 27);
  paged_fail(&paged, pagedMap, 1, 0, umemNotSupportedError);
  uintptr_t three = filled_block(40 * page, 3);
  assert_true(paged.blocks == 2);
  assert_true(is_filled(one, 3 * page, 1) && is_filled(two, 30 * page, 2) &&
              is_filled(three, 40 * page, 3));
  umem_free(&pool, one);
  umem_free(&pool, two);
  umem_free(&pool, three);
  expect_nothing_left(&pool);
  umem_clear_status(&paged);
  umem_dtor(&pool);
}

/* Pages go back for it. */
static void a_chunk_serves_where_pages_are_too_coarse(void **state) {
  (void)state;
  size_t const rest = 40960;
  open_plain(4 * page + rest);
  umem_free(&pool, new_block(&pool, 4 * page));
  assert_true(reserved() == 4 * page);
  uintptr_t adr = filled_block(4 * page + rest, 1);
  assert_true(paged.blocks == 1 && paged.pages == 0 && reserved() == 4 * page + rest);
  umem_free(&pool, adr);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* ---- each call fails ---- */

/* Blocks of several sizes, a large one of free pages, trim. Each that is there keeps its bytes. */
static void use(bool may_fail) {
  enum { count = 12 };
  uintptr_t adr[count] = {0}, large;
  size_t const sizes[] = {3 * page, page + 8192, 5 * page - 4096, page};
  for (unsigned i = 0; i < count; i++) {
    adr[i] = umem_alloc(&pool, sizes[i % 4]);
    if (adr[i]) fill(adr[i], sizes[i % 4], (unsigned char)i);
    assert_true(adr[i] || may_fail);
  }
  for (unsigned i = 0; i < count; i += 2) umem_free(&pool, adr[i]);
  large = umem_alloc(&pool, 14 * page);
  assert_true(large || may_fail);
  if (large) fill(large, 14 * page, 99);
  umem_trim(&pool, 16 * page);
  uintptr_t other = umem_alloc(&pool, 7 * page);
  if (other) fill(other, 7 * page, 98);
  for (unsigned i = 1; i < count; i += 2)
    assert_true(!adr[i] || is_filled(adr[i], sizes[i % 4], (unsigned char)i));
  assert_true(!large || is_filled(large, 14 * page, 99));
  umem_free(&pool, large);
  umem_free(&pool, other);
  for (unsigned i = 1; i < count; i += 2) umem_free(&pool, adr[i]);
}

static void forget_failures(void) {
  umem_clear_status(&pool);
  umem_clear_status(&paged);
  umem_thread_clear();
}

/* Every call fails once, and with a part of its pages done; then all works, and nothing is left. */
static void each_call_may_fail(void **state) {
  (void)state;
  PagedCall const calls[] = {pagedReserve, pagedMap, pagedMove, pagedUnmap};
  umemStatusType const types[] = {umemMemoryError, umemNotSupportedError};
  unsigned met = 0;
  for (size_t c = 0; c < 4; c++)
    for (unsigned long nth = 1; nth <= 12; nth++)
      for (unsigned long after = 0; after < 3; after++)
        for (size_t t = 0; t < 2; t++) {
          paged.no_alloc = after == 1;
          open_plain(after == 2 ? 64 * page : 0);
          paged_fail(&paged, calls[c], nth, after, types[t]);
          use(true);
          met += paged.calls[calls[c]] >= nth;
          forget_failures();
          paged_fail(&paged, pagedMap, 0, 0, umemOK);
          paged.no_alloc = false;
          use(false);
          forget_failures();
          assert_true(stats_of(&pool).blocks == 0);
          assert_ok(umem_trim(&pool, 0));
          assert_int_equal(paged.pages, 0);
          assert_true(stats_of(&pool).reserved == 0);
          umem_dtor(&pool);
          if (!paged_is_clean(&paged)) fail_msg("%s", paged.misuse);
        }
  assert_true(met > 40);
}

/* ---- fork ---- */

static void grow_in_a_child(void *argument) {
  bool *done = argument;
  if (*done) return;
  *done = true;
  pid_t child = fork(); /* here, where a thread is mapping; the child is that thread */
  if (child == 0) return;
  int status = -1;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) paged.misuse[0] = '!';
}

static void a_child_goes_on(void **state) {
  (void)state;
  bool done = false;
  pid_t self = getpid();
  open_plain(0);
  uintptr_t one = filled_block(3 * page, 1);
  paged.before_map = grow_in_a_child;
  paged.argument = &done;
  uintptr_t two = filled_block(20 * page, 2);
  uintptr_t three = filled_block(30 * page, 3);
  bool good = is_filled(one, 3 * page, 1) && is_filled(two, 20 * page, 2);
  if (getpid() != self) _exit(good ? 0 : 1);
  assert_true(good && paged.misuse[0] == 0);
  paged.before_map = NULL;
  umem_free(&pool, one);
  umem_free(&pool, two);
  umem_free(&pool, three);
  umem_dtor(&pool);
}

/* A thread maps while another one forks. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool mapping, over;
} stage = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};

static void wait_while_mapping(void *argument) {
  pid_t *parent = argument;
  if (getpid() != *parent) return;
  pthread_mutex_lock(&stage.mutex);
  stage.mapping = true;
  pthread_cond_broadcast(&stage.changed);
  while (!stage.over) pthread_cond_wait(&stage.changed, &stage.mutex);
  pthread_mutex_unlock(&stage.mutex);
}

static void *grow_slowly(void *unused) {
  (void)unused;
  umem_free(&pool, umem_alloc(&pool, 14 * page));
  return NULL;
}

static int child_of_a_mapping_process(uintptr_t kept) {
  alarm(20);
  uintptr_t one = umem_alloc(&pool, 20 * page), two = umem_alloc(&pool, 100);
  if (!one || !two || !is_filled(kept, page, 1)) return 1;
  if (paged.blocks) return 4; /* pages, not a chunk */
  fill(one, 20 * page, 4);
  if (umem_trim(&pool, 0) != umemOK || !is_filled(one, 20 * page, 4)) return 2;
  umem_free(&pool, one);
  umem_free(&pool, two);
  return umem_thread_status() == umemOK ? 0 : 3;
}

static void a_child_of_a_mapping_process_maps(void **state) {
  (void)state;
  pthread_t thread;
  pid_t self = getpid();
  open_plain(0);
  uintptr_t first = new_block(&pool, 4 * page), kept = filled_block(page, 1);
  umem_free(&pool, first); /* pages to move */
  paged.before_map = wait_while_mapping;
  paged.argument = &self;
  assert_int_equal(pthread_create(&thread, NULL, grow_slowly, NULL), 0);
  pthread_mutex_lock(&stage.mutex);
  while (!stage.mapping) pthread_cond_wait(&stage.changed, &stage.mutex);
  pthread_mutex_unlock(&stage.mutex);
  pid_t child = fork();
  if (child == 0) _exit(child_of_a_mapping_process(kept));
  int status = -1;
  assert_true(waitpid(child, &status, 0) == child);
  pthread_mutex_lock(&stage.mutex);
  stage.over = true;
  pthread_cond_broadcast(&stage.changed);
  pthread_mutex_unlock(&stage.mutex);
  pthread_join(thread, NULL);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  paged.before_map = NULL;
  umem_free(&pool, kept);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* ---- at random, beside what must be possible ---- */

enum { most_blocks = 48, most_pages = 400 };

typedef struct Block {
  uintptr_t adr;
  size_t size;
  unsigned char c;
} Block;

static int by_address(void const *one, void const *other) {
  Block const *a = one, *b = other;
  return a->adr < b->adr ? -1 : a->adr > b->adr;
}

/* The pages that blocks touch: what no pool can give away. */
static size_t touched(Block const *blocks, size_t count) {
  Block sorted[most_blocks];
  size_t pages = 0;
  uintptr_t last = 0;
  memcpy(sorted, blocks, count * sizeof *blocks);
  qsort(sorted, count, sizeof *sorted, by_address);
  for (size_t i = 0; i < count; i++) {
    uintptr_t first = sorted[i].adr / page, end = (sorted[i].adr + sorted[i].size - 1) / page;
    if (first <= last) first = last + 1;
    if (end >= first) pages += end - first + 1;
    if (end > last) last = end;
  }
  return pages;
}

/* Whatever has come and gone: a block of so many free pages is served, and no page is mapped that need not be. */
static void what_must_fit_fits(void **state) {
  (void)state;
  static Block blocks[most_blocks];
  size_t count = 0, bound = 0, served = 0, tight = 0;
  uint64_t seed = 11;
  size_t const rounds = setting_small() ? 3000 : setting_operations(10000);
  paged.no_alloc = true;
  paged.capacity = most_pages;
  open_plain(0);
  for (size_t round = 0; round < rounds; round++) {
    bool full = count == most_blocks;
    if (count && (full || below(&seed, 5) < 2)) {
      Block *block = &blocks[below(&seed, count)];
      assert_true(is_filled(block->adr, block->size, block->c));
      umem_free(&pool, block->adr);
      *block = blocks[--count];
      continue;
    }
    size_t size = page + 4096 + below(&seed, (below(&seed, 4) ? 8 : 60) * page);
    size_t need = touched(blocks, count) + (size + page - 1) / page;
    Block block = {umem_alloc(&pool, size), size, (unsigned char)round};
    if (need <= most_pages && need > most_pages - 20) tight++;
    if (need <= most_pages && !block.adr) fail_msg("round %zu: %s", round, umem_thread_message());
    size_t asked = need < most_pages ? need : most_pages;
    if (asked > bound) bound = asked;
    forget_failures();
    if (!block.adr) continue;
    assert_true(paged.pages_peak <= bound + most_pages / 256);
    assert_true(reserved() == paged.pages * page);
    fill(block.adr, size, block.c);
    blocks[count++] = block;
    served++;
  }
  assert_true(served > rounds / 3 && tight > 20);
  for (size_t i = 0; i < count; i++) {
    assert_true(is_filled(blocks[i].adr, blocks[i].size, blocks[i].c));
    umem_free(&pool, blocks[i].adr);
  }
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* ---- threads ---- */

static void *churn(void *argument) {
  enum { kept = 12 };
  Block blocks[kept] = {{0}};
  uint64_t seed = (uint64_t)(uintptr_t)argument;
  bool good = true;
  int const rounds = setting_small() ? 300 : 2000;
  for (int round = 0; round < rounds; round++) {
    Block *block = &blocks[below(&seed, kept)];
    if (block->adr) {
      good = good && is_filled(block->adr, block->size, block->c);
      umem_free(&pool, block->adr);
    }
    size_t size = below(&seed, 3) ? 1 + below(&seed, 6 * page) : 1 + below(&seed, 3000);
    *block = (Block){umem_alloc(&pool, size), size, (unsigned char)random64(&seed)};
    if (block->adr) fill(block->adr, size, block->c);
    if (below(&seed, 200) == 0) umem_trim(&pool, 0);
  }
  for (int i = 0; i < kept; i++) umem_free(&pool, blocks[i].adr);
  umem_thread_clear();
  return good ? &pool : NULL;
}

static void threads_map_in_turn(void **state) {
  (void)state;
  enum { count = 6 };
  pthread_t threads[count];
  for (int with = 0; with < 2; with++) {
    paged.no_alloc = with;
    open_plain(with ? 150 * page : 0); /* too little for all */
    for (size_t i = 0; i < count; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (size_t i = 0; i < count; i++) {
      void *result;
      pthread_join(threads[i], &result);
      assert_non_null(result);
    }
    forget_failures();
    expect_nothing_left(&pool);
    umem_dtor(&pool);
  }
}

#define PAGES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  struct CMUnitTest const tests[] = {
      PAGES_TEST(a_pool_maps_what_it_needs),
      PAGES_TEST(a_loop_maps_nothing),
      PAGES_TEST(free_pages_move_to_a_larger_block),
      PAGES_TEST(gaps_are_stitched),
      PAGES_TEST(the_place_with_most_memory_serves),
      PAGES_TEST(options_count_in_pages),
      PAGES_TEST(trim_keeps_what_it_shall),
      PAGES_TEST(pointers_in_pages_are_seen),
      PAGES_TEST(used_up_addresses_get_more),
      PAGES_TEST(alignments_are_kept),
      PAGES_TEST(the_maximum_is_used_up),
      PAGES_TEST(a_full_upstream_serves_what_fits),
      PAGES_TEST(chunks_serve_where_pages_do_not),
      PAGES_TEST(a_chunk_serves_where_pages_are_too_coarse),
      PAGES_TEST(each_call_may_fail),
      PAGES_TEST(a_child_goes_on),
      PAGES_TEST(a_child_of_a_mapping_process_maps),
      PAGES_TEST(what_must_fit_fits),
      PAGES_TEST(threads_map_in_turn),
  };
  return cmocka_run_group_tests_name("pool_pages", tests, NULL, NULL);
}
