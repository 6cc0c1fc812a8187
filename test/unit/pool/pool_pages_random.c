/* pool_pages_random.c - pools that map pages: random calls, beside what must be possible; threads;
 * forks. */
#include "pool_pages_help.h"

/* ---- fork ---- */

static void grow_in_a_child(void *argument) {
  bool *done = argument;
  if (*done) return;
  *done = true;
  pid_t child = fork(); /* here, where a thread is mapping; the child is that thread */
  if (child == 0) return;
  if (child_wait(child)) paged.misuse[0] = '!';
}

PAGES_TEST(a_child_goes_on) {
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
  FREE(&pool, one, two, three);
}

/* A thread maps while another one forks. */
static bool mapping, over; /* atomic */

static void wait_while_mapping(void *argument) {
  pid_t *parent = argument;
  if (getpid() != *parent) return;
  __atomic_store_n(&mapping, true, __ATOMIC_RELEASE);
  await(&over);
}

static void *grow_slowly(void *unused UNUSED) {
  umem_free(&pool, umem_alloc(&pool, 14 * page));
  return NULL;
}

static int child_of_a_mapping_process(uintptr_t kept) {
  alarm(60);
  uintptr_t one = umem_alloc(&pool, 20 * page), two = umem_alloc(&pool, 100);
  if (!one || !two || !is_filled(kept, page, 1)) return 1;
  if (paged.blocks) return 4; /* pages, not a chunk */
  fill(one, 20 * page, 4);
  if (umem_trim(&pool, 0) != umemOK || !is_filled(one, 20 * page, 4)) return 2;
  FREE(&pool, one, two);
  return umem_thread_status() == umemOK ? 0 : 3;
}

PAGES_TEST(a_child_of_a_mapping_process_maps) {
  pid_t self = getpid();
  open_plain(0);
  uintptr_t first = new_block(&pool, 4 * page), kept = filled_block(page, 1);
  umem_free(&pool, first); /* pages to move */
  paged.before_map = wait_while_mapping;
  paged.argument = &self;
  pthread_t thread = start_thread(grow_slowly, NULL);
  await(&mapping);
  pid_t child = fork();
  if (child == 0) _exit(child_of_a_mapping_process(kept));
  int status = child_wait(child);
  __atomic_store_n(&over, true, __ATOMIC_RELEASE);
  join_thread(thread);
  assert_int_equal(status, 0);
  paged.before_map = NULL;
  umem_free(&pool, kept);
}

/* ---- at random, beside what must be possible ---- */

enum { most_blocks = 48, most_pages = 400 };

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

/* Whatever has come and gone: a block of so many free pages is served, and no page is mapped that
 * need not be. */
PAGES_TEST(what_must_fit_fits) {
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
      assert_true(is_whole(block));
      umem_free(&pool, block->adr);
      *block = blocks[--count];
      continue;
    }
    size_t size = page + 4096 + below(&seed, (below(&seed, 4) ? 8 : 60) * page);
    size_t need = touched(blocks, count) + (size + page - 1) / page;
    Block block = try_block(size, (unsigned char)round);
    if (need <= most_pages && need > most_pages - 20) tight++;
    if (need <= most_pages && !block.adr) fail_msg("round %zu: %s", round, umem_thread_message());
    size_t asked = need < most_pages ? need : most_pages;
    if (asked > bound) bound = asked;
    forget_failures();
    if (!block.adr) continue;
    assert_true(paged.pages_peak <= bound + bound / 64 + most_pages / 256);
    assert_true(reserved() == paged.pages * page);
    blocks[count++] = block;
    served++;
  }
  assert_true(served > rounds / 3 && tight > 20);
  for (size_t i = 0; i < count; i++) {
    assert_true(is_whole(&blocks[i]));
    umem_free(&pool, blocks[i].adr);
  }
}

/* ---- at random, beside best fit ---- */

/* The live blocks of an arena of so many pages, in order of address. A new one goes to the smallest
 * gap that suffices, the lowest of several. */
typedef struct Arena {
  size_t pages, count;
  struct {
    size_t start, pages, name;
  } live[most_blocks];
} Arena;

static size_t gap_before(Arena const *arena, size_t i) {
  size_t begin = i ? arena->live[i - 1].start + arena->live[i - 1].pages : 0;
  return (i < arena->count ? arena->live[i].start : arena->pages) - begin;
}

static bool best_fit(Arena *arena, size_t pages, size_t name) {
  size_t best = SIZE_MAX, at = 0;
  for (size_t i = 0; i <= arena->count; i++) {
    size_t gap = gap_before(arena, i);
    if (gap < pages || gap >= best) continue;
    best = gap;
    at = i;
  }
  if (best == SIZE_MAX) return false;
  size_t start = at ? arena->live[at - 1].start + arena->live[at - 1].pages : 0;
  memmove(&arena->live[at + 1], &arena->live[at], (arena->count - at) * sizeof *arena->live);
  arena->live[at].start = start;
  arena->live[at].pages = pages;
  arena->live[at].name = name;
  arena->count++;
  return true;
}

static void best_fit_free(Arena *arena, size_t name) {
  size_t at = 0;
  while (arena->live[at].name != name) at++;
  arena->count--;
  memmove(&arena->live[at], &arena->live[at + 1], (arena->count - at) * sizeof *arena->live);
}

/* A context whose pages are counted and have no memory, so that calls take little time. */
static struct Counted {
  umemVirtual super; /* first */
  umemPages pages;
  uintptr_t next;
  size_t mapped, peak, capacity; /* pages */
} counted;

static uintptr_t counted_alloc(umemVirtual *ctx, size_t nbytes) {
  umemVirtual_fail(ctx, umemMemoryError, "no block of %zu bytes here", nbytes);
  return 0;
}
static void counted_free(umemVirtual *ctx UNUSED, uintptr_t adr UNUSED) {}
static uintptr_t counted_reserve(umemVirtual *ctx UNUSED, size_t nbytes) {
  counted.next += nbytes + page;
  return counted.next - nbytes - page;
}
static bool counted_release(umemVirtual *ctx UNUSED, uintptr_t adr UNUSED, size_t nbytes UNUSED) {
  return true;
}
static size_t counted_map(umemVirtual *ctx, uintptr_t adr UNUSED, size_t nbytes) {
  size_t wanted = nbytes / page, room = counted.capacity - counted.mapped;
  size_t done = wanted < room ? wanted : room;
  if (done < wanted) umemVirtual_fail(ctx, umemMemoryError, "no page here");
  counted.mapped += done;
  if (counted.mapped > counted.peak) counted.peak = counted.mapped;
  return done * page;
}
static size_t counted_unmap(umemVirtual *ctx UNUSED, uintptr_t adr UNUSED, size_t nbytes) {
  counted.mapped -= nbytes / page;
  return nbytes;
}
static size_t counted_move(umemVirtual *ctx UNUSED, uintptr_t from UNUSED, uintptr_t to UNUSED,
                           size_t nbytes) {
  return nbytes;
}
static umemPages const *counted_pages(umemVirtual *ctx UNUSED) { return &counted.pages; }

static void open_counted(size_t capacity) {
  static struct umemVtbl const table = {
      .alloc = counted_alloc, .free = counted_free, .pages = counted_pages};
  memset(&counted, 0, sizeof counted);
  umemVirtual_ctor(&counted.super, NULL);
  counted.super.vptr = &table;
  counted.super.alignment = 512;
  counted.pages =
      (umemPages){page, counted_reserve, counted_release, counted_map, counted_unmap, counted_move};
  counted.next = (uintptr_t)1 << 44;
  counted.capacity = capacity;
}

static bool is_apart(Block const *blocks, Block const *block) {
  for (Block const *other = blocks; other < blocks + most_blocks; other++)
    if (other != block && other->adr && other->adr < block->adr + block->size &&
        block->adr < other->adr + other->size)
      return false;
  return true;
}

/* A limit that is the pool's own, or its upstream's. Blocks are whole pages, two at least: a single
 * one would be small, and a part of a span. What best fit serves in an arena of that size the pool
 * serves, too. What it serves beyond goes back, so that both have the same blocks. */
static void serve_as_best_fit(bool own) {
  static Block blocks[most_blocks]; /* [name]; adr 0: not live */
  Arena arena = {.pages = most_pages};
  uint64_t seed = 5, denied = 0, beyond = 0;
  uint64_t const rounds = setting_small() ? 3000 : setting_operations(300000);
  memset(blocks, 0, sizeof blocks);
  open_counted(own ? SIZE_MAX : most_pages);
  open_pool(&pool, &counted, 0, 0, own ? most_pages * page : 0);
  for (uint64_t round = 0; round < rounds; round++) {
    size_t name = below(&seed, most_blocks);
    Block *block = &blocks[name];
    if (block->adr) {
      umem_free(&pool, block->adr);
      best_fit_free(&arena, name);
      block->adr = 0;
      continue;
    }
    size_t pages = 2 + below(&seed, below(&seed, 4) ? 12 : 80);
    bool fits = best_fit(&arena, pages, name);
    *block = (Block){umem_alloc(&pool, pages * page), pages * page, 0};
    if (block->adr) {
      assert_true(is_apart(blocks, block));
      if (fits) continue;
      beyond++;
      umem_free(&pool, block->adr);
      block->adr = 0;
    } else if (fits) {
      fail_msg("round %zu: best fit has %zu pages: %s", (size_t)round, pages,
               umem_thread_message());
    } else {
      denied++;
      FORGET(&pool, &counted);
    }
  }
  assert_true(denied > rounds / 200 && beyond > rounds / 200);
  assert_true(counted.peak <= most_pages && counted.mapped == reserved() / page);
  for (size_t i = 0; i < most_blocks; i++)
    if (blocks[i].adr) umem_free(&pool, blocks[i].adr);
  close_pool(&pool);
  assert_int_equal(counted.mapped, 0);
  umem_dtor(&counted);
}

PAGES_TEST(what_best_fit_serves_is_served) {
  serve_as_best_fit(true);
  serve_as_best_fit(false);
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
      good = good && is_whole(block);
      umem_free(&pool, block->adr);
    }
    size_t size = below(&seed, 3) ? 1 + below(&seed, 6 * page) : 1 + below(&seed, 3000);
    *block = try_block(size, (unsigned char)random64(&seed));
    if (below(&seed, 200) == 0) umem_trim(&pool, 0);
  }
  for (int i = 0; i < kept; i++) umem_free(&pool, blocks[i].adr);
  umem_thread_clear();
  return good ? &pool : NULL;
}

PAGES_TEST(threads_map_in_turn) {
  enum { count = 6 };
  pthread_t threads[count];
  for (int with = 0; with < 2; with++) {
    paged.no_alloc = with;
    open_plain(with ? 150 * page : 0); /* too little for all */
    for (size_t i = 0; i < count; i++) threads[i] = start_thread(churn, (void *)(i + 1));
    assert_true(join_threads(threads, count));
    forget_failures();
    close_pool(&pool);
  }
}
