/* copy.c - umem/copy.h: umem_copy_to and umem_copy_from. */
#include "contract.h"

typedef enum Direction { copyTo, copyFrom } Direction;

static umemStatusType copy(Direction direction, umemVirtual *src, uintptr_t src_adr,
                           umemVirtual *dst, uintptr_t dst_adr, size_t nbytes) {
  return direction == copyTo ? umem_copy_to(src, src_adr, dst, dst_adr, nbytes)
                             : umem_copy_from(dst, dst_adr, src, src_adr, nbytes);
}

/* Copies nbytes between offsets inside two blocks, and compares all bytes of both with what memcpy
 * makes. */
static void check_copy(Direction direction, umemVirtual *src, size_t src_offset, umemVirtual *dst,
                       size_t dst_offset, size_t nbytes) {
  size_t src_size = src_offset + nbytes + 33, dst_size = dst_offset + nbytes + 21;
  unsigned char *source = new_bytes(src_size, 1), *expected = new_bytes(dst_size, 2);
  uintptr_t from = new_block(src, src_size), to = new_block(dst, dst_size);
  put(src, from, source, src_size);
  put(dst, to, expected, dst_size);
  memcpy(expected + dst_offset, source + src_offset, nbytes);
  assert_ok(copy(direction, src, from + src_offset, dst, to + dst_offset, nbytes));
  settle(src, dst);
  assert_holds(dst, to, expected, dst_size);
  assert_holds(src, from, source, src_size);
  umem_free(src, from);
  umem_free(dst, to);
  free(source);
  free(expected);
}

PAIR(copies_every_size) {
  Direction direction = copyTo;
  for (size_t const *size = test_sizes(); *size; size++, direction = !direction)
    check_copy(direction, src->ctx, 0, dst->ctx, 0, *size);
}

PAIR(copies_at_any_offset) {
  size_t const offsets[] = {0, 1, 7, 4095, 4096, 10001};
  enum { count = sizeof offsets / sizeof *offsets };
  for (size_t i = 0; i < count; i++) {
    check_copy(copyTo, src->ctx, offsets[i], dst->ctx, offsets[count - 1 - i], 5000);
    check_copy(copyFrom, src->ctx, offsets[i], dst->ctx, offsets[(i + 2) % count], 3);
  }
}

/* Long enough for the route that reads ahead. */
PAIR(copies_many_chunks) {
  size_t nbytes = 2 * test_large_size() + 12345;
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  uintptr_t from = own_filled_block(src->ctx, nbytes, 1), to = own_block(dst->ctx, nbytes);
  assert_ok(umem_copy_to(src->ctx, from, dst->ctx, to, nbytes));
  settle(src->ctx, dst->ctx);
  assert_holds(dst->ctx, to, bytes, nbytes);
}

SINGLE(copies_inside_one_context) {
  for (size_t const *size = test_sizes(); *size; size++) check_copy(copyTo, ctx, 5, ctx, 9, *size);
  unsigned char bytes[200];
  fill_bytes(bytes, 200, 1);
  uintptr_t adr = own_filled_block(ctx, 200, 1);
  assert_ok(umem_copy_to(ctx, adr, ctx, adr + 100, 100));
  assert_ok(umem_synchronize(ctx));
  memcpy(bytes + 100, bytes, 100);
  assert_holds(ctx, adr, bytes, 200);
}

/* The test waits for nothing between these: a context that queues its work must keep its order. */
PAIR(a_chain_of_copies_keeps_its_order) {
  enum { nbytes = 3000 };
  SCOPED(free_bytes) unsigned char *first = new_bytes(nbytes, 1), *second = new_bytes(nbytes, 2);
  uintptr_t a = own_block(src->ctx, nbytes), b = new_block(dst->ctx, nbytes);
  uintptr_t c = own_block(src->ctx, nbytes);
  assert_ok(umem_copy_to(&test_host, (uintptr_t)first, src->ctx, a, nbytes));
  assert_ok(umem_copy_to(src->ctx, a, dst->ctx, b, nbytes));
  assert_ok(umem_wait(src->ctx, dst->ctx)); /* a may still be read */
  assert_ok(umem_copy_to(&test_host, (uintptr_t)second, src->ctx, a, nbytes));
  assert_ok(umem_copy_to(dst->ctx, b, src->ctx, c, nbytes));
  assert_ok(umem_wait(dst->ctx, src->ctx)); /* b may still be read, or written */
  assert_ok(umem_set(dst->ctx, b, 0, nbytes));
  umem_free(dst->ctx, b);
  settle(src->ctx, dst->ctx);
  assert_holds(src->ctx, a, second, nbytes);
  assert_holds(src->ctx, c, first, nbytes);
}

PAIR(no_bytes_are_no_op_anywhere) {
  uintptr_t const wild[] = {0, 1, 4096, UINTPTR_MAX, umem_null(src->ctx), umem_null(dst->ctx)};
  BackendRecords src_before = records_of(src), dst_before = records_of(dst);
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < 6; k++) {
      assert_ok(umem_copy_to(src->ctx, wild[i], dst->ctx, wild[k], 0));
      assert_ok(umem_copy_from(dst->ctx, wild[k], src->ctx, wild[i], 0));
    }
  assert_int_equal(records_of(src).moves, src_before.moves);
  assert_int_equal(records_of(dst).moves, dst_before.moves);
}

/* ---- refused copies: the status stands on the context at fault, and nothing has changed ---- */

enum { refused_size = 100 };

typedef struct Refusal {
  umemVirtual *src, *dst;
  uintptr_t from, to;
} Refusal;

static Refusal begin_refusal(Place const *src, Place const *dst) {
  return (Refusal){src->ctx, dst->ctx, new_filled_block(src->ctx, refused_size, 1),
                   new_filled_block(dst->ctx, refused_size, 2)};
}

static void end_refusal(Refusal const *refusal) {
  assert_filled(refusal->src, refusal->from, refused_size, 1);
  assert_filled(refusal->dst, refusal->to, refused_size, 2);
  umem_free(refusal->src, refusal->from);
  umem_free(refusal->dst, refusal->to);
}

static void expect_refused(Refusal const *refusal, uintptr_t src_adr, uintptr_t dst_adr,
                           size_t nbytes, umemVirtual *at_fault, umemStatusType type) {
  umemVirtual *faultless = at_fault == refusal->src ? refusal->dst : refusal->src;
  for (Direction direction = copyTo; direction <= copyFrom; direction++) {
    assert_int_equal(copy(direction, refusal->src, src_adr, refusal->dst, dst_adr, nbytes), type);
    expect_failure(at_fault, type);
    assert_true(umem_is_ok(faultless));
  }
}

PAIR(null_is_a_value_error) {
  SCOPED(end_refusal) Refusal it = begin_refusal(src, dst);
  expect_refused(&it, umem_null(it.src), it.to, 10, it.src, umemValueError);
  expect_refused(&it, it.from, umem_null(it.dst), 10, it.dst, umemValueError);
}

PAIR(overflow_is_a_value_error) {
  SCOPED(end_refusal) Refusal it = begin_refusal(src, dst);
  expect_refused(&it, UINTPTR_MAX - 5, it.to, 10, it.src, umemValueError);
  expect_refused(&it, it.from, UINTPTR_MAX - 5, 10, it.dst, umemValueError);
  expect_refused(&it, it.from + 50, it.to, SIZE_MAX - 20, it.src, umemValueError);
}

PAIR(writes_outside_of_a_block_are_index_errors) {
  Refusal it = begin_refusal(src, dst);
  uintptr_t dead = new_block(it.dst, refused_size);
  umem_free(it.dst, dead);
  if (!(dst->row->traits & backendKeepsRecords)) return end_refusal(&it);
  expect_refused(&it, it.from, it.to + ((uintptr_t)1 << 40), 10, it.dst, umemIndexError);
  expect_refused(&it, it.from, dead, 10, it.dst, umemIndexError);
  expect_refused(&it, it.from, it.to + refused_size - 1, refused_size, it.dst, umemIndexError);
  end_refusal(&it);
}

PAIR(reads_past_the_end_are_index_errors) {
  SCOPED(end_refusal) Refusal it = begin_refusal(src, dst);
  if (src->row->traits & backendKeepsRecords)
    expect_refused(&it, it.from + ((uintptr_t)1 << 40), it.to, 10, it.src, umemIndexError);
}

SUITE(copy)
