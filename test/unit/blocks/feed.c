/* feed.c - the method copy_pieces (umem/virtual.h) of a context that is not umem's: what it gets,
 * and what becomes of what it does wrong. */
#include "passage.h"

enum {
  row = 256 << 10,
  rows = 8,
  nbytes = rows * row,
  in_all = 5,
  piece = 512 << 10,
  per_block = nbytes / piece
};

/* What the method does with the feed. */
typedef bool Carry(umemVirtual *ctx, umemVirtual *src, umemFeed *feed);

static Carry *carry;
static Gate from, place;
static struct umemVtbl vtbl;
static unsigned char array[in_all * nbytes];

static bool call_carry(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  return carry(ctx, src, feed);
}

static void open_feed(void **state) {
  set_up(state);
  gate_ctor(&from);
  gate_ctor(&place);
  vtbl = *place.super.vptr;
  vtbl.copy_pieces = call_carry;
  place.super.vptr = &vtbl;
  for (size_t i = 0; i < sizeof array; i++) array[i] = (unsigned char)(i / row + i % 13);
}

static void close_feed(void **state) {
  DESTRUCT(&place, &from);
  tear_down(state);
}

#define OPEN open_feed
#define CLOSE close_feed

static void begin_with(Carry *method, size_t depth) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  carry = method;
  options.source = (umemRows){&from, (uintptr_t)array, row, 0};
  options.count = in_all * rows;
  options.rows = rows;
  options.depth = depth;
  options.place = &place;
  begin(&options);
}

/* That a block is as it is in the array. */
static void check_block(size_t number) {
  assert_memory_equal((void *)block.adr, array + number * nbytes, nbytes);
}

static void copy(umemCopyPiece const *one) {
  memcpy((void *)one->dst_adr, (void const *)one->src_adr, one->nbytes);
}

/* ---- as it should be ---- */

static unsigned long calls, pieces;
static bool is_wrong; /* atomic, as are these counts */

/* With two pieces under way, as a device with two buffers has them. */
static bool carry_two(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCopyPiece one[2];
  unsigned count = 0, next_one = 0;
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  bool wrong = ctx != &place.super || src != &from.super;
  for (;;) {
    if (count < 2 && feed->next(feed, piece, &one[(next_one + count) % 2])) {
      umemCopyPiece const *got = &one[(next_one + count++) % 2];
      wrong |= got->nbytes == 0 || got->nbytes > piece || got->dst != ctx;
      continue;
    }
    if (wrong) __atomic_store_n(&is_wrong, true, __ATOMIC_RELAXED);
    if (!count) return true;
    feed->about(feed, &one[next_one]);
    copy(&one[next_one]);
    __atomic_fetch_add(&pieces, 1, __ATOMIC_RELAXED);
    feed->end(feed, &one[next_one], true);
    next_one = 1 - next_one;
    count--;
  }
}

TEST(the_method_gets_all_pieces) {
  for (size_t depth = 1; depth <= 3; depth++) {
    pieces = calls = 0;
    begin_with(carry_two, depth);
    assert_int_equal(pass_from(0, check_block), in_all);
    assert_ok(end());
    assert_true(calls > 0 && !is_wrong);
    assert_int_equal(pieces, in_all * per_block);
    assert_int_equal(gate_reads(&from), 0);
  }
}
TEST_AGAIN(one_thread, the_method_gets_all_pieces)

/* ---- a source for which it has no route ---- */

static bool refuse(umemVirtual *ctx UNUSED, umemVirtual *src UNUSED, umemFeed *feed UNUSED) {
  return false;
}

static unsigned long whole; /* copies of a block */

static bool count_whole(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                        uintptr_t dst_adr, umemLayout const *layout) {
  (void)ctx, (void)src, (void)src_adr, (void)dst, (void)dst_adr;
  if (layout->rank == 0 && layout->item_size == nbytes)
    __atomic_fetch_add(&whole, 1, __ATOMIC_RELAXED);
  return false;
}

/* Blocks are then copied whole: routes that are only for long copies are not lost. */
TEST(a_block_that_is_refused_is_one_copy) {
  for (size_t depth = 1; depth <= 3; depth++) {
    whole = 0;
    vtbl.copy_direct = count_whole;
    begin_with(refuse, depth);
    assert_int_equal(pass_from(0, check_block), in_all);
    assert_ok(end());
    assert_int_equal(whole, in_all);
  }
}
TEST_AGAIN(one_thread, a_block_that_is_refused_is_one_copy)

/* ---- failures ---- */

static bool fail_in_block_2(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCopyPiece one;
  (void)src;
  while (feed->next(feed, piece, &one)) {
    bool good = one.copy != 2;
    feed->about(feed, &one);
    if (good)
      copy(&one);
    else
      umemVirtual_fail(ctx, umemIOError, "the link is down");
    feed->end(feed, &one, good);
  }
  return true;
}

TEST(a_failure_names_its_block) {
  begin_with(fail_in_block_2, 2);
  assert_int_equal(pass_from(0, check_block), 2);
  expect_stop(umemIOError,
              "umemBlocks_next: reading block 2 of 5 (rows 16 to 23): the link is down");
}
TEST_AGAIN(one_thread, a_failure_names_its_block)

static bool fail_silently(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCopyPiece one;
  (void)ctx, (void)src;
  while (feed->next(feed, piece, &one)) feed->end(feed, &one, one.copy != 2);
  return true;
}

/* The program must not take an array that ends early for a whole one. */
TEST(a_piece_that_failed_without_a_failure_is_one) {
  begin_with(fail_silently, 2);
  while (next()) continue;
  expect_stop(umemRuntimeError, "umemBlocks_next: reading block 2 of 5 (rows 16 to 23)");
}

static bool fail_at_once(umemVirtual *ctx, umemVirtual *src UNUSED, umemFeed *feed UNUSED) {
  umemVirtual_fail(ctx, umemRuntimeError, "the link was never up");
  return true;
}

TEST(a_failure_before_all_pieces_names_none) {
  begin_with(fail_at_once, 2);
  assert_int_equal(pass_from(0, check_block), 0);
  expect_stop(umemRuntimeError, "umemBlocks_next: the link was never up");
}
TEST_AGAIN(one_thread, a_failure_before_all_pieces_names_none)

static bool is_held, has_failed; /* atomic */

static void set(bool *flag) { __atomic_store_n(flag, true, __ATOMIC_RELEASE); }

/* Not for ever: a method may be called by one thread alone. */
static void wait_until(bool const *flag) {
  for (int i = 0; i < seconds * 1000 && !__atomic_load_n(flag, __ATOMIC_ACQUIRE); i++) usleep(1000);
}

/* The thread with the first piece fails when that is done. Another one, which copies the rest of
 * its block, ends a piece after that. */
static bool fail_between_pieces(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCopyPiece one, rest;
  (void)src;
  if (!feed->next(feed, piece, &one)) return true;
  feed->about(feed, &one);
  copy(&one);
  if (one.src_adr == (uintptr_t)array) {
    wait_until(&is_held);
    feed->end(feed, &one, true);
    umemVirtual_fail(ctx, umemIOError, "the link cannot be closed");
    set(&has_failed);
    return true;
  }
  set(&is_held);
  while (feed->next(feed, piece, &rest)) {
    copy(&rest);
    feed->end(feed, &rest, true);
  }
  wait_until(&has_failed);
  usleep(20000); /* that failure is recorded when the method has returned */
  feed->end(feed, &one, true);
  return true;
}

/* That of the first piece, though it is copied in the end. */
TEST(a_failure_between_pieces_fails_the_next_block) {
  is_held = has_failed = false;
  begin_with(fail_between_pieces, 3);
  assert_int_equal(pass_from(0, check_block), 0);
  expect_stop(umemIOError, "the link cannot be closed");
}

/* ---- the ledger ---- */

static umemHost host;
static unsigned char near[64];
static unsigned long own_copies;

/* Copies bytes of its own when a piece, or a block, is done. */
static bool copy_own_bytes(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCopyPiece one;
  unsigned char far[sizeof near];
  (void)ctx, (void)src;
  while (feed->next(feed, nbytes, &one)) {
    feed->about(feed, &one);
    copy(&one);
    feed->end(feed, &one, true);
    umem_copy_to(&host, (uintptr_t)near, &host, (uintptr_t)far, sizeof near);
    __atomic_fetch_add(&own_copies, 1, __ATOMIC_RELAXED);
  }
  return true;
}

TEST(copies_after_a_block_are_no_part_of_it) {
  umemLedgerRecord records[4];
  own_copies = 0;
  assert_ok(umemHost_ctor(&host));
  start_ledger();
  begin_with(copy_own_bytes, 2);
  assert_int_equal(pass_from(0, check_block), in_all);
  assert_ok(end());
  assert_int_equal(stop_ledger(records, 4), 2);
  for (size_t i = 0; i < 2; i++) {
    bool own = !strcmp(records[i].src.kind, "host");
    assert_int_equal(records[i].calls, own ? own_copies : in_all);
    assert_int_equal(records[i].bytes, own ? own_copies * sizeof near : sizeof array);
  }
  umem_dtor(&host);
}
TEST_AGAIN(one_thread, copies_after_a_block_are_no_part_of_it)

/* Takes the next piece while it is about another one. */
static bool carry_on(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCopyPiece one, after;
  (void)ctx, (void)src;
  bool more = feed->next(feed, piece, &one);
  while (more) {
    feed->about(feed, &one);
    copy(&one);
    more = feed->next(feed, piece, &after);
    feed->end(feed, &one, true);
    one = after;
  }
  return true;
}

TEST(a_block_that_begins_within_another_is_a_copy) {
  umemLedgerRecord records[4];
  start_ledger();
  begin_with(carry_on, 3);
  assert_int_equal(pass_from(0, check_block), in_all);
  assert_ok(end());
  assert_int_equal(stop_ledger(records, 4), 1);
  assert_int_equal(records[0].calls, in_all);
  assert_int_equal(records[0].bytes, sizeof array);
}
TEST_AGAIN(one_thread, a_block_that_begins_within_another_is_a_copy)
