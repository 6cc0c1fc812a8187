/* support.c - the helpers of contract.h. */
#include "contract.h"

#include <assert.h>

umemHost test_host;

/* ---- sizes ---- */

static bool case_is_small;

bool test_is_small(void) { return setting_small() || case_is_small; }

void test_make_small(bool small) { case_is_small = small; }

size_t test_large_size(void) { return test_is_small() ? (size_t)64 << 10 : (size_t)4 << 20; }

size_t const *test_sizes(void) {
  static size_t sizes[] = {1, 7, 4095, 4096, 4097, 0, 0, 0, 0};
  size_t large = test_large_size();
  sizes[5] = large - 1, sizes[6] = large, sizes[7] = large + 1;
  return sizes;
}

/* ---- bytes ---- */

/* SplitMix64 (G. Steele, D. Lea, C. Flood: "Fast Splittable Pseudorandom Number Generators",
 * 2014). */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

/* Random bytes are made once; what a seed stands for is a place among them. */
static unsigned char *random_bytes;
static size_t random_size;
enum { seed_distance = 1013, seed_count = 1021 };

static size_t largest_fill(void) { return 4 * test_large_size() + (1 << 20); }

/* A buffer of the main thread that is used again and again: fresh pages are slow. */
static unsigned char *scratch;
static size_t scratch_size;

bool support_open(void) {
  random_size = largest_fill() + seed_distance * seed_count;
  random_bytes = malloc(random_size);
  uint64_t state = 1;
  for (size_t i = 0; random_bytes && i + 8 <= random_size; i += 8) {
    uint64_t word = next_random(&state);
    memcpy(random_bytes + i, &word, 8);
  }
  return random_bytes && umemHost_ctor(&test_host) == umemOK;
}

void support_close(void) {
  umem_dtor(&test_host);
  free(random_bytes);
  free(scratch);
}

void fill_bytes(void *bytes, size_t nbytes, uint64_t seed) {
  assert(nbytes <= largest_fill());
  memcpy(bytes, random_bytes + seed % seed_count * seed_distance, nbytes);
}

unsigned char *new_bytes(size_t n, uint64_t seed) {
  unsigned char *bytes = malloc(n + !n);
  assert_non_null(bytes);
  fill_bytes(bytes, n, seed);
  return bytes;
}

void put(umemVirtual *ctx, uintptr_t adr, void const *bytes, size_t nbytes) {
  assert_ok(umem_copy_from(ctx, adr, &test_host, (uintptr_t)bytes, nbytes));
  assert_ok(umem_synchronize(ctx));
}

void get(umemVirtual *ctx, uintptr_t adr, void *bytes, size_t nbytes) {
  assert_ok(umem_copy_to(ctx, adr, &test_host, (uintptr_t)bytes, nbytes));
  assert_ok(umem_synchronize(ctx));
}

static unsigned char *take_scratch(size_t n) {
  if (n > scratch_size) {
    free(scratch);
    scratch = malloc(n);
    scratch_size = scratch ? n : 0;
  }
  assert_true(n <= scratch_size);
  return scratch;
}

bool holds(umemVirtual *ctx, uintptr_t adr, void const *bytes, size_t nbytes) {
  unsigned char *found = take_scratch(nbytes);
  if (nbytes) memset(found, ~*(unsigned char const *)bytes, nbytes);
  get(ctx, adr, found, nbytes);
  return !memcmp(found, bytes, nbytes);
}

bool is_filled(umemVirtual *ctx, uintptr_t adr, size_t nbytes, uint64_t seed) {
  unsigned char *bytes = new_bytes(nbytes, seed);
  bool same = holds(ctx, adr, bytes, nbytes);
  free(bytes);
  return same;
}

/* ---- blocks ---- */

uintptr_t new_block(umemVirtual *ctx, size_t nbytes) {
  uintptr_t adr = umem_alloc(ctx, nbytes);
  assert_block(ctx, adr);
  return adr;
}

uintptr_t new_filled_block(umemVirtual *ctx, size_t nbytes, uint64_t seed) {
  uintptr_t adr = new_block(ctx, nbytes);
  unsigned char *bytes = take_scratch(nbytes);
  fill_bytes(bytes, nbytes, seed);
  put(ctx, adr, bytes, nbytes);
  return adr;
}

static struct {
  umemVirtual *ctx;
  uintptr_t adr;
} own_blocks[16];
static size_t own_count;

static uintptr_t own(umemVirtual *ctx, uintptr_t adr) {
  assert_true(own_count < sizeof own_blocks / sizeof *own_blocks);
  own_blocks[own_count].ctx = ctx;
  return own_blocks[own_count++].adr = adr;
}

uintptr_t own_block(umemVirtual *ctx, size_t nbytes) { return own(ctx, new_block(ctx, nbytes)); }

uintptr_t own_filled_block(umemVirtual *ctx, size_t nbytes, uint64_t seed) {
  return own(ctx, new_filled_block(ctx, nbytes, seed));
}

void free_own_blocks(void) {
  while (own_count--) umem_free(own_blocks[own_count].ctx, own_blocks[own_count].adr);
  own_count = 0;
}

void forget_own_blocks(void) { own_count = 0; }

void settle(umemVirtual *src, umemVirtual *dst) {
  assert_ok(umem_synchronize(src));
  assert_ok(umem_synchronize(dst));
}

BackendRecords records_of(Place const *place) {
  return place->row->records ? place->row->records(place->ctx) : (BackendRecords){0};
}

/* ---- failures ---- */

umemStatusType expect_some_failure(umemVirtual *ctx) {
  umemStatusType type = umem_thread_status();
  assert_int_not_equal(type, umemOK);
  assert_string_not_equal(umem_thread_message(), "");
  if (ctx) {
    assert_int_equal(umem_get_status(ctx), type);
    assert_false(umem_is_ok(ctx));
    assert_string_not_equal(umem_get_message(ctx), "");
    assert_ok(umem_clear_status(ctx));
  }
  umem_thread_clear();
  return type;
}

void expect_failure(umemVirtual *ctx, umemStatusType type) {
  assert_string_equal(umem_get_status_name(umem_thread_status()), umem_get_status_name(type));
  expect_some_failure(ctx);
}

void expect_status(umemVirtual *ctx, umemStatusType status, umemStatusType type) {
  assert_int_equal(status, type);
  expect_failure(ctx, type);
}

void expect_no_block(umemVirtual *ctx, uintptr_t adr, umemStatusType type) {
  assert_true(adr == umem_null(ctx));
  expect_failure(ctx, type);
}
