/* memory.c - umem/memory.h: umem_alloc, umem_calloc, umem_free. */
#include "contract.h"

/* Sizes that no memory has. */
static size_t const impossible[] = {SIZE_MAX,     SIZE_MAX - 1,     SIZE_MAX - 15, SIZE_MAX - 4096,
                                    SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX / 4};
enum { impossible_count = sizeof impossible / sizeof *impossible };

static bool is_aligned(umemVirtual *ctx, uintptr_t adr) { return adr % ctx->alignment == 0; }

SINGLE(allocates_every_size) {
  for (size_t const *size = test_sizes(); *size; size++) {
    uintptr_t adr = new_filled_block(ctx, *size, *size);
    unsigned char *bytes = new_bytes(*size, *size);
    assert_true(is_aligned(ctx, adr));
    assert_holds(ctx, adr, bytes, *size);
    free(bytes);
    umem_free(ctx, adr);
  }
}

SINGLE(blocks_are_disjoint) {
  enum { count = 40 };
  uintptr_t adr[count];
  unsigned char *bytes[count];
  for (size_t i = 0; i < count; i++) adr[i] = new_filled_block(ctx, 1 + 37 * i, i);
  for (size_t i = 0; i < count; i += 2) umem_free(ctx, adr[i]);
  for (size_t i = 0; i < count; i += 2) adr[i] = new_filled_block(ctx, 1 + 37 * i, i);
  for (size_t i = 0; i < count; i++) {
    bytes[i] = new_bytes(1 + 37 * i, i);
    assert_true(is_aligned(ctx, adr[i]));
    assert_holds(ctx, adr[i], bytes[i], 1 + 37 * i);
    free(bytes[i]);
    umem_free(ctx, adr[i]);
  }
}

SINGLE(library_aligns_to_16_at_least) {
  uintptr_t adr = own_block(ctx, 1);
  uintptr_t next = own_block(ctx, 1);
  assert_true(adr % 16 == 0 && next % 16 == 0);
}

SINGLE(zero_bytes_are_one_byte) {
  uintptr_t blocks[] = {new_block(ctx, 0), new_block(ctx, 0), umem_calloc(ctx, 0, 8),
                        umem_calloc(ctx, 8, 0)};
  unsigned char const numbers[] = {1, 2, 0, 0};
  put(ctx, blocks[0], &numbers[0], 1);
  put(ctx, blocks[1], &numbers[1], 1);
  for (size_t i = 0; i < 4; i++) {
    assert_block(ctx, blocks[i]);
    assert_holds(ctx, blocks[i], &numbers[i], 1);
    for (size_t k = 0; k < i; k++) assert_true(blocks[i] != blocks[k]);
  }
  for (size_t i = 0; i < 4; i++) umem_free(ctx, blocks[i]);
}

SINGLE(impossible_sizes_are_memory_errors) {
  uintptr_t kept = new_filled_block(ctx, 100, 1);
  for (size_t i = 0; i < impossible_count; i++) {
    expect_no_block(ctx, umem_alloc(ctx, impossible[i]), umemMemoryError);
    expect_no_block(ctx, umem_calloc(ctx, impossible[i], 1), umemMemoryError);
    expect_no_block(ctx, umem_calloc(ctx, 1, impossible[i]), umemMemoryError);
  }
  assert_filled(ctx, kept, 100, 1);
  uintptr_t after = new_filled_block(ctx, 100, 2);
  FREE(ctx, after, kept);
}

/* Less than any address space, more than the memory, the disk or the GPU: a context that granted it
 * would take what others need, and then the kernel ends programs. */
static void expect_no_room(umemVirtual *ctx, uintptr_t kept, size_t nbytes) {
  expect_no_block(ctx, umem_alloc(ctx, nbytes), umemMemoryError);
  expect_no_block(ctx, umem_calloc(ctx, nbytes / 8, 8), umemMemoryError);
  expect_no_block(ctx, umem_aligned_alloc(ctx, 4096, nbytes), umemMemoryError);
  expect_no_block(ctx, umem_realloc(ctx, kept, 100, nbytes), umemMemoryError);
}

SINGLE(more_than_is_left_is_refused) {
  size_t const large[] = {(size_t)1 << 40, (size_t)1 << 44, (size_t)1 << 62};
  umemInfo info = UMEM_INFO_INIT;
  umem_get_info(ctx, &info);
  unsigned char bytes[100];
  fill_bytes(bytes, 100, 1);
  uintptr_t kept = new_filled_block(ctx, 100, 1);
  /* qemu has a record of each page of a mapping, also where nothing is in it. */
  for (size_t i = setting_qemu() ? 2 : 0; i < sizeof large / sizeof *large; i++)
    if (info.available < large[i] || large[i] >> 62) expect_no_room(ctx, kept, large[i]);
  assert_holds(ctx, kept, bytes, 100);
  umem_free(ctx, new_filled_block(ctx, test_large_size(), 2));
  umem_free(ctx, kept);
}

static bool is_zero(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  SCOPED_BYTES(unsigned char, zeros, nbytes);
  return holds(ctx, adr, zeros, nbytes);
}

static void expect_zeros(umemVirtual *ctx, size_t nmemb, size_t size) {
  uintptr_t adr = umem_calloc(ctx, nmemb, size);
  assert_block(ctx, adr);
  assert_true(is_aligned(ctx, adr));
  assert_true(is_zero(ctx, adr, nmemb * size));
  umem_free(ctx, adr);
}

SINGLE(calloc_reads_as_zero) {
  for (size_t const *size = test_sizes(); *size; size++) expect_zeros(ctx, *size, 1);
  expect_zeros(ctx, 33, 31);
}

/* Whatever stood there before. */
SINGLE(calloc_zeroes_used_memory) {
  for (size_t const *size = test_sizes(); *size; size++) {
    umem_free(ctx, new_filled_block(ctx, *size, 7));
    expect_zeros(ctx, 1, *size);
  }
}

SINGLE(calloc_checks_the_product) {
  size_t const half = (size_t)1 << 32;
  size_t const pairs[][2] = {{SIZE_MAX, 2},    {2, SIZE_MAX},         {half, half},
                             {half + 1, half}, {SIZE_MAX / 2 + 2, 2}, {SIZE_MAX / 3 + 2, 3}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    expect_no_block(ctx, umem_calloc(ctx, pairs[i][0], pairs[i][1]), umemMemoryError);
}

SINGLE(free_ignores_null) {
  uint64_t before = umem_thread_failures();
  umem_free(ctx, umem_null(ctx));
  umem_aligned_free(ctx, umem_null(ctx));
  umem_free_aligned(ctx, umem_null(ctx));
  assert_true(umem_thread_failures() == before);
}

/* That this free is refused, as the count of failures alone shows, too. */
static void expect_refused_free(umemVirtual *ctx, uintptr_t adr) {
  uint64_t before = umem_thread_failures();
  umem_free(ctx, adr);
  assert_true(umem_thread_failures() > before);
  expect_failure(ctx, umemValueError);
}

SINGLE_WITH(frees_of_what_is_no_block_are_refused, backendChecksFrees) {
  uintptr_t adr = new_filled_block(ctx, 10000, 1), other = new_filled_block(ctx, 10000, 2);
  expect_refused_free(ctx, adr + 1);
  expect_refused_free(ctx, adr + 4096);
  expect_refused_free(ctx, adr + 9999);
  expect_refused_free(ctx, other + ((uintptr_t)1 << 40));
  expect_refused_free(ctx, UINTPTR_MAX - 1);
  expect_refused_free(ctx, (uintptr_t)1 << 63);
  umem_free(ctx, other);
  expect_refused_free(ctx, other);
  expect_refused_free(ctx, other);
  unsigned char *bytes = new_bytes(10000, 1);
  assert_holds(ctx, adr, bytes, 10000);
  free(bytes);
  umem_free(ctx, adr);
  expect_refused_free(ctx, adr);
}

/* The 2018 library took an error of an earlier system call for its own. */
SINGLE(a_stale_errno_fails_nothing) {
  int const stale[] = {EINTR, ENOMEM, ENOSPC, EIO, EINVAL, ERANGE};
  unsigned char bytes[64];
  for (size_t i = 0; i < sizeof stale / sizeof *stale; i++) {
    errno = stale[i];
    uintptr_t adr = new_block(ctx, 100);
    errno = stale[i];
    assert_ok(umem_set(ctx, adr, 1, 100));
    errno = stale[i];
    assert_ok(umem_copy_to(ctx, adr, &test_host, (uintptr_t)bytes, 64));
    errno = stale[i];
    assert_ok(umem_synchronize(ctx));
    errno = stale[i];
    assert_ok(umem_copy_from(ctx, adr, &test_host, (uintptr_t)bytes, 64));
    errno = stale[i];
    assert_ok(umem_synchronize(ctx));
    errno = stale[i];
    adr = umem_realloc(ctx, adr, 100, 5000);
    assert_block(ctx, adr);
    errno = stale[i];
    if (lasts(place)) assert_ok(umem_flush(ctx));
    errno = stale[i];
    assert_ok(umem_trim(ctx, 0));
    errno = stale[i];
    umem_free(ctx, adr);
    assert_true(umem_is_ok(ctx));
  }
}

SUITE(memory)
