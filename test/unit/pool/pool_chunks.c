/* pool_chunks.c - how much a pool over chunks holds, and how often it asks for them, with blocks of
 * random sizes: as over pinned RAM, where a chunk takes milliseconds. */
#include "pool_help.h"

/* A context whose chunks have addresses alone. */
static struct Counted {
  umemVirtual super; /* first */
  umemHost host;
  uintptr_t next;
  size_t calls;
} counted;

static uintptr_t counted_alloc(umemVirtual *ctx UNUSED, size_t nbytes) {
  uintptr_t adr = counted.next;
  counted.next += (nbytes + 2 * mebi) & ~(size_t)(mebi - 1);
  counted.calls++;
  return adr;
}

static uintptr_t counted_aligned_alloc(umemVirtual *ctx, size_t alignment UNUSED, size_t nbytes) {
  return counted_alloc(ctx, nbytes); /* at a multiple of 1 MiB */
}
static uintptr_t counted_aligned_origin(umemVirtual *ctx UNUSED, uintptr_t adr) { return adr; }
static void counted_free(umemVirtual *ctx UNUSED, uintptr_t adr UNUSED) {}

static void open_counted(void **state UNUSED) {
  static struct umemVtbl const vtbl = {.alloc = counted_alloc,
                                       .free = counted_free,
                                       .aligned_alloc = counted_aligned_alloc,
                                       .aligned_origin = counted_aligned_origin,
                                       .aligned_free = counted_free};
  assert_ok(umemHost_ctor(&counted.host));
  umemVirtual_ctor(&counted.super, &counted.host);
  counted.super.vptr = &vtbl;
  counted.super.alignment = 256;
  counted.next = (uintptr_t)1 << 40;
  assert_ok(umemPool_ctor(&pool, &counted, NULL));
}

static void close_counted(void **state UNUSED) {
  close_pool(&pool);
  DESTRUCT(&counted, &counted.host);
  assert_ok(umem_thread_status());
}

#define COUNTED_TEST(name) TEST_CASE_WITH(name, open_counted, close_counted)

/* least ... least * 2^bits, about uniform in its logarithm. */
static size_t draw(uint64_t *seed, size_t least, unsigned bits) {
  size_t size = least << below(seed, bits);
  return size + below(seed, size);
}

/* One block is freed and one allocated in each step. held: the most that the pool holds, over the
 * most that its blocks ever had at once; asked: the chunks in 1000 steps, once it has grown. */
static void run_row(size_t least, unsigned bits, size_t live, double held, double asked) {
  enum { most_live = 4096, steps = 20000 };
  static uintptr_t blocks[most_live];
  uint64_t seed = 1;
  for (size_t i = 0; i < live; i++) blocks[i] = new_block(&pool, draw(&seed, least, bits));
  for (size_t i = 0; i < 2 * steps; i++) {
    size_t at = below(&seed, live);
    if (i == steps) counted.calls = 0;
    umem_free(&pool, blocks[at]);
    blocks[at] = new_block(&pool, draw(&seed, least, bits));
  }
  umemPoolStats stats = stats_of(&pool);
  if (stats.factor > held || (double)counted.calls * 1000 / steps > asked)
    fail_msg("factor %.3f, %zu chunks in %d steps", stats.factor, counted.calls, steps);
  for (size_t i = 0; i < live; i++) umem_free(&pool, blocks[i]);
}

COUNTED_TEST(small_blocks) { run_row(256, 8, 1000, 1.6, 0.1); }

/* What a program takes of pinned RAM no other can use. Blocks of more than 8 KiB share what a chunk
 * has; in other RAM they have spans, and so need no lock. */
COUNTED_TEST(small_blocks_of_pinned_ram_share_chunks) {
  enum { size = 10000, class_size = 10240, whole_units = 12288 };
  uintptr_t spans[2] = {new_block(&pool, size), new_block(&pool, size)};
  assert_int_equal(spans[1] - spans[0], class_size);
  FREE(&pool, spans[0], spans[1]);
  assert_ok(umem_trim(&pool, 0));
  counted.super.capabilities |= umemDeviceAccessible;
  uintptr_t units[2] = {new_block(&pool, size), new_block(&pool, size)};
  assert_int_equal(units[1] - units[0], whole_units);
  FREE(&pool, units[0], units[1]);
  run_row(256, 8, 1000, 1.4, 0.1);
}

COUNTED_TEST(medium_blocks) { run_row(64 * kibi, 4, 4096, 1.15, 0.1); }
COUNTED_TEST(blocks_of_all_sizes) { run_row(256, 18, 256, 1.4, 1); }
COUNTED_TEST(large_blocks) { run_row(mebi, 6, 64, 1.4, 1); }

/* A pool that only grows has at most a quarter, or 4 MiB, that it does not need. */
COUNTED_TEST(a_growing_pool_takes_little_more_than_it_needs) {
  enum { most = 3000 };
  static uintptr_t blocks[most];
  for (size_t i = 0; i < most; i++) {
    blocks[i] = new_block(&pool, 100 * kibi);
    umemPoolStats stats = stats_of(&pool);
    uint64_t most_held = stats.used + stats.used / 4 + stats.used / 20 + 4 * mebi;
    if (stats.reserved > most_held)
      fail_msg("%ju bytes for %ju", (uintmax_t)stats.reserved, (uintmax_t)stats.used);
  }
  for (size_t i = 0; i < most; i++) umem_free(&pool, blocks[i]);
}
