/* connect.c - umem/connect.h: umem_connect and umem_disconnect. */
#include "contract.h"
#include "faulty.h"

enum { nbytes = 5000 };

/* Whether an address of src is one of dst as well, as umem/connect.h defines it. */
static bool one_memory(umemVirtual *src, umemVirtual *dst) {
  bool plain_host = dst->host == dst;
  bool shares = (src->capabilities & (umemCpuReadable | umemSeparate)) == umemCpuReadable;
  return umem_is_same_device(src, dst) || (plain_host && shares);
}

/* That the records tell of as many blocks as before. */
static void expect_blocks(Place const *place, BackendRecords before) {
  assert_int_equal(records_of(place).blocks, before.blocks);
}

PAIR(pairs_an_address) {
  size_t const alignments[] = {0, 1, 64, 4096, (size_t)1 << 20};
  uintptr_t from = umem_aligned_alloc(src->ctx, (size_t)1 << 20, nbytes);
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 4);
  put(src->ctx, from, bytes, nbytes);
  BackendRecords src_before = records_of(src), dst_before = records_of(dst);
  for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
    uintptr_t to = umem_connect(src->ctx, from, nbytes, dst->ctx, alignments[i]);
    assert_true(to != umem_null(dst->ctx));
    if (alignments[i]) assert_true(to % alignments[i] == 0);
    if (one_memory(src->ctx, dst->ctx)) assert_true(to == from);
    assert_holds(dst->ctx, to, bytes, nbytes);
    assert_ok(umem_disconnect(src->ctx, from, dst->ctx, to, alignments[i]));
    expect_blocks(dst, dst_before);
    expect_blocks(src, src_before);
    assert_holds(src->ctx, from, bytes, nbytes);
  }
  umem_aligned_free(src->ctx, from);
}

/* Two places with equal numbers for addresses are still two places. */
PAIR(a_new_block_is_a_copy) {
  if (one_memory(src->ctx, dst->ctx)) return; /* then there is no new block */
  uintptr_t from = new_filled_block(src->ctx, nbytes, 4);
  uintptr_t to = umem_connect(src->ctx, from, nbytes, dst->ctx, 64);
  assert_ok(umem_set(dst->ctx, to, 0, nbytes));
  assert_ok(umem_synchronize(dst->ctx));
  assert_ok(umem_disconnect(src->ctx, from, dst->ctx, to, 64));
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 4);
  assert_holds(src->ctx, from, bytes, nbytes);
  umem_free(src->ctx, from);
}

SINGLE(one_memory_needs_no_block) {
  uintptr_t adr = umem_aligned_alloc(ctx, 4096, nbytes);
  assert_ok(umem_set(ctx, adr, 1, nbytes));
  BackendRecords before = records_of(place);
  assert_true(umem_connect(ctx, adr, nbytes, ctx, 4096) == adr);
  assert_true(umem_connect(ctx, adr, nbytes, ctx, 0) == adr);
  assert_true(umem_connect(ctx, adr + 64, nbytes - 64, ctx, 64) == adr + 64);
  assert_ok(umem_disconnect(ctx, adr, ctx, adr, 4096));
  assert_ok(umem_disconnect(ctx, adr, ctx, adr, 0));
  assert_ok(umem_disconnect(ctx, adr + 64, ctx, adr + 64, 64));
  BackendRecords after = records_of(place);
  assert_int_equal(after.blocks, before.blocks);
  assert_int_equal(after.moves, before.moves);
  umem_aligned_free(ctx, adr);
}

SINGLE(too_little_alignment_makes_a_block) {
  unsigned char bytes[100];
  fill_bytes(bytes, 100, 4);
  uintptr_t adr = umem_aligned_alloc(ctx, 4096, 200);
  put(ctx, adr + 8, bytes, 100);
  BackendRecords before = records_of(place);
  uintptr_t other = umem_connect(ctx, adr + 8, 100, ctx, 64);
  assert_true(other != umem_null(ctx) && other != adr + 8);
  assert_true(other % 64 == 0);
  assert_holds(ctx, other, bytes, 100);
  assert_ok(umem_disconnect(ctx, adr + 8, ctx, other, 64));
  expect_blocks(place, before);
  umem_aligned_free(ctx, adr);
}

PAIR(no_bytes_can_be_connected) {
  uintptr_t from = new_block(src->ctx, 10);
  BackendRecords before = records_of(dst);
  uintptr_t to = umem_connect(src->ctx, from, 0, dst->ctx, 1);
  assert_true(to != umem_null(dst->ctx));
  assert_ok(umem_disconnect(src->ctx, from, dst->ctx, to, 1));
  expect_blocks(dst, before);
  umem_free(src->ctx, from);
}

/* ---- failures ---- */

/* That this connection fails, with the status on the context at fault and nothing left
 * allocated. */
static void expect_unconnected(Place const *src, uintptr_t src_adr, size_t size, Place const *dst,
                               size_t alignment, Place const *at_fault, umemStatusType type) {
  BackendRecords src_before = records_of(src), dst_before = records_of(dst);
  assert_true(umem_connect(src->ctx, src_adr, size, dst->ctx, alignment) == umem_null(dst->ctx));
  expect_failure(at_fault->ctx, type);
  expect_blocks(src, src_before);
  expect_blocks(dst, dst_before);
}

PAIR(null_is_not_connected) {
  expect_unconnected(src, umem_null(src->ctx), 10, dst, 1, src, umemValueError);
}

PAIR(wrong_alignments_are_not_connected) {
  uintptr_t from = own_filled_block(src->ctx, 100, 1);
  expect_unconnected(src, from, 100, dst, 3, dst, umemValueError);
  expect_unconnected(src, from, 100, dst, SIZE_MAX, dst, umemValueError);
}

/* The 2018 library returned an address all the same. */
PAIR(a_failing_source_is_not_connected) {
  if (!(src->row->traits & backendKeepsRecords) || one_memory(src->ctx, dst->ctx)) return;
  uintptr_t from = own_filled_block(src->ctx, 100, 1);
  expect_unconnected(src, from + ((uintptr_t)1 << 40), 100, dst, 1, src, umemIndexError);
  expect_unconnected(src, from + ((uintptr_t)1 << 40), 100, dst, 4096, src, umemIndexError);
}

PAIR(what_does_not_fit_is_not_connected) {
  if (one_memory(src->ctx, dst->ctx)) return;
  uintptr_t from = own_filled_block(src->ctx, 100, 1);
  size_t size = UINTPTR_MAX - from - 1; /* no overflow, and more than anybody has */
  if (size > SIZE_MAX / 4) size = SIZE_MAX / 4;
  expect_unconnected(src, from, size, dst, 64, dst, umemMemoryError);
}

PAIR(disconnect_ignores_null) {
  uintptr_t from = new_filled_block(src->ctx, 100, 1);
  assert_ok(umem_disconnect(src->ctx, from, dst->ctx, umem_null(dst->ctx), 64));
  assert_ok(umem_disconnect(src->ctx, from, dst->ctx, umem_null(dst->ctx), 1));
  assert_filled(src->ctx, from, 100, 1);
  umem_free(src->ctx, from);
}

/* As a failed connection returns it: whatever src_adr was. */
PAIR(disconnect_undoes_a_failed_connect) {
  uintptr_t null = umem_null(src->ctx);
  uintptr_t to = umem_connect(src->ctx, null, 10, dst->ctx, 1);
  expect_failure(src->ctx, umemValueError);
  assert_ok(umem_disconnect(src->ctx, null, dst->ctx, to, 1));
}

PAIR(a_second_disconnect_is_refused) {
  if (!(dst->row->traits & backendChecksFrees) || one_memory(src->ctx, dst->ctx)) return;
  uintptr_t from = new_filled_block(src->ctx, 100, 1);
  uintptr_t to = umem_connect(src->ctx, from, 100, dst->ctx, 4096);
  assert_ok(umem_disconnect(src->ctx, from, dst->ctx, to, 4096));
  expect_status(dst->ctx, umem_disconnect(src->ctx, from, dst->ctx, to, 4096), umemValueError);
  umem_free(src->ctx, from);
}

/* ---- disconnecting when something fails ---- */

/* Two places behind contexts that fail on purpose, and a connection between them. */
typedef struct Pair {
  Faulty src, dst;
  uintptr_t from, to;
} Pair;

static void fail_nothing(Faulty *ctx) { faulty_fail(ctx, 0, umemOK); }

static void open_pair(Pair *it, Place const *src, Place const *dst) {
  assert_true(faulty_open(&it->src, src->ctx));
  assert_true(faulty_open(&it->dst, dst->ctx));
  it->from = new_filled_block(src->ctx, nbytes, 4);
  it->to = umem_connect(&it->src, it->from, nbytes, &it->dst, 64);
  assert_true(it->to != umem_null(&it->dst));
  fail_nothing(&it->src);
  fail_nothing(&it->dst);
}

static void close_pair(Pair *it, Place const *src) {
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(nbytes, 4);
  assert_holds(src->ctx, it->from, bytes, nbytes);
  umem_free(src->ctx, it->from);
  DESTRUCT(&it->src, &it->dst);
}

static umemStatusType disconnect(Pair *it) {
  return umem_disconnect(&it->src, it->from, &it->dst, it->to, 64);
}

PAIR(a_failed_wait_frees_all_the_same) {
  for (int which = 1; which <= 3; which++) { /* the source's, the destination's, both */
    BackendRecords before = records_of(dst);
    Pair it;
    open_pair(&it, src, dst);
    if (which & 1) faulty_fail(&it.src, faultyWaits, umemRuntimeError);
    if (which & 2) faulty_fail(&it.dst, faultyWaits, umemRuntimeError);
    assert_int_equal(disconnect(&it), umemRuntimeError);
    assert_int_equal(umem_get_status(&it.src), which & 1 ? umemRuntimeError : umemOK);
    assert_int_equal(umem_get_status(&it.dst), which & 2 ? umemRuntimeError : umemOK);
    assert_int_equal(umem_thread_status(), umemRuntimeError);
    umem_thread_clear();
    fail_nothing(&it.src);
    fail_nothing(&it.dst);
    bool same = umem_is_same_device(src->ctx, dst->ctx) && it.to == it.from;
    if (!same && (dst->row->traits & backendChecksFrees)) {
      assert_int_equal(disconnect(&it), umemValueError);
      expect_some_failure(dst->ctx);
    }
    close_pair(&it, src);
    expect_blocks(dst, before);
  }
}

PAIR(a_refused_free_leaves_the_block) {
  BackendRecords before = records_of(dst);
  Pair it;
  open_pair(&it, src, dst);
  faulty_fail(&it.dst, faultyFrees, umemIOError);
  bool same = umem_is_same_device(src->ctx, dst->ctx) && it.to == it.from;
  if (!same) {
    assert_int_equal(disconnect(&it), umemIOError);
    assert_int_equal(umem_get_status(&it.src), umemOK);
    expect_failure(&it.dst.context.super, umemIOError);
    unsigned char *bytes = new_bytes(nbytes, 4);
    assert_holds(dst->ctx, it.to, bytes, nbytes);
    free(bytes);
  }
  fail_nothing(&it.dst);
  assert_ok(disconnect(&it));
  close_pair(&it, src);
  expect_blocks(dst, before);
}

static void expect_nothing_done(Pair *it) {
  assert_true(faulty_count(&it->src, faultyWaits | faultyFrees) == 0);
  assert_true(faulty_count(&it->dst, faultyWaits | faultyFrees) == 0);
}

PAIR(refused_arguments_do_nothing) {
  Pair it;
  open_pair(&it, src, dst);
  assert_int_equal(umem_disconnect(&it.src, it.from, &it.dst, it.to, 3), umemValueError);
  expect_failure(&it.dst.context.super, umemValueError);
  expect_status(NULL, umem_disconnect(NULL, it.from, &it.dst, it.to, 64), umemValueError);
  expect_status(NULL, umem_disconnect(&it.src, it.from, NULL, it.to, 64), umemValueError);
  assert_ok(umem_disconnect(&it.src, it.from, &it.dst, umem_null(&it.dst), 64));
  if (it.to == it.from && umem_is_same_device(src->ctx, dst->ctx)) {
    assert_int_equal(umem_disconnect(&it.src, it.from, &it.dst, it.to + 64, 64), umemValueError);
    expect_failure(&it.dst.context.super, umemValueError);
  }
  expect_nothing_done(&it);
  assert_ok(disconnect(&it));
  close_pair(&it, src);
}

SUITE(connect)
