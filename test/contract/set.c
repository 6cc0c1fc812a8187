/* set.c - umem/memory.h: umem_set. */
#include "contract.h"

/* Sets a part of a block of size bytes and compares all of it with what memset makes. */
static void check_set(umemVirtual *ctx, size_t size, size_t offset, int c, size_t nbytes) {
  uintptr_t adr = new_filled_block(ctx, size, 3);
  SCOPED(free_bytes) unsigned char *expected = new_bytes(size, 3);
  memset(expected + offset, c, nbytes);
  assert_ok(umem_set(ctx, adr + offset, c, nbytes));
  assert_ok(umem_synchronize(ctx));
  assert_holds(ctx, adr, expected, size);
  umem_free(ctx, adr);
}

/* The 2018 library ignored the address on files. */
SINGLE(fills_exactly_its_range) {
  check_set(ctx, 1, 0, 0xAB, 1);
  check_set(ctx, 100, 0, 0xAB, 100);
  check_set(ctx, 100, 1, 0xAB, 98);
  check_set(ctx, 100, 99, 0, 1);
  check_set(ctx, 10000, 4095, 0xAB, 4097);
  check_set(ctx, 10000, 1, 0xAB, 1);
}

SINGLE(fills_every_size) {
  for (size_t const *size = test_sizes(); *size; size++)
    check_set(ctx, *size + 20, 10, 0x7E, *size);
}

SINGLE(takes_the_low_byte) {
  check_set(ctx, 50, 10, 0x1FF, 30);
  check_set(ctx, 50, 10, -1, 30);
  check_set(ctx, 50, 10, 0x12345678, 30);
  check_set(ctx, 50, 10, -256, 30);
}

SINGLE(no_bytes_are_no_op_anywhere) {
  BackendRecords before = records_of(place);
  assert_ok(umem_set(ctx, umem_null(ctx), 1, 0));
  assert_ok(umem_set(ctx, 0, 1, 0));
  assert_ok(umem_set(ctx, 12345, 1, 0));
  assert_ok(umem_set(ctx, UINTPTR_MAX, 1, 0));
  assert_int_equal(records_of(place).moves, before.moves);
}

SINGLE(null_and_overflow_are_value_errors) {
  uintptr_t adr = own_filled_block(ctx, 100, 1);
  uintptr_t const places[] = {umem_null(ctx), adr + 50, UINTPTR_MAX - 5, adr + 99};
  size_t const sizes[] = {1, SIZE_MAX, 100, SIZE_MAX - 50};
  for (size_t i = 0; i < 4; i++) {
    expect_status(ctx, umem_set(ctx, places[i], 9, sizes[i]), umemValueError);
  }
  assert_filled(ctx, adr, 100, 1);
}

SINGLE_WITH(outside_of_a_block_is_an_index_error, backendKeepsRecords) {
  uintptr_t adr = own_filled_block(ctx, 100, 1), dead = new_block(ctx, 5000);
  umem_free(ctx, dead);
  uintptr_t const places[] = {adr + 50, adr + ((uintptr_t)1 << 40), dead + 100, adr};
  size_t const sizes[] = {100000, 1, 10, 200000};
  for (size_t i = 0; i < 4; i++) {
    expect_status(ctx, umem_set(ctx, places[i], 9, sizes[i]), umemIndexError);
  }
  assert_filled(ctx, adr, 100, 1);
}

SUITE(set)
