/* realloc.c - umem/memory.h: umem_realloc. */
#include "contract.h"

/* Resizes a block that holds the bytes of a seed, and checks those that are kept. */
static uintptr_t resized(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uintptr_t moved = umem_realloc(ctx, adr, old_size, new_size);
  assert_block(ctx, moved);
  assert_true(moved % ctx->alignment == 0);
  size_t kept = old_size < new_size ? old_size : new_size;
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(old_size, 5);
  assert_holds(ctx, moved, bytes, kept);
  return moved;
}

SINGLE(keeps_what_fits) {
  for (size_t const *from = test_sizes(); *from; from++)
    for (size_t const *to = test_sizes(); *to; to++) {
      if (*from > 8192 && *to > 8192 && *from >= *to) continue; /* slow, and shows nothing new */
      uintptr_t adr = resized(ctx, new_filled_block(ctx, *from, 5), *from, *to);
      unsigned char *bytes = new_bytes(*to, 6);
      put(ctx, adr, bytes, *to); /* all of the new size is there */
      assert_holds(ctx, adr, bytes, *to);
      free(bytes);
      umem_free(ctx, adr);
    }
}

SINGLE(leaves_other_blocks_alone) {
  unsigned char bytes[500];
  fill_bytes(bytes, 500, 9);
  uintptr_t low = own_filled_block(ctx, 500, 9);
  uintptr_t adr = new_filled_block(ctx, 300, 5);
  uintptr_t high = own_filled_block(ctx, 500, 9);
  adr = resized(ctx, adr, 300, 900);
  assert_ok(umem_set(ctx, adr, 0xFF, 900));
  settle(ctx, ctx);
  assert_holds(ctx, low, bytes, 500);
  assert_holds(ctx, high, bytes, 500);
  umem_free(ctx, adr);
}

SINGLE(of_null_allocates) {
  uintptr_t adr = umem_realloc(ctx, umem_null(ctx), 0, 100);
  assert_block(ctx, adr);
  assert_ok(umem_set(ctx, adr, 1, 100));
  umem_free(ctx, adr);
}

SINGLE(to_zero_is_to_one_byte) {
  uintptr_t adr = resized(ctx, new_filled_block(ctx, 100, 5), 100, 0);
  put(ctx, adr, "x", 1);
  adr = umem_realloc(ctx, adr, 0, 10);
  assert_block(ctx, adr);
  assert_ok(umem_set(ctx, adr, 1, 10));
  umem_free(ctx, adr);
}

SINGLE(of_a_calloc_block_works) {
  unsigned char const zeros[64] = {0};
  uintptr_t adr = umem_calloc(ctx, 8, 8);
  adr = umem_realloc(ctx, adr, 64, 6000);
  assert_holds(ctx, adr, zeros, 64);
  umem_free(ctx, adr);
}

SINGLE(a_failure_leaves_the_block) {
  size_t const impossible[] = {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2, SIZE_MAX / 4};
  unsigned char bytes[100];
  fill_bytes(bytes, 100, 5);
  uintptr_t adr = new_filled_block(ctx, 100, 5);
  for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
    expect_no_block(ctx, umem_realloc(ctx, adr, 100, impossible[i]), umemMemoryError);
    assert_holds(ctx, adr, bytes, 100);
  }
  umem_free(ctx, adr);
}

SINGLE_WITH(of_what_is_no_block_is_refused, backendChecksFrees) {
  uintptr_t adr = new_filled_block(ctx, 100, 5), dead = new_block(ctx, 100);
  unsigned char bytes[100];
  fill_bytes(bytes, 100, 5);
  umem_free(ctx, dead);
  uintptr_t nowhere =
      dead + ((uintptr_t)1 << 47); /* no process has memory there, whatever maps its heap */
  assert_true(umem_realloc(ctx, nowhere, 100, 200) == umem_null(ctx));
  expect_some_failure(ctx);
  assert_holds(ctx, adr, bytes, 100);
  umem_free(ctx, adr);
}

/* A size that the block cannot have. Whoever took it at its word would read what is behind the
 * block. */
SINGLE(a_size_larger_than_the_block_is_refused) {
  if (place->row->traits & backendTrustsSizes) return;
  size_t const wrong[] = {(size_t)1 << 30, (size_t)1 << 40, SIZE_MAX};
  size_t const sizes[] = {50, 100, 200, (size_t)1 << 22};
  unsigned char bytes[100];
  fill_bytes(bytes, 100, 5);
  uintptr_t adr = new_filled_block(ctx, 100, 5);
  size_t blocks = records_of(place).blocks;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      expect_no_block(ctx, umem_realloc(ctx, adr, wrong[i], sizes[k]), umemValueError);
      assert_int_equal(records_of(place).blocks, blocks);
      assert_holds(ctx, adr, bytes, 100);
    }
  umem_free(ctx, adr);
}

SUITE(realloc)
