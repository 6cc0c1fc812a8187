/* sync.c - umem/connect.h: umem_sync_to and umem_sync_from. The safe forms are in safe.c. */
#include "contract.h"

enum { nbytes = 6000 };

/* Works on the paired address, then on the first, and brings the other up to date each time. */
PAIR(both_sides_can_be_brought_up_to_date) {
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  uintptr_t from = new_filled_block(src->ctx, nbytes, 1);
  uintptr_t to = umem_connect(src->ctx, from, nbytes, dst->ctx, 16);

  fill_bytes(bytes, nbytes, 2);
  put(dst->ctx, to, bytes, nbytes);
  assert_ok(umem_sync_from(src->ctx, from, dst->ctx, to, nbytes));
  settle(src->ctx, dst->ctx);
  assert_holds(src->ctx, from, bytes, nbytes);

  fill_bytes(bytes, nbytes, 3);
  put(src->ctx, from, bytes, nbytes);
  assert_ok(umem_sync_to(src->ctx, from, dst->ctx, to, nbytes));
  settle(src->ctx, dst->ctx);
  assert_holds(dst->ctx, to, bytes, nbytes);

  assert_ok(umem_disconnect(src->ctx, from, dst->ctx, to, 16));
  umem_free(src->ctx, from);
}

PAIR(a_part_can_be_brought_up_to_date) {
  uintptr_t from = own_filled_block(src->ctx, nbytes, 1);
  uintptr_t to = own_filled_block(dst->ctx, nbytes, 2);
  SCOPED(free_bytes) unsigned char *expected = new_bytes(nbytes, 2), *source = new_bytes(nbytes, 1);
  assert_ok(umem_sync_to(src->ctx, from, dst->ctx, to, 100));
  assert_ok(umem_sync_to(src->ctx, from + 4000, dst->ctx, to + 3000, 1000));
  assert_ok(umem_sync_from(dst->ctx, to + 5990, src->ctx, from + 1, 10));
  settle(src->ctx, dst->ctx);
  memcpy(expected, source, 100);
  memcpy(expected + 3000, source + 4000, 1000);
  memcpy(expected + 5990, source + 1, 10);
  assert_holds(dst->ctx, to, expected, nbytes);
  assert_holds(src->ctx, from, source, nbytes);
}

SINGLE(nothing_moves_in_one_memory) {
  uintptr_t adr = own_filled_block(ctx, nbytes, 1);
  size_t before = records_of(place).moves;
  assert_ok(umem_sync_to(ctx, adr, ctx, adr, nbytes));
  assert_ok(umem_sync_from(ctx, adr, ctx, adr, nbytes));
  assert_ok(umem_sync_to_safe(ctx, adr, nbytes, ctx, adr, nbytes, nbytes));
  assert_ok(umem_sync_from_safe(ctx, adr, nbytes, ctx, adr, nbytes, nbytes));
  assert_int_equal(records_of(place).moves, before);
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  assert_holds(ctx, adr, bytes, nbytes);
}

SINGLE(two_addresses_of_one_context_are_two) {
  uintptr_t one = own_filled_block(ctx, nbytes, 1), other = own_filled_block(ctx, nbytes, 2);
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  assert_ok(umem_sync_to(ctx, one, ctx, other, nbytes));
  assert_ok(umem_synchronize(ctx));
  assert_holds(ctx, other, bytes, nbytes);
}

PAIR(no_bytes_are_no_op_anywhere) {
  assert_ok(umem_sync_to(src->ctx, umem_null(src->ctx), dst->ctx, umem_null(dst->ctx), 0));
  assert_ok(umem_sync_from(dst->ctx, 12345, src->ctx, UINTPTR_MAX, 0));
}

PAIR(has_the_errors_of_copies) {
  uintptr_t from = own_filled_block(src->ctx, 100, 1), to = own_filled_block(dst->ctx, 100, 2);
  assert_int_equal(umem_sync_to(src->ctx, umem_null(src->ctx), dst->ctx, to, 10), umemValueError);
  expect_failure(src->ctx, umemValueError);
  expect_status(dst->ctx, umem_sync_from(dst->ctx, umem_null(dst->ctx), src->ctx, from, 10),
                umemValueError);
  assert_filled(dst->ctx, to, 100, 2);
}

/* Where nothing would move. */
SINGLE(has_the_errors_of_copies_in_one_memory) {
  uintptr_t null = umem_null(ctx);
  expect_status(ctx, umem_sync_to(ctx, null, ctx, null, 10), umemValueError);
  expect_status(ctx, umem_sync_from_safe(ctx, null, 10, ctx, null, 10, 10), umemValueError);
  expect_status(ctx, umem_sync_from(ctx, 4096, ctx, 4096, SIZE_MAX), umemValueError);
}

SUITE(sync)
