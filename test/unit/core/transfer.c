/* transfer.c - umem/transfer.h: what holds beside the bytes: that transfers go on by themselves,
 * fairness, lists, cancelling, and the end of contexts. */
#include "transfer_help.h"

#include "base/thread.h"
#include "core/hook.h"

/* ---- it goes on by itself ---- */

SLOW_TEST(a_start_does_not_wait) {
  hold(true);
  SCOPED(release) umemTransfer *transfer = start_slow(small);
  assert_false(umemTransfer_poll(transfer));
  await_reads(1);
  assert_false(umemTransfer_wait_for(transfer, 1000000));
  hold(false);
  assert_ok(umemTransfer_wait(transfer));
  assert_int_equal(bytes[small - 1], 7);
}

TEST(a_short_copy_in_ram_is_done_at_once) {
  SCOPED(release) umemTransfer *transfer;
  char to[64] = "";
  assert_ok(umem_start(&ram, source, &ram, (uintptr_t)to, sizeof to, NULL, &transfer));
  assert_memory_equal(to, bytes, sizeof to);
  assert_true(umemTransfer_poll(transfer));
}

TEST(without_threads_a_start_copies) {
  assert_ok(umem_set_threads(1));
  SCOPED(release) umemTransfer *transfer = start(large);
  assert_true(umemTransfer_poll(transfer));
  expect_written(large);
}

/* The one worker is held up: who waits copies. */
SLOW_TEST(a_wait_needs_no_free_worker) {
  assert_ok(umem_set_threads(2));
  hold(true);
  SCOPED(release) umemTransfer *held = start_slow(small);
  await_reads(1);
  umemTransfer *transfer = start(small);
  assert_ok(umemTransfer_wait(transfer));
  expect_written(small);
  assert_ok(umemTransfer_release(transfer));
  transfer = start(large);
  assert_ok(umemTransfer_release(transfer));
  expect_written(large);
  hold(false);
}

/* A loop whose bodies wait for transfers keeps all workers. */
static void start_and_wait(void *data, unsigned piece) {
  umemTransfer *transfer = NULL;
  size_t at = piece * (size_t)small;
  bool *right = data;
  right[piece] =
      umem_start(&ram, source + at, &file, target + at, small, NULL, &transfer) == umemOK &&
      umemTransfer_release(transfer) == umemOK;
}

/* A wait with a limit, too, at its end. */
static void start_and_wait_shortly(void *data, unsigned piece) {
  umemTransfer *transfer = NULL;
  size_t at = piece * (size_t)small;
  bool *right = data;
  right[piece] =
      umem_start(&ram, source + at, &file, target + at, small, NULL, &transfer) == umemOK;
  while (right[piece] && !umemTransfer_wait_for(transfer, 1000000)) continue;
  right[piece] = umemTransfer_release(transfer) == umemOK && right[piece];
}

TEST(bodies_of_a_loop_may_wait) {
  enum { pieces = 40 };
  bool right[pieces] = {false};
  assert_ok(umem_set_threads(3));
  assert_ok(umem_parallel_for(pieces, start_and_wait, right));
  for (unsigned i = 0; i < pieces; i++) assert_true(right[i]);
  assert_ok(umem_parallel_for(pieces, start_and_wait_shortly, right));
  for (unsigned i = 0; i < pieces; i++) assert_true(right[i]);
  expect_written(pieces * small);
}

TEST(ten_thousand_may_be_in_flight) {
  enum { count = 10000, nbytes = 64 };
  SCOPED(free_bytes) umemTransfer **all = calloc(count, sizeof *all);
  assert_non_null(all);
  for (size_t i = 0; i < count; i++)
    assert_ok(
        umem_start(&ram, source + i * nbytes, &file, target + i * nbytes, nbytes, NULL, &all[i]));
  for (size_t i = 0; i < count; i++) assert_ok(umemTransfer_release(all[i]));
  expect_written((size_t)count * nbytes);
}

/* ---- fairness ---- */

/* All servers have long transfers to do; a short one is done before they are. */
TEST(short_ones_are_served_while_long_ones_go_on) {
  enum { count = 8 };
  umemTransfer *lengthy[count];
  for (size_t i = 0; i < count; i++)
    assert_ok(umem_start(&ram, source, &file, target, large, NULL, &lengthy[i]));
  SCOPED(release) umemTransfer *brief;
  char to[small];
  assert_ok(umem_start(&ram, source, &ram, (uintptr_t)to, sizeof to, NULL, &brief));
  while (!umemTransfer_poll(brief)) usleep(100);
  size_t left = 0;
  for (size_t i = 0; i < count; i++) left += !umemTransfer_poll(lengthy[i]);
  assert_true(left > 0);
  for (size_t i = 0; i < count; i++) assert_ok(umemTransfer_release(lengthy[i]));
}

/* The lone server does at most one piece of the long one before. */
SLOW_TEST(a_short_one_passes_a_long_one_that_waits) {
  assert_ok(umem_set_threads(2));
  hold(true);
  umemTransfer *held = start_slow(1000);
  await_reads(1);
  umemTransfer *lengthy = start_slow(large), *brief = start_slow(small);
  hold(false);
  while (!umemTransfer_poll(brief)) usleep(100);
  assert_in_range(slow.brief, 2, 3);
  assert_ok(umemTransfer_release(held));
  assert_ok(umemTransfer_release(lengthy));
  assert_ok(umemTransfer_release(brief));
}

/* All threads of a copy are held up, in the method of its context. */
static void hold_thread(void *unused UNUSED, unsigned piece UNUSED) {
  __atomic_fetch_add(&slow.reads, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&slow.held, __ATOMIC_ACQUIRE)) usleep(100);
}

static void wide_copy_to(umemVirtual *ctx UNUSED, uintptr_t src_adr UNUSED,
                         umemVirtual *that UNUSED, uintptr_t dst_adr, size_t nbytes) {
  umem_parallel(umem_parallel_threads(), hold_thread, NULL);
  memset((void *)dst_adr, 7, nbytes);
}

/* The threads that help to copy a long one are not those that short ones need. */
SLOW_TEST(a_short_one_waits_for_no_helper) {
  static struct umemVtbl const vtbl = {.alloc = slow_alloc, .copy_to = wide_copy_to};
  enum { workers = 3 };
  char to[small];
  umemTransfer *brief;
  slow.super.vptr = &vtbl;
  assert_ok(umem_set_threads(workers + 1));
  hold(true);
  umemTransfer *lengthy = start_slow(large);
  await_reads(workers);
  assert_ok(umem_start(&ram, source, &ram, (uintptr_t)to, sizeof to, NULL, &brief));
  bool served = false;
  for (int i = 0; i < 50000 && !served; i++) {
    usleep(100);
    served = umemTransfer_poll(brief);
  }
  hold(false);
  assert_ok(umemTransfer_release(brief));
  assert_ok(umemTransfer_release(lengthy));
  assert_true(served);
}

/* With one worker no piece is long. */
SLOW_TEST(a_lone_server_does_short_pieces) {
  assert_ok(umem_set_threads(2));
  hold(true);
  SCOPED(release) umemTransfer *transfer = start_slow(large);
  await_reads(1);
  assert_true(__atomic_load_n(&slow.most, __ATOMIC_RELAXED) <= 1 << 20);
  hold(false);
}

/* Where copies need pinned buffers, of which there are few, no transfer takes those of others. */
SLOW_TEST(transfers_share_pinned_buffers) {
  enum { count = 3, threads = 12, nbytes = large / count };
  for (unsigned pinned = 0; pinned < 2; pinned++) {
    umemTransfer *transfers[count];
    slow.reads = 0;
    if (pinned) slow.host.super.capabilities |= umemDeviceAccessible;
    assert_ok(umem_set_threads(threads));
    hold(true);
    for (unsigned i = 0; i < count; i++) {
      transfers[i] = start_slow_at(source + i * nbytes, nbytes);
      await_reads(i + 1);
      assert_int_equal(__atomic_load_n(&slow.threads, __ATOMIC_RELAXED),
                       pinned ? threads / (i + 1) : threads);
    }
    hold(false);
    for (unsigned i = 0; i < count; i++) assert_ok(umemTransfer_release(transfers[i]));
  }
}

static void *wait_for(void *transfer) { return umemTransfer_wait(transfer) ? NULL : transfer; }

/* So no more buffers are in use: four threads copy, and whoever waits. */
SLOW_TEST(few_copies_are_under_way_at_a_time) {
  enum { count = 12, servers = 4, waiting = 2 };
  umemTransfer *transfers[count];
  pthread_t threads[waiting];
  unsigned reads[waiting + 1];
  assert_ok(umem_set_threads(count));
  hold(true);
  for (unsigned i = 0; i < count; i++) transfers[i] = start_slow_at(source + i * small, small);
  for (unsigned i = 0; i <= waiting; i++) {
    await_reads(servers + i);
    usleep(20000);
    reads[i] = __atomic_load_n(&slow.reads, __ATOMIC_RELAXED);
    if (i < waiting) threads[i] = start_thread(wait_for, transfers[count - 1 - i]);
  }
  hold(false);
  assert_true(join_threads(threads, waiting));
  for (unsigned i = 0; i < count; i++) assert_ok(umemTransfer_release(transfers[i]));
  for (unsigned i = 0; i <= waiting; i++) assert_int_equal(reads[i], servers + i);
}

/* ---- lists ---- */

/* What a slow file gives to RAM and, beside that, RAM to a file: as one transfer. */
static umemTransfer *start_list(umemCopyManyOptions const *options) {
  uintptr_t const half = large / 2;
  umemCopyItem const items[] = {{&ram, source + half, &file, target, small},
                                {&slow, 64, &ram, source, small},
                                {&slow, 64 + 2 * small, &ram, source + 2 * small, small}};
  umemTransfer *transfer = NULL;
  assert_ok(umem_start_many(items, 3, options, &transfer));
  assert_non_null(transfer);
  return transfer;
}

SLOW_TEST(a_list_ends_after_its_last_item) {
  uint8_t done = 0;
  size_t failed = 77;
  uint64_t copied, total;
  unsigned char to[small];
  umemCopyManyOptions options = {.size = sizeof options, .done = &done, .failed = &failed};
  hold(true);
  SCOPED(release) umemTransfer *transfer = start_list(&options);
  await_reads(1);
  assert_false(umemTransfer_poll(transfer));
  assert_ok(umemTransfer_progress(transfer, &copied, &total));
  assert_true(copied < total && total == 3 * small);
  hold(false);
  while (!umemTransfer_poll(transfer)) usleep(100);
  assert_true(done == 7 && failed == 3);
  assert_true(bytes[0] == 7 && bytes[2 * small] == 7 && bytes[small] != 7);
  assert_ok(umem_copy_to(&file, target, &ram, (uintptr_t)to, small));
  assert_memory_equal(to, bytes + large / 2, small);
}

SLOW_TEST(a_list_that_fails_names_the_item) {
  uint8_t done = 0;
  size_t failed = 77;
  uint64_t copied;
  umemCopyManyOptions options = {.size = sizeof options, .done = &done, .failed = &failed};
  slow.fails = true;
  umemTransfer *transfer = start_list(&options);
  while (!umemTransfer_poll(transfer)) usleep(100);
  assert_true(done == 1 && failed == 1);
  expect_status(&slow, umemTransfer_wait(transfer), umemIOError,
                "umem_start_many: item 1: it is broken");
  assert_ok(umemTransfer_progress(transfer, &copied, NULL));
  assert_true(copied == small);
  DESTRUCT(&slow, &slow.host);
  memset(&slow, 0xee, sizeof slow);
  umem_thread_clear();
  expect_status(NULL, umemTransfer_wait(transfer), umemIOError, "item 1: it is broken");
  assert_ok(umemTransfer_release(transfer));
  memset(&slow, 0, sizeof slow); /* nothing is left to end */
}

/* One that no thread has begun, and one that goes on after its piece. */
SLOW_TEST(a_list_is_cancelled) {
  uint8_t done[2] = {0xff, 0xff};
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  assert_ok(umem_set_threads(2));
  hold(true);
  SCOPED(release) umemTransfer *blocking = start_slow_at(source + small, small);
  await_reads(1);
  options.done = &done[0];
  umemTransfer *waits = start_list(&options);
  umemTransfer_cancel(waits);
  assert_true(umemTransfer_poll(waits));
  assert_int_equal(done[0], 0);
  umemTransfer_cancel(blocking);
  options.done = &done[1];
  SCOPED(release) umemTransfer *begun = start_list(&options);
  hold(false);
  await_reads(2);
  umemTransfer_cancel(begun);
  expect_status(&file, umemTransfer_wait(waits), umemCancelledError,
                "cancelled after 0 of 300000 bytes");
  assert_ok(umemTransfer_release(waits));
  umemStatusType status = umemTransfer_wait(begun);
  assert_true(status == umemOK ? done[1] == 7 : status == umemCancelledError);
  FORGET(&ram);
}

/* ---- cancelling ---- */

/* A server copies it in one piece, which ends all the same: the first bytes are there. */
TEST(a_long_transfer_says_how_far_it_is_and_ends_soon) {
  unsigned char *found = test_malloc(large);
  unsigned stopped = 0;
  umem_set_threads(4);
  assert_ok(umem_copy_to(&ram, source, &file, target, large));
  for (unsigned i = 0; i < 1000 && !stopped; i++) {
    umemTransfer *transfer;
    uint64_t done = 0;
    memset(found, 0, large);
    assert_ok(umem_start(&file, target, &ram, (uintptr_t)found, large, NULL, &transfer));
    while (!done && !umemTransfer_wait_for(transfer, 0))
      assert_ok(umemTransfer_progress(transfer, &done, NULL));
    umemTransfer_cancel(transfer);
    stopped += umemTransfer_wait(transfer) == umemCancelledError;
    assert_ok(umemTransfer_progress(transfer, &done, NULL));
    assert_memory_equal(found, bytes, (size_t)done);
    assert_true(stopped ? done > 0 && done < large : done == large);
    FORGET(&ram);
    assert_ok(umemTransfer_release(transfer));
  }
  assert_true(stopped);
  test_free(found);
}

enum { metered_part = 64 << 10 };

/* As a file that reads a long copy in parts and reports each of them; every part is a read. */
static void metered_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that,
                            uintptr_t dst_adr, size_t nbytes) {
  umemMeter *meter = umem_thread.meter ? umemMeter_find(ctx, src_adr, dst_adr, nbytes) : NULL;
  size_t all = meter ? umemMeter_take(meter) : nbytes;
  for (size_t at = 0; at < all && !(meter && umemMeter_is_over(meter)); at += metered_part) {
    slow_copy_to(ctx, src_adr + at, that, dst_adr + at, metered_part);
    if (meter) umemMeter_add(meter, at, metered_part);
  }
}

/* The read that is under way when it is cancelled is the last one. */
SLOW_TEST(a_long_transfer_that_is_cancelled_ends_with_the_part_under_way) {
  static struct umemVtbl const vtbl = {.alloc = slow_alloc, .copy_to = metered_copy_to};
  uint64_t done;
  slow.super.vptr = &vtbl;
  assert_ok(umem_set_threads(4));
  hold(true);
  SCOPED(release) umemTransfer *transfer = start_slow(large);
  await_reads(1);
  umemTransfer_cancel(transfer);
  hold(false);
  expect_status(&ram, umemTransfer_wait(transfer), umemCancelledError, "umem_start: cancelled");
  assert_int_equal(slow.reads, 1);
  assert_ok(umemTransfer_progress(transfer, &done, NULL));
  assert_true(done == metered_part);
}

SLOW_TEST(what_is_cancelled_says_what_is_done) {
  uint64_t done, total;
  assert_ok(umem_set_threads(2));
  hold(true);
  SCOPED(release) umemTransfer *first = start_slow(large);
  await_reads(1);
  SCOPED(release) umemTransfer *second = start_slow(small);
  umemTransfer_cancel(second); /* no thread has begun it */
  assert_true(umemTransfer_poll(second));
  umemTransfer_cancel(first);
  assert_false(umemTransfer_poll(first));
  hold(false);
  expect_status(&ram, umemTransfer_wait(first), umemCancelledError, "umem_start: cancelled after");
  assert_ok(umemTransfer_progress(first, &done, &total));
  assert_true(done > 0 && done < total && total == large);
  assert_int_equal(bytes[done - 1], 7);
  assert_ok(umemTransfer_progress(second, &done, NULL));
  assert_true(done == 0);
}

/* ---- the end of a context ---- */

static void *release_hold(void *unused) {
  usleep(20000);
  hold(false);
  return unused;
}

SLOW_TEST(a_context_waits_for_its_transfers) {
  assert_ok(umem_set_threads(2));
  hold(true);
  umemTransfer *first = start_slow_at(source + small, small);
  umemTransfer *second = start_list(NULL); /* its second pair has the context */
  await_reads(1);
  pthread_t thread = start_thread(release_hold, NULL);
  umem_dtor(&slow);
  assert_true(umemTransfer_poll(first) && umemTransfer_poll(second));
  assert_ok(umemTransfer_release(first));
  assert_ok(umemTransfer_release(second));
  join_thread(thread);
}
/* ---- the end of a block ---- */

static void free_plainly(void *ctx, uintptr_t adr) { umem_free(ctx, adr); }
static void free_aligned(void *ctx, uintptr_t adr) { umem_aligned_free(ctx, adr); }
static void free_moved(void *ctx, uintptr_t adr) {
  umem_free(ctx, umem_realloc(ctx, adr, small, 1));
}

/* Runs, items and a list that write to the block from `at` on. */
static umemTransfer *start_into(unsigned kind, umemVirtual *ctx, uintptr_t at) {
  size_t const extents[] = {100};
  ptrdiff_t const there[] = {10}, here[] = {-20};
  umemLayout const layout = {sizeof layout, 10, 1, extents, there, here};
  umemCopyItem const items[] = {{&ram, source, &file, target, 10}, {&slow, 64, ctx, at, 10}};
  umemTransfer *transfer = NULL;
  if (kind == 0) assert_ok(umem_start(&slow, 64, ctx, at, 1000, NULL, &transfer));
  if (kind == 1) assert_ok(umem_start(&slow, 64, ctx, at, small - 1999, NULL, &transfer));
  if (kind == 2)
    assert_ok(umem_start_strided(&slow, 64, ctx, at + 99 * 20, &layout, NULL, &transfer));
  if (kind == 3) assert_ok(umem_start_many(items, 2, NULL, &transfer));
  return transfer;
}

/* Also where the context, as RAM, keeps no records of its blocks; of other blocks, and of offsets
 * in other files, it does not wait for any. */
SLOW_TEST(who_frees_a_block_waits_for_its_transfers) {
  static void (*const frees[])(void *, uintptr_t) = {free_plainly, free_aligned, free_moved};
  CONTEXT(umemFile, other, NULL, "w+");
  CONTEXT(umemStats, stats, &ram);
  umemVirtual *const places[] = {&ram.super, &file.super, &stats.super};
  for (unsigned i = 0; i < 3 * 3 * 4; i++) {
    umemVirtual *ctx = places[i % 3];
    uintptr_t adr = umem_alloc(ctx, small), beside = umem_alloc(ctx, small);
    uintptr_t elsewhere = umem_alloc(&other, large + 2 * small);
    unsigned reads = slow.reads;
    hold(true);
    umemTransfer *transfer = start_into(i / 9, ctx, adr + (i / 9 ? 1999 : small - 1000));
    await_reads(reads + 1);
    umem_free(ctx, beside);
    umem_free(&other, elsewhere);
    assert_false(umemTransfer_poll(transfer));
    pthread_t thread = start_thread(release_hold, NULL);
    frees[i / 3 % 3](ctx, adr);
    assert_true(umemTransfer_poll(transfer));
    assert_ok(umemTransfer_release(transfer));
    join_thread(thread);
  }
}

static struct umemVtbl const *own;
static bool busy; /* atomic */

static umemSearch find_later(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  return __atomic_load_n(&busy, __ATOMIC_ACQUIRE) ? umemSearchBusy : own->find(ctx, adr, found);
}

/* Another thread has the lock of its context all the time. */
SLOW_TEST(who_frees_a_block_of_unknown_length_waits) {
  struct umemVtbl vtbl = *(own = file.super.vptr);
  uintptr_t adr = umem_alloc(&file, small);
  vtbl.find = find_later;
  file.super.vptr = &vtbl;
  hold(true);
  umemTransfer *transfer = start_into(0, &file.super, adr + small - 1000);
  await_reads(1);
  __atomic_store_n(&busy, true, __ATOMIC_RELEASE);
  pthread_t thread = start_thread(release_hold, NULL);
  umem_free(&file, adr);
  assert_true(umemTransfer_poll(transfer));
  assert_ok(umemTransfer_release(transfer));
  join_thread(thread);
  file.super.vptr = own;
}
