/* many_steps.c - umem_copy_many: what a list reports while it is copied. */
#include "many_help.h"

enum { steps_room = 40 << 20, steps_piece = 64 << 10, steps_count = steps_room / steps_piece };

typedef struct Steps {
  uint64_t total, last, cancel_at;
  size_t calls;
  bool right; /* all so far */
} Steps;

static bool count_step(void *user, uint64_t done, uint64_t total) {
  Steps *steps = user;
  bool first = steps->calls++ == 0;
  steps->right = steps->right && total == steps->total && (first ? !done : done > steps->last);
  steps->last = done;
  return done < steps->cancel_at;
}

/* Copies with a step of 1 MiB until cancel_at bytes are done. Without a gap all items are one run.
 * Items whose bits are set are copied. */
static void copy_in_steps(size_t gap, uint64_t cancel_at) {
  static umemCopyItem items[steps_count];
  static uint8_t done[steps_count / 8 + 1];
  SCOPED(free_bytes) unsigned char *from = malloc(steps_room), *to = calloc(2, steps_room);
  assert_true(from && to);
  memset(from, 1, steps_room);
  for (size_t i = 0; i < steps_count; i++)
    items[i] = (umemCopyItem){&host, (uintptr_t)from + i * steps_piece, &host,
                              (uintptr_t)to + i * (steps_piece + gap), steps_piece};
  Steps steps = {.total = steps_room, .cancel_at = cancel_at, .right = true};
  size_t failed = 7;
  umemCopyManyOptions options = {.size = sizeof options,
                                 .done = done,
                                 .failed = &failed,
                                 .progress = count_step,
                                 .user = &steps,
                                 .step = 1 << 20};
  bool whole = cancel_at > steps_room;
  assert_int_equal(umem_copy_many(items, steps_count, &options),
                   whole ? umemOK : umemCancelledError);
  assert_int_equal(failed, steps_count);
  assert_true(steps.right);
  assert_int_equal(steps.last, whole ? steps_room : cancel_at);
  assert_int_equal(steps.calls, steps.last / options.step + 1);
  size_t bits = count_bits(done, steps_count);
  assert_true(whole ? bits == steps_count
                    : bits * steps_piece >= cancel_at && (cancel_at || !bits));
  for (size_t i = 0; i < steps_count; i++)
    if (done[i / 8] >> i % 8 & 1)
      assert_memory_equal((void const *)items[i].dst_adr, from, steps_piece);
  FORGET(&host);
}

TEST(a_list_reports_every_step) {
  copy_in_steps(100, UINT64_MAX);
  copy_in_steps(0, UINT64_MAX);
}

TEST(a_list_that_is_cancelled_knows_what_is_done) {
  copy_in_steps(100, 9 << 20);
  copy_in_steps(0, 9 << 20); /* in the middle of the only run */
  copy_in_steps(100, 0);
}

TEST(a_short_list_that_is_cancelled_goes_no_further) {
  umemCopyItem items[10];
  uint8_t done[2];
  for (size_t i = 0; i < 10; i++) items[i] = read_of(i * 200, i * 200, 100);
  Steps steps = {.total = 1000, .cancel_at = 300, .right = true};
  umemCopyManyOptions options = {
      .size = sizeof options, .done = done, .progress = count_step, .user = &steps, .step = 100};
  assert_int_equal(umem_copy_many(items, 10, &options), umemCancelledError);
  assert_string_equal(umem_thread_message(), "umem_copy_many: cancelled after 300 of 1000 bytes");
  assert_true(steps.right && store.calls == 3);
  assert_int_equal(done[0], 7);
  FORGET(&host);
}

/* ---- a list that takes long ---- */

static unsigned slow_calls; /* atomic */
static useconds_t nap;

static void slow_copy_to(umemVirtual *ctx UNUSED, uintptr_t src_adr, umemVirtual *that UNUSED,
                         uintptr_t dst_adr, size_t nbytes) {
  usleep(nap);
  memset((void *)dst_adr, (int)(src_adr / nbytes), nbytes);
  __atomic_fetch_add(&slow_calls, 1, __ATOMIC_RELAXED);
}

static unsigned calls_before; /* the first step that is reported */

static bool note_calls(void *user UNUSED, uint64_t done, uint64_t total UNUSED) {
  if (done && !calls_before) calls_before = __atomic_load_n(&slow_calls, __ATOMIC_RELAXED);
  return true;
}

/* Steps are reported while a context copies many short runs of its own. */
TEST(a_slow_list_reports_in_time) {
  enum { count = 128, length = 256 << 10 };
  static struct umemVtbl const vtbl = {.copy_to = slow_copy_to};
  static umemCopyItem items[count];
  umemVirtual slow;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  useconds_t threads = processors < 32 ? (useconds_t)processors : 32;
  for (int concurrent = 0; concurrent < 2; concurrent++) {
    umemVirtual_ctor(&slow, &host);
    nap = concurrent ? 1000 * threads : 1000; /* 128 ms in all */
    slow.vptr = &vtbl;
    slow.capabilities |= umemOffsets | (concurrent ? umemConcurrent : 0);
    unsigned char *to = calloc(count, length + 1);
    assert_non_null(to);
    for (size_t i = 0; i < count; i++)
      items[i] = (umemCopyItem){&slow, i * length, &host, (uintptr_t)to + i * (length + 1), length};
    umemCopyManyOptions options = {.size = sizeof options, .progress = note_calls, .step = length};
    slow_calls = calls_before = 0;
    assert_int_equal(umem_copy_many(items, count, &options), umemOK);
    assert_true(slow_calls == count && calls_before > 0 && calls_before < count);
    for (size_t i = 0; i < count; i++)
      assert_int_equal(to[i * (length + 1) + length - 1], (unsigned char)i);
    umem_dtor(&slow);
    free(to);
  }
}
