/* aligned.c - umem/memory.h: umem_aligned_alloc, umem_aligned_origin, umem_aligned_free. */
#include "contract.h"

static size_t const largest_alignment = (size_t)1 << 21;

static uintptr_t new_aligned_block(umemVirtual *ctx, size_t alignment, size_t size) {
  uintptr_t adr = umem_aligned_alloc(ctx, alignment, size);
  assert_block(ctx, adr);
  assert_true(adr % alignment == 0);
  return adr;
}

SINGLE(honours_every_power_of_two) {
  unsigned char bytes[777];
  for (size_t alignment = 1; alignment <= largest_alignment; alignment *= 2) {
    uintptr_t adr = new_aligned_block(ctx, alignment, sizeof bytes);
    fill_bytes(bytes, sizeof bytes, alignment);
    put(ctx, adr, bytes, sizeof bytes);
    assert_holds(ctx, adr, bytes, sizeof bytes);
    assert_true(umem_aligned_origin(ctx, adr) <= adr);
    umem_aligned_free(ctx, adr);
  }
}

SINGLE(honours_it_for_every_size) {
  for (size_t const *size = test_sizes(); *size; size++) {
    uintptr_t adr = new_aligned_block(ctx, 8192, *size);
    unsigned char *bytes = new_bytes(*size, *size);
    put(ctx, adr, bytes, *size);
    assert_holds(ctx, adr, bytes, *size);
    free(bytes);
    umem_free_aligned(ctx, adr);
  }
}

/* Enough at once for the table of the default method to grow, freed in another order. */
SINGLE(keeps_many_blocks_apart) {
  enum { count = 200, nbytes = 50 };
  uintptr_t adr[count], origin[count];
  unsigned char bytes[nbytes];
  for (size_t i = 0; i < count; i++) {
    adr[i] = new_aligned_block(ctx, (size_t)1 << i % 11, nbytes);
    origin[i] = umem_aligned_origin(ctx, adr[i]);
    fill_bytes(bytes, nbytes, i);
    put(ctx, adr[i], bytes, nbytes);
  }
  for (size_t k = 0; k < count; k++) {
    size_t i = k * 77 % count; /* 77 and 200 have no common divisor: each once */
    assert_filled(ctx, adr[i], nbytes, i);
    assert_true(umem_aligned_origin(ctx, adr[i]) == origin[i]);
    umem_aligned_free(ctx, adr[i]);
  }
}

/* An address that was aligned once may begin an ordinary block later. */
SINGLE(forgets_freed_blocks) {
  enum { count = 300 };
  uintptr_t adr[count];
  uintptr_t first = new_block(ctx, 16), aligned = new_aligned_block(ctx, 4096, 16);
  umem_aligned_free(ctx, aligned);
  for (size_t i = 0; i < count; i++) adr[i] = new_aligned_block(ctx, 1, 16);
  for (size_t i = 0; i < count; i++) assert_true(umem_aligned_origin(ctx, adr[i]) == adr[i]);
  for (size_t i = 0; i < count; i++) umem_aligned_free(ctx, adr[i]);
  umem_free(ctx, first);
}

SINGLE(zero_bytes_are_one_aligned_byte) {
  uintptr_t one = new_aligned_block(ctx, 256, 0), other = new_aligned_block(ctx, 256, 0);
  assert_true(one != other);
  put(ctx, one, "1", 1);
  put(ctx, other, "2", 1);
  assert_holds(ctx, one, "1", 1);
  umem_aligned_free(ctx, one);
  umem_aligned_free(ctx, other);
}

SINGLE(other_alignments_are_refused) {
  size_t const wrong[] = {0, 3, 6, 24, 4095, 4097, SIZE_MAX, SIZE_MAX / 2};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    expect_no_block(ctx, umem_aligned_alloc(ctx, wrong[i], 100), umemValueError);
  }
}

/* The 2018 library added up, wrapped round, and said OK. */
SINGLE(sums_that_overflow_are_memory_errors) {
  size_t const pairs[][2] = {{16, SIZE_MAX},
                             {4096, SIZE_MAX - 4095},
                             {1, SIZE_MAX},
                             {largest_alignment, SIZE_MAX - 100},
                             {4096, SIZE_MAX - 4096},
                             {64, SIZE_MAX / 2},
                             {(size_t)1 << 63, (size_t)1 << 63}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    expect_no_block(ctx, umem_aligned_alloc(ctx, pairs[i][0], pairs[i][1]), umemMemoryError);
  }
}

/* Huge ones are honoured or refused, never ignored. (valgrind itself gives up at 32 MiB.) */
/* Between the moderate ones and those that exceed all memory lie some that a context which touches
 * its blocks could only serve by using up the machine's. */
SINGLE(huge_alignments_are_not_ignored) {
  int end = test_is_small() ? 24 : 63; /* valgrind's allocator dies of larger ones */
  for (int shift = 22; shift < end; shift = shift == 29 ? 44 : shift + 1) {
    uintptr_t adr = umem_aligned_alloc(ctx, (size_t)1 << shift, 16);
    if (adr == umem_null(ctx)) {
      expect_failure(ctx, umemMemoryError);
    } else {
      assert_true(adr % ((size_t)1 << shift) == 0);
      umem_aligned_free(ctx, adr);
    }
  }
}

SINGLE(null_has_no_origin) {
  expect_no_block(ctx, umem_aligned_origin(ctx, umem_null(ctx)), umemValueError);
}

SINGLE_WITH(a_second_aligned_free_is_refused, backendChecksFrees) {
  uintptr_t other = new_aligned_block(ctx, 4096, 100);
  uintptr_t adr = new_aligned_block(ctx, 4096, 100);
  put(ctx, other, "kept", 4);
  umem_aligned_free(ctx, adr);
  umem_aligned_free(ctx, adr);
  expect_failure(ctx, umemValueError);
  umem_aligned_free(ctx, other + 1);
  expect_failure(ctx, umemValueError);
  assert_holds(ctx, other, "kept", 4);
  umem_aligned_free(ctx, other);
}

SUITE(aligned)
