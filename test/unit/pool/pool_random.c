/* pool_random.c - the pool against a naive model: a sorted list of the live blocks, with what is in
 * them.
 *
 * The number of random operations comes from UMEM_TEST_OPERATIONS (3000000 when unset or empty). */
#include "pool_help.h"

#include "backends.h"

enum { most_live = 1500, most_checked = 64, pool_maximum = 6 << 20 };

typedef struct Block {
  uintptr_t adr;
  size_t size;
  unsigned char byte; /* all that is checked of it holds this */
} Block;

typedef struct Model {
  umemPool pool;
  umemHost host;
  umemVirtual *upstream;
  Block blocks[most_live]; /* by address */
  size_t count;
  uint64_t bytes;
  uintptr_t freed[64]; /* some addresses that were freed */
  uint64_t random, seed, operation;
} Model;

#define CHECK(condition) check_operation(condition, model->seed, model->operation)

/* ---- the live blocks ---- */

/* The place of the first block at or after adr. */
static size_t place_of(Model const *model, uintptr_t adr) {
  size_t low = 0, high = model->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (model->blocks[middle].adr < adr)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The bytes that are checked: all of small blocks, the ends of others. */
static void write_ends(Model *model, Block const *block) {
  size_t n = block->size < most_checked ? block->size : most_checked;
  CHECK(umem_set(&model->pool, block->adr, block->byte, n) == umemOK);
  CHECK(umem_set(&model->pool, block->adr + block->size - n, block->byte, n) == umemOK);
}

static void check_bytes(Model *model, uintptr_t adr, unsigned char byte, size_t n) {
  unsigned char found[most_checked];
  CHECK(umem_copy_to(&model->pool, adr, &model->host, (uintptr_t)found, n) == umemOK);
  for (size_t i = 0; i < n; i++) CHECK(found[i] == byte);
}

static void check_ends(Model *model, Block const *block) {
  size_t n = block->size < most_checked ? block->size : most_checked;
  check_bytes(model, block->adr, block->byte, n);
  check_bytes(model, block->adr + block->size - n, block->byte, n);
}

static void add(Model *model, uintptr_t adr, size_t size) {
  size_t at = place_of(model, adr);
  if (at < model->count) CHECK(adr + size <= model->blocks[at].adr);
  if (at > 0) CHECK(model->blocks[at - 1].adr + model->blocks[at - 1].size <= adr);
  memmove(&model->blocks[at + 1], &model->blocks[at], (model->count - at) * sizeof(Block));
  model->count++;
  model->bytes += size;
  model->blocks[at] = (Block){adr, size, (unsigned char)random64(&model->random)};
  write_ends(model, &model->blocks[at]);
}

static void drop(Model *model, size_t at) {
  check_ends(model, &model->blocks[at]);
  model->bytes -= model->blocks[at].size;
  model->freed[below(&model->random, 64)] = model->blocks[at].adr;
  memmove(&model->blocks[at], &model->blocks[at + 1], (--model->count - at) * sizeof(Block));
}

/* ---- operations ---- */

static size_t some_size(Model *model) {
  return random_size(&model->random, below(&model->random, 20) ? 13 : 19);
}

/* Whether an allocation has succeeded; the only reason against it is the maximum. */
static bool succeeded(Model *model, uintptr_t adr) {
  if (adr != umem_null(&model->pool)) return true;
  CHECK(umem_thread_status() == umemMemoryError);
  CHECK(stats_of(&model->pool).reserved > pool_maximum / 2);
  FORGET(&model->pool, model->upstream);
  return false;
}

static void do_alloc(Model *model) {
  size_t size = some_size(model);
  uintptr_t adr = umem_alloc(&model->pool, size);
  if (!succeeded(model, adr)) return;
  CHECK(adr % model->pool.super.alignment == 0);
  add(model, adr, size);
}

static void do_aligned_alloc(Model *model) {
  size_t size = some_size(model);
  size_t alignment = (size_t)1 << below(&model->random, below(&model->random, 50) ? 13 : 20);
  uintptr_t adr = umem_aligned_alloc(&model->pool, alignment, size);
  if (!succeeded(model, adr)) return;
  CHECK(adr % alignment == 0);
  CHECK(umem_aligned_origin(&model->pool, adr) == adr);
  add(model, adr, size);
}

static void do_calloc(Model *model) {
  size_t size = some_size(model);
  uintptr_t adr = umem_calloc(&model->pool, 1, size);
  if (!succeeded(model, adr)) return;
  size_t n = size < most_checked ? size : most_checked;
  check_bytes(model, adr, 0, n);
  check_bytes(model, adr + size - n, 0, n);
  add(model, adr, size);
}

static void do_free(Model *model, size_t at) {
  uintptr_t adr = model->blocks[at].adr;
  drop(model, at);
  umem_free(&model->pool, adr);
  CHECK(umem_is_ok(&model->pool));
}

static void do_realloc(Model *model, size_t at) {
  Block old = model->blocks[at];
  size_t size = some_size(model);
  uintptr_t adr = umem_realloc(&model->pool, old.adr, old.size, size);
  if (!succeeded(model, adr)) {
    check_ends(model, &old);
    return;
  }
  size_t kept = old.size < size ? old.size : size;
  check_bytes(model, adr, old.byte, kept < most_checked ? kept : most_checked);
  model->bytes -= old.size;
  memmove(&model->blocks[at], &model->blocks[at + 1], (--model->count - at) * sizeof(Block));
  add(model, adr, size);
}

/* An address at which no block begins. */
static void do_wrong_free(Model *model) {
  uintptr_t adr;
  if (model->count && below(&model->random, 2)) {
    Block const *block = &model->blocks[below(&model->random, model->count)];
    adr = block->adr + 1 + below(&model->random, block->size);
  } else {
    adr = model->freed[below(&model->random, 64)];
  }
  size_t at = place_of(model, adr);
  if (adr == umem_null(&model->pool)) return;
  if (at < model->count && model->blocks[at].adr == adr) return;
  uint64_t before = umem_thread_failures();
  umem_free(&model->pool, adr);
  CHECK(umem_thread_failures() == before + 1);
  CHECK(umem_thread_status() == umemValueError);
  FORGET(&model->pool);
}

static void do_check(Model *model) {
  umemPoolStats stats = stats_of(&model->pool);
  CHECK(stats.blocks == model->count);
  CHECK(stats.used >= model->bytes && stats.used <= stats.reserved);
  CHECK(stats.used_peak >= stats.used && stats.used_peak <= stats.reserved_peak);
  CHECK(stats.largest_free <= stats.reserved - stats.used);
  CHECK(stats.fragmentation >= 0 && stats.fragmentation <= 1);
  CHECK(stats.reserved_peak <= pool_maximum);
  for (size_t i = 0; i < model->count; i++) check_ends(model, &model->blocks[i]);
}

static void operate(Model *model) {
  size_t choice = below(&model->random, 1000);
  /* tides: now more is allocated, now more is freed */
  size_t frees = model->operation >> 13 & 1 ? 600 : 350;
  if (model->count && (choice < frees || model->count == most_live))
    do_free(model, below(&model->random, model->count));
  else if (model->count && choice < frees + 60)
    do_realloc(model, below(&model->random, model->count));
  else if (choice < frees + 100)
    do_wrong_free(model);
  else if (choice < frees + 150)
    do_calloc(model);
  else if (choice < frees + 220)
    do_aligned_alloc(model);
  else if (model->count < most_live)
    do_alloc(model);
}

static void run(char const *row, uint64_t seed, uint64_t count) {
  SCOPED_BYTES(Model, model, sizeof *model);
  Backend const *backend = backend_by_name(row);
  model->upstream = backend_open(backend);
  assert_non_null(model->upstream);
  model->seed = model->random = seed;
  assert_ok(umemHost_ctor(&model->host));
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.maximum = pool_maximum;
  assert_ok(umemPool_ctor(&model->pool, model->upstream, &options));
  for (size_t i = 0; i < 64; i++) model->freed[i] = umem_null(&model->pool);
  for (; model->operation < count; model->operation++) {
    operate(model);
    if (model->operation % 20011 == 0) do_check(model);
    if (model->operation % 30011 == 0)
      CHECK(umem_trim(&model->pool, below(&model->random, pool_maximum)) == umemOK);
  }
  do_check(model);
  while (model->count) do_free(model, model->count - 1);
  assert_ok(umem_trim(&model->pool, 0));
  umemPoolStats stats = stats_of(&model->pool);
  CHECK(stats.blocks == 0 && stats.used == 0 && stats.reserved == 0 && stats.chunks == 0);
  if (backend->records) CHECK(backend->records(model->upstream).blocks == 0);
  umem_dtor(&model->pool);
  backend_close(backend, model->upstream);
}

TEST_CASE(over_ram) { run("host", 1, operations()); }

TEST_CASE(over_offsets) { run("fake-offset", 2, operations() / 4); }

TEST_CASE(over_a_device) { run("fake", 3, operations() / 8); }

TEST_CASE(over_a_file) { run("file-scratch", 4, operations() / 64); }
