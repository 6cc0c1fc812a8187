/* order.c - umem/context.h: order and durability. */
#include "contract.h"

#include "core/context.h"
#include "fake/fake.h"

SINGLE(can_always_be_asked) {
  unsigned char bytes[3000];
  fill_bytes(bytes, sizeof bytes, 1);
  uintptr_t gone = new_filled_block(ctx, 100000, 2), adr = new_filled_block(ctx, sizeof bytes, 1);
  umem_free(ctx, gone);
  size_t const keeps[] = {SIZE_MAX, 4096, 1, 0};
  for (size_t i = 0; i < 4; i++) {
    assert_ok(umem_synchronize(ctx));
    if (lasts(place)) assert_ok(umem_flush(ctx));
    assert_ok(umem_trim(ctx, keeps[i]));
    assert_ok(umem_wait(ctx, ctx));
    assert_holds(ctx, adr, bytes, sizeof bytes);
  }
  umem_free(ctx, adr);
  assert_ok(umem_trim(ctx, 0));
  adr = new_filled_block(ctx, 200000, 3); /* what was given back is there again */
  umem_free(ctx, adr);
}

/* Nobody has begun to record the work of these queues, which is all that can keep others from
 * waiting. */
SINGLE(no_work_is_recorded_for_later) {
  uint64_t before = umem_thread_failures();
  assert_false(umem_is_captured(ctx));
  uintptr_t adr = new_filled_block(ctx, 1000, 1);
  assert_false(umem_is_captured(ctx));
  umem_free(ctx, adr);
  assert_false(umem_is_captured(ctx));
  assert_true(umem_thread_failures() == before);
  assert_int_equal(umem_get_status(ctx), umemOK);
}

PAIR(contexts_wait_for_each_other) {
  assert_ok(umem_wait(src->ctx, dst->ctx));
  assert_ok(umem_wait(dst->ctx, src->ctx));
  assert_ok(umem_wait(src->ctx, dst->ctx));
}

/* A buffer goes from queue to queue without the host waiting in between. */
PAIR(wait_hands_a_buffer_on) {
  enum { nbytes = 10000 };
  uintptr_t from = own_filled_block(src->ctx, nbytes, 1),
            to = new_filled_block(dst->ctx, nbytes, 2);
  SCOPED(free_bytes) unsigned char *buffer = new_bytes(nbytes, 3), *expected = new_bytes(nbytes, 1);
  assert_ok(umem_copy_to(src->ctx, from, &test_host, (uintptr_t)buffer, nbytes));
  assert_ok(umem_wait(dst->ctx, src->ctx));
  assert_ok(umem_copy_from(dst->ctx, to, &test_host, (uintptr_t)buffer, nbytes));
  assert_ok(umem_wait(src->ctx, dst->ctx));
  assert_ok(umem_set(src->ctx, from, 0x11, nbytes));
  assert_ok(umem_copy_to(src->ctx, from, &test_host, (uintptr_t)buffer, nbytes));
  settle(src->ctx, dst->ctx);
  assert_holds(dst->ctx, to, expected, nbytes);
  memset(expected, 0x11, nbytes);
  assert_memory_equal(buffer, expected, nbytes);
  umem_free(dst->ctx, to);
}

/* Copies 1000 items of 4 bytes: every second one, or those of a plain run. */
static void copy_in_order(umemVirtual *src, uintptr_t from, umemVirtual *dst, uintptr_t to,
                          bool strided) {
  size_t const extents[] = {1000};
  ptrdiff_t const src_strides[] = {strided ? 8 : 4}, dst_strides[] = {strided ? 8 : 4};
  umemLayout layout = {sizeof layout, 4, 1, extents, src_strides, dst_strides};
  assert_ok(umem_copy_strided(src, from, dst, to, &layout));
}

/* What was queued on either side before a copy is done before it. */
PAIR(a_copy_comes_after_earlier_work) {
  enum { nbytes = 8000 };
  unsigned char expected[nbytes];
  uintptr_t from = own_block(src->ctx, nbytes), to = own_block(dst->ctx, nbytes);
  for (int strided = 0; strided < 2; strided++) {
    assert_ok(umem_set(src->ctx, from, 0x11 + strided, nbytes));
    assert_ok(umem_set(dst->ctx, to, 0x22 + strided, nbytes));
    copy_in_order(src->ctx, from, dst->ctx, to, strided);
    settle(src->ctx, dst->ctx);
    for (int i = 0; i < nbytes; i++)
      expected[i] =
          (unsigned char)((strided ? i % 8 < 4 : i < 4000) ? 0x11 + strided : 0x22 + strided);
    assert_holds(dst->ctx, to, expected, nbytes);
  }
}

/* What is queued on either side after a copy is done after it. */
PAIR(a_copy_comes_before_later_work) {
  enum { nbytes = 8000 };
  unsigned char expected[nbytes], found[nbytes];
  bool src_waits = !(src->ctx->capabilities & umemOrdered); /* it has no queue to be later in */
  bool dst_waits = !(dst->ctx->capabilities & umemOrdered);
  uintptr_t from = own_block(src->ctx, nbytes), to = own_block(dst->ctx, nbytes);
  for (int strided = 0; strided < 2; strided++) {
    assert_ok(umem_set(src->ctx, from, 0x11, nbytes));
    assert_ok(umem_set(dst->ctx, to, 0x22, nbytes));
    settle(src->ctx, dst->ctx);
    copy_in_order(src->ctx, from, dst->ctx, to, strided);
    if (src_waits) assert_ok(umem_wait(src->ctx, dst->ctx));
    if (dst_waits) assert_ok(umem_wait(dst->ctx, src->ctx));
    assert_ok(umem_set(src->ctx, from, 0x33, nbytes));
    assert_ok(umem_copy_to(dst->ctx, to, &test_host, (uintptr_t)found, nbytes));
    assert_ok(umem_synchronize(dst->ctx));
    for (int i = 0; i < nbytes; i++) expected[i] = (strided ? i % 8 < 4 : i < 4000) ? 0x11 : 0x22;
    assert_memory_equal(found, expected, nbytes);
    settle(src->ctx, dst->ctx);
  }
}

/* Work on one context is done in the order of the calls, and all of it by umem_synchronize. */
SINGLE(work_is_done_in_order) {
  enum { nbytes = 2000 };
  SCOPED(free_bytes) unsigned char *first = new_bytes(nbytes, 1), *second = new_bytes(nbytes, 2);
  SCOPED(free_bytes) unsigned char *third = malloc(nbytes);
  uintptr_t a = own_block(ctx, nbytes), b = own_block(ctx, nbytes);
  for (int round = 0; round < 30; round++) {
    assert_ok(umem_copy_from(ctx, a, &test_host, (uintptr_t)first, nbytes));
    assert_ok(umem_copy_to(ctx, a, ctx, b, nbytes));
    assert_ok(umem_copy_from(ctx, a, &test_host, (uintptr_t)second, nbytes));
    assert_ok(umem_set(ctx, a, round, 10));
    assert_ok(umem_copy_to(ctx, a, ctx, b, 5));
    assert_ok(umem_copy_to(ctx, b, &test_host, (uintptr_t)third, nbytes));
    assert_ok(umem_set(ctx, b, 0xFF, nbytes));
  }
  assert_ok(umem_synchronize(ctx));
  memset(first, 29, 5);
  assert_memory_equal(third, first, nbytes);
}

/* Blocks are freed behind the work that uses them. */
SINGLE(a_free_waits_for_its_turn) {
  enum { nbytes = 5000 };
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1), *found = calloc(nbytes, 1);
  uintptr_t adr = new_block(ctx, nbytes);
  assert_ok(umem_copy_from(ctx, adr, &test_host, (uintptr_t)bytes, nbytes));
  assert_ok(umem_copy_to(ctx, adr, &test_host, (uintptr_t)found, nbytes));
  umem_free(ctx, adr);
  uintptr_t other = new_block(ctx, nbytes);
  assert_ok(umem_set(ctx, other, 0, nbytes));
  assert_ok(umem_synchronize(ctx));
  assert_memory_equal(found, bytes, nbytes);
  umem_free(ctx, other);
}

PAIR(connect_waits) {
  enum { nbytes = 5000 };
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  uintptr_t from = new_block(src->ctx, nbytes);
  assert_ok(umem_copy_from(src->ctx, from, &test_host, (uintptr_t)bytes, nbytes));
  uintptr_t to = umem_connect(src->ctx, from, nbytes, dst->ctx, 64);
  fill_bytes(bytes, nbytes, 2); /* nobody reads it any more */
  assert_ok(umem_set(src->ctx, from, 0, nbytes));
  assert_ok(umem_disconnect(src->ctx, from, dst->ctx, to, 64));
  fill_bytes(bytes, nbytes, 1);
  uintptr_t again = umem_connect(src->ctx, from, nbytes, dst->ctx, 64);
  memset(bytes, 0, nbytes);
  assert_holds(dst->ctx, again, bytes, nbytes);
  assert_ok(umem_disconnect(src->ctx, from, dst->ctx, again, 64));
  umem_free(src->ctx, from);
}

/* Also where nothing needs to be copied. */
SINGLE(connect_waits_in_one_memory) {
  enum { nbytes = 5000 };
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 1);
  uintptr_t adr = new_block(ctx, nbytes);
  assert_ok(umem_copy_from(ctx, adr, &test_host, (uintptr_t)bytes, nbytes));
  assert_true(umem_connect(ctx, adr, nbytes, ctx, 1) == adr);
  fill_bytes(bytes, nbytes, 2); /* nobody reads it any more */
  assert_ok(umem_copy_to(ctx, adr, &test_host, (uintptr_t)bytes, nbytes));
  assert_ok(umem_disconnect(ctx, adr, ctx, adr, 1));
  SCOPED(free_bytes) unsigned char *expected = new_bytes(nbytes, 1);
  assert_memory_equal(bytes, expected, nbytes); /* it has been written */
  umem_free(ctx, adr);
}

/* What fails after its call has returned is reported by umem_synchronize. */
ONCE(synchronize_tells_of_queued_failures) {
  Backend const *row = backend_by_name("fake-async");
  umemVirtual *ctx = backend_open(row);
  assert_non_null(ctx);
  uintptr_t adr = new_block(ctx, 100);
  fake_async_fail_next((FakeAsync *)ctx, umemRuntimeError);
  assert_ok(umem_set(ctx, adr, 1, 100));
  assert_true(umem_is_ok(ctx));
  expect_status(ctx, umem_synchronize(ctx), umemRuntimeError);
  assert_ok(umem_synchronize(ctx));

  fake_async_fail_next((FakeAsync *)ctx, umemRuntimeError);
  assert_ok(umem_set(ctx, adr, 1, 100));
  assert_true(umem_connect(ctx, adr, 100, &test_host, 1) == 0); /* it waits, so it reports that */
  expect_failure(ctx, umemRuntimeError);
  umem_free(ctx, adr);
  backend_close(row, ctx);
}

SUITE(order)
