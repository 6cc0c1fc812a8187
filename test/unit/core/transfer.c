/* transfer.c - umem/transfer.h: what holds beside the bytes: fairness, the end of contexts, of the
 * process and of its parent, failures, descriptors, and copies in queues. */
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "base/thread.h"
#include "child.h"
#include "core/hook.h"
#include "core/threads.h"
#include "failures.h"
#include "fake/fake.h"
#include "workers.h"

extern char **environ;

enum { small = 100000, large = 24 << 20 };

static umemHost ram;
static umemFile file;
static uintptr_t source, target; /* in RAM, of `large` bytes; in the file, of as many */
static unsigned char *bytes;

static int set_up(void **state UNUSED) {
  umem_thread_clear();
  umem_set_threads(0);
  bool opened = umemHost_ctor(&ram) == umemOK && umemFile_ctor(&file, NULL, "w+") == umemOK;
  source = umem_alloc(&ram, large);
  target = umem_alloc(&file, large);
  bytes = (unsigned char *)source;
  for (size_t i = 0; i < large; i++) bytes[i] = (unsigned char)(i * 7 + (i >> 8));
  return opened && source && target != UINTPTR_MAX ? 0 : -1;
}

static int tear_down(void **state UNUSED) {
  umem_free(&ram, source);
  umem_dtor(&file);
  umem_dtor(&ram);
  umem_set_threads(0);
  return umem_thread_status() == umemOK ? 0 : -1;
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

static umemTransfer *start(size_t nbytes) {
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(&ram, source, &file, target, nbytes, NULL, &transfer));
  assert_non_null(transfer);
  return transfer;
}

static void expect_written(size_t nbytes) {
  unsigned char *found = malloc(nbytes);
  assert_non_null(found);
  assert_ok(umem_copy_to(&file, target, &ram, (uintptr_t)found, nbytes));
  assert_memory_equal(found, bytes, nbytes);
  free(found);
}

/* ---- a file that is as slow as a test wants ---- */

/* Reads of it wait while `held`, and note in which thread they are. */
typedef struct Slow {
  umemVirtual super;
  umemHost host;
  unsigned reads; /* atomic, as all that follows */
  bool held, fails;
  size_t most;      /* bytes of the largest read */
  unsigned threads; /* that a copy in the last read would have */
  unsigned brief;   /* the number of the last read of `small` bytes */
} Slow;

static uintptr_t slow_alloc(umemVirtual *ctx, size_t nbytes) { return (void)ctx, (void)nbytes, 64; }

static void slow_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes) {
  Slow *self = (Slow *)ctx;
  (void)src_adr, (void)that;
  unsigned threads = umem_parallel_pieces(SIZE_MAX, 1, umemParallelMost);
  __atomic_store_n(&self->threads, threads, __ATOMIC_RELAXED);
  if (nbytes > __atomic_load_n(&self->most, __ATOMIC_RELAXED))
    __atomic_store_n(&self->most, nbytes, __ATOMIC_RELAXED);
  unsigned number = __atomic_add_fetch(&self->reads, 1, __ATOMIC_RELEASE);
  if (nbytes == small) __atomic_store_n(&self->brief, number, __ATOMIC_RELAXED);
  while (__atomic_load_n(&self->held, __ATOMIC_ACQUIRE)) usleep(100);
  if (__atomic_load_n(&self->fails, __ATOMIC_ACQUIRE))
    umemVirtual_fail(ctx, umemIOError, "it is broken");
  else
    memset((void *)dst_adr, 7, nbytes);
}

static Slow slow;

static int begin_slow(void **state) {
  static struct umemVtbl const vtbl = {.alloc = slow_alloc, .copy_to = slow_copy_to};
  memset(&slow, 0, sizeof slow);
  if (set_up(state) || umemHost_ctor(&slow.host) != umemOK) return -1;
  umemVirtual_ctor(&slow.super, &slow.host);
  slow.super.vptr = &vtbl;
  slow.super.name = "Slow";
  slow.super.capabilities |= umemConcurrent;
  return 0;
}

static int end_slow(void **state) {
  umem_dtor(&slow);
  umem_dtor(&slow.host);
  return tear_down(state);
}

#define SLOW_TEST(name) TEST_CASE_WITH(name, begin_slow, end_slow)

static umemTransfer *start_slow_at(uintptr_t to, size_t nbytes) {
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(&slow, 64, &ram, to, nbytes, NULL, &transfer));
  return transfer;
}

static umemTransfer *start_slow(size_t nbytes) { return start_slow_at(source, nbytes); }

static void hold(bool held) { __atomic_store_n(&slow.held, held, __ATOMIC_RELEASE); }

static void await_reads(unsigned count) {
  while (__atomic_load_n(&slow.reads, __ATOMIC_ACQUIRE) < count) usleep(100);
}

/* ---- it goes on by itself ---- */

SLOW_TEST(a_start_does_not_wait) {
  hold(true);
  umemTransfer *transfer = start_slow(small);
  assert_false(umemTransfer_poll(transfer));
  await_reads(1);
  assert_false(umemTransfer_wait_for(transfer, 1000000));
  hold(false);
  assert_ok(umemTransfer_wait(transfer));
  assert_int_equal(bytes[small - 1], 7);
  assert_ok(umemTransfer_release(transfer));
}

TEST(a_short_copy_in_ram_is_done_at_once) {
  umemTransfer *transfer;
  char to[64] = "";
  assert_ok(umem_start(&ram, source, &ram, (uintptr_t)to, sizeof to, NULL, &transfer));
  assert_memory_equal(to, bytes, sizeof to);
  assert_true(umemTransfer_poll(transfer));
  assert_ok(umemTransfer_release(transfer));
}

TEST(without_threads_a_start_copies) {
  assert_ok(umem_set_threads(1));
  umemTransfer *transfer = start(large);
  assert_true(umemTransfer_poll(transfer));
  expect_written(large);
  assert_ok(umemTransfer_release(transfer));
}

/* The one worker is held up: who waits copies. */
SLOW_TEST(a_wait_needs_no_free_worker) {
  assert_ok(umem_set_threads(2));
  hold(true);
  umemTransfer *held = start_slow(small);
  await_reads(1);
  umemTransfer *transfer = start(small);
  assert_ok(umemTransfer_wait(transfer));
  expect_written(small);
  assert_ok(umemTransfer_release(transfer));
  transfer = start(large);
  assert_ok(umemTransfer_release(transfer));
  expect_written(large);
  hold(false);
  assert_ok(umemTransfer_release(held));
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
  umemTransfer **all = calloc(count, sizeof *all);
  assert_non_null(all);
  for (size_t i = 0; i < count; i++)
    assert_ok(
        umem_start(&ram, source + i * nbytes, &file, target + i * nbytes, nbytes, NULL, &all[i]));
  for (size_t i = 0; i < count; i++) assert_ok(umemTransfer_release(all[i]));
  expect_written((size_t)count * nbytes);
  free(all);
}

/* ---- fairness ---- */

/* All servers have long transfers to do; a short one is done before they are. */
TEST(short_ones_are_served_while_long_ones_go_on) {
  enum { count = 8 };
  umemTransfer *lengthy[count];
  for (size_t i = 0; i < count; i++)
    assert_ok(umem_start(&ram, source, &file, target, large, NULL, &lengthy[i]));
  umemTransfer *brief;
  char to[small];
  assert_ok(umem_start(&ram, source, &ram, (uintptr_t)to, sizeof to, NULL, &brief));
  while (!umemTransfer_poll(brief)) usleep(100);
  size_t left = 0;
  for (size_t i = 0; i < count; i++) left += !umemTransfer_poll(lengthy[i]);
  assert_true(left > 0);
  for (size_t i = 0; i < count; i++) assert_ok(umemTransfer_release(lengthy[i]));
  assert_ok(umemTransfer_release(brief));
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
static void hold_thread(void *unused, unsigned piece) {
  (void)unused, (void)piece;
  __atomic_fetch_add(&slow.reads, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(&slow.held, __ATOMIC_ACQUIRE)) usleep(100);
}

static void wide_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes) {
  (void)ctx, (void)src_adr, (void)that;
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
  umemTransfer *transfer = start_slow(large);
  await_reads(1);
  assert_true(__atomic_load_n(&slow.most, __ATOMIC_RELAXED) <= 1 << 20);
  hold(false);
  assert_ok(umemTransfer_release(transfer));
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
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  options.done = &done;
  options.failed = &failed;
  hold(true);
  umemTransfer *transfer = start_list(&options);
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
  assert_ok(umemTransfer_release(transfer));
}

SLOW_TEST(a_list_that_fails_names_the_item) {
  uint8_t done = 0;
  size_t failed = 77;
  uint64_t copied;
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  options.done = &done;
  options.failed = &failed;
  slow.fails = true;
  umemTransfer *transfer = start_list(&options);
  while (!umemTransfer_poll(transfer)) usleep(100);
  assert_true(done == 1 && failed == 1);
  expect_status(&slow, umemTransfer_wait(transfer), umemIOError,
                "umem_start_many: item 1: it is broken");
  assert_ok(umemTransfer_progress(transfer, &copied, NULL));
  assert_true(copied == small);
  umem_dtor(&slow);
  umem_dtor(&slow.host);
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
  umemTransfer *blocking = start_slow_at(source + small, small);
  await_reads(1);
  options.done = &done[0];
  umemTransfer *waits = start_list(&options);
  umemTransfer_cancel(waits);
  assert_true(umemTransfer_poll(waits));
  assert_int_equal(done[0], 0);
  umemTransfer_cancel(blocking);
  options.done = &done[1];
  umemTransfer *begun = start_list(&options);
  hold(false);
  await_reads(2);
  umemTransfer_cancel(begun);
  expect_status(&file, umemTransfer_wait(waits), umemCancelledError,
                "cancelled after 0 of 300000 bytes");
  assert_ok(umemTransfer_release(waits));
  umemStatusType status = umemTransfer_wait(begun);
  assert_true(status == umemOK ? done[1] == 7 : status == umemCancelledError);
  umem_thread_clear();
  umem_clear_status(&ram);
  assert_ok(umemTransfer_release(begun));
  assert_ok(umemTransfer_release(blocking));
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
    umem_clear_status(&ram);
    umem_thread_clear();
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
  umemTransfer *transfer = start_slow(large);
  await_reads(1);
  umemTransfer_cancel(transfer);
  hold(false);
  expect_status(&ram, umemTransfer_wait(transfer), umemCancelledError, "umem_start: cancelled");
  assert_int_equal(slow.reads, 1);
  assert_ok(umemTransfer_progress(transfer, &done, NULL));
  assert_true(done == metered_part);
  assert_ok(umemTransfer_release(transfer));
}

SLOW_TEST(what_is_cancelled_says_what_is_done) {
  uint64_t done, total;
  assert_ok(umem_set_threads(2));
  hold(true);
  umemTransfer *first = start_slow(large);
  await_reads(1);
  umemTransfer *second = start_slow(small);
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
  assert_ok(umemTransfer_release(first));
  assert_ok(umemTransfer_release(second)); /* what the program has cancelled is no failure */
}

/* ---- failures ---- */

static unsigned hooked;

static void count_failures(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  __atomic_fetch_add(&hooked, 1, __ATOMIC_RELAXED);
}

SLOW_TEST(a_failure_goes_to_who_waits) {
  slow.fails = true;
  umem_set_failure_hook(count_failures, NULL);
  hooked = 0;
  umemTransfer *transfer = start_slow(small);
  while (!umemTransfer_poll(transfer)) usleep(100);
  assert_int_equal(hooked, 0);
  assert_true(umem_is_ok(&slow));
  expect_status(&slow, umemTransfer_wait(transfer), umemIOError, "umem_start: it is broken");
  assert_int_equal(hooked, 1);
  assert_ok(umemTransfer_release(transfer));
  assert_int_equal(hooked, 1);
  transfer = start_slow(small);
  expect_status(&slow, umemTransfer_release(transfer), umemIOError, "it is broken");
  assert_int_equal(hooked, 2);
  umem_set_failure_hook(NULL, NULL);
}

SLOW_TEST(a_failure_outlives_its_context) {
  slow.fails = true;
  umemTransfer *transfer = start_slow(small);
  while (!umemTransfer_poll(transfer)) usleep(100);
  umem_dtor(&slow);
  umem_dtor(&slow.host);
  memset(&slow, 0xee, sizeof slow);
  expect_status(NULL, umemTransfer_wait(transfer), umemIOError, "it is broken");
  assert_ok(umemTransfer_release(transfer));
  memset(&slow, 0, sizeof slow); /* nothing is left to end */
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
  umemFile other;
  umemStats stats;
  assert_ok(umemFile_ctor(&other, NULL, "w+"));
  assert_ok(umemStats_ctor(&stats, &ram));
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
  umem_dtor(&stats);
  umem_dtor(&other);
}

/* ---- descriptors ---- */

static bool is_readable(int fd, int milliseconds) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1 && one.revents & POLLIN;
}

static bool is_shown_by_epoll(int fd, int milliseconds) {
  struct epoll_event event = {.events = EPOLLIN};
  int set = epoll_create1(EPOLL_CLOEXEC);
  assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
  int count = epoll_wait(set, &event, 1, milliseconds);
  close(set);
  return count == 1;
}

SLOW_TEST(a_descriptor_shows_the_end) {
  hold(true);
  umemTransfer *transfer = start_slow(small);
  int fd = umemTransfer_descriptor(transfer);
  assert_true(fd >= 0);
  assert_int_equal(umemTransfer_descriptor(transfer), fd);
  assert_false(is_readable(fd, 1));
  assert_false(is_shown_by_epoll(fd, 1));
  hold(false);
  assert_true(is_shown_by_epoll(fd, 60000));
  assert_true(is_readable(fd, 60000));
  assert_true(umemTransfer_poll(transfer));
  assert_ok(umemTransfer_release(transfer));
  transfer = start(small);
  assert_ok(umemTransfer_wait(transfer));
  assert_true(is_readable(umemTransfer_descriptor(transfer), 0));
  assert_ok(umemTransfer_release(transfer));
}

/* ---- queues ---- */

TEST(a_context_without_marks_is_waited_for) {
  FakeAsync queue;
  umemTransfer *transfer;
  assert_ok(fake_async_ctor(&queue));
  uintptr_t adr = umem_alloc(&queue, small);
  assert_ok(umem_start(&ram, source, &queue, adr, small, NULL, &transfer));
  assert_true(umemTransfer_poll(transfer));
  assert_ok(umemTransfer_release(transfer));
  umem_free(&queue, adr);
  umem_dtor(&queue);
}

/* ---- fork ---- */

static void use_in_child(void *argument) {
  umemTransfer *transfer = argument;
  uint64_t done;
  EXPECT(umemTransfer_poll(transfer) && umemTransfer_wait_for(transfer, 1));
  EXPECT(umemTransfer_wait(transfer) == umemRuntimeError);
  EXPECT(strstr(umem_thread_message(), "parent") != NULL);
  EXPECT(umemTransfer_progress(transfer, &done, NULL) == umemOK);
  EXPECT(umemTransfer_descriptor(transfer) == -1);
  umemTransfer_cancel(transfer);
  EXPECT(umemTransfer_release(transfer) == umemOK);
  umem_free(&ram, source);
  umem_dtor(&ram);
  EXPECT(umemHost_ctor(&ram) == umemOK);
  char from[small] = "x", to[small];
  EXPECT(umem_start(&ram, (uintptr_t)from, &ram, (uintptr_t)to, small, NULL, &transfer) == umemOK);
  EXPECT(umemTransfer_wait(transfer) == umemOK && !memcmp(from, to, small));
  EXPECT(umemTransfer_release(transfer) == umemOK);
}

/* The parent has set the number of threads to 1. */
static void start_in_child(void *argument) {
  static char from[1 << 20] = "x", to[sizeof from];
  umemTransfer *transfer;
  (void)argument;
  EXPECT(umem_start(&ram, (uintptr_t)from, &ram, (uintptr_t)to, sizeof from, NULL, &transfer) ==
         umemOK);
  EXPECT(!memcmp(from, to, sizeof from) && umemTransfer_poll(transfer));
  EXPECT(umemTransfer_release(transfer) == umemOK);
}

TEST(a_child_without_threads_copies_at_once) {
  unsigned before = umem_get_threads();
  assert_int_equal(umem_set_threads(1), umemOK);
  child_run(start_in_child, NULL);
  assert_int_equal(umem_set_threads(before), umemOK);
}

/* The servers of the parent do not count in the child, where nobody waits for the transfer. */
static void poll_in_child(void *argument) {
  static char from[small] = "x", to[small];
  umemTransfer *transfer;
  (void)argument;
  EXPECT(umem_set_threads(2) == umemOK);
  EXPECT(umem_start(&ram, (uintptr_t)from, &ram, (uintptr_t)to, small, NULL, &transfer) == umemOK);
  for (int i = 0; i < 50000 && !umemTransfer_poll(transfer); i++) usleep(100);
  EXPECT(umemTransfer_poll(transfer) && !memcmp(from, to, small));
  EXPECT(umemTransfer_release(transfer) == umemOK);
}

SLOW_TEST(a_child_has_servers_of_its_own) {
  hold(true);
  umemTransfer *transfer = start_slow(small);
  await_reads(1);
  if (!UNDER_THREAD_SANITIZER) child_run(poll_in_child, NULL);
  hold(false);
  assert_ok(umemTransfer_release(transfer));
}

SLOW_TEST(a_child_has_no_transfers) {
  hold(true);
  umemTransfer *transfer = start_slow(small);
  await_reads(1);
  if (!UNDER_THREAD_SANITIZER) child_run(use_in_child, transfer);
  hold(false);
  assert_ok(umemTransfer_release(transfer));
}

/* ---- exit ---- */

static void exit_with_transfers(void *argument) {
  umemTransfer *transfer;
  (void)argument;
  for (int i = 0; i < 50; i++)
    EXPECT(umem_start(&ram, source, &file, target, large, NULL, &transfer) == umemOK);
  exit(0);
}

TEST(exit_waits_for_no_transfer) {
  if (!UNDER_SANITIZER) child_run(exit_with_transfers, NULL);
}

/* Memory that a library takes along when the process ends, as CUDA's runtime does. */
static void *doomed;
static bool exits; /* atomic */

static void take_along(void) { munmap(doomed, large); }
static void note_exit(void) { __atomic_store_n(&exits, true, __ATOMIC_RELEASE); }

/* Reads when the process exits, and not at once. */
static void late_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes) {
  (void)ctx, (void)src_adr, (void)that;
  __atomic_fetch_add(&slow.reads, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&exits, __ATOMIC_ACQUIRE)) usleep(100);
  usleep(20000);
  memset((void *)dst_adr, 7, nbytes);
}

static struct umemVtbl const late_vtbl = {.alloc = slow_alloc, .copy_to = late_copy_to};

/* Transfers have begun before that library is used for the first time. */
static void exit_while_reading(void *argument) {
  (void)argument;
  umem_set_threads(4);      /* a child has one */
  signal(SIGSEGV, SIG_DFL); /* not that of the tests */
  doomed = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(doomed != MAP_FAILED && umemTransfer_release(start(large)) == umemOK);
  EXPECT(atexit(take_along) == 0);
  umem_exit_hook();
  slow.super.vptr = &late_vtbl;
  start_slow_at((uintptr_t)doomed, small);
  await_reads(1);
  EXPECT(atexit(note_exit) == 0);
  exit(0);
}

SLOW_TEST(exit_ends_transfers_before_their_memory_goes) {
  if (!UNDER_SANITIZER) child_run(exit_while_reading, NULL);
}
