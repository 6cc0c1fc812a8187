/* progress.c - umem/copy.h: umem_copy_to_with. */
#include "contract.h"

/* What the callback is to do, and what it was passed. */
typedef struct Watch {
  umemVirtual *dst; /* where it looks for the bytes that are reported; NULL: it does not look */
  uintptr_t to;
  unsigned char const *bytes; /* that should be there */
  uint64_t total;
  uint64_t cancel_at; /* the first done at which it returns false */
  bool fails;         /* whether it fails itself, in a way that is not the copy's */
  uint64_t last;      /* done of the last call */
  int calls;          /* without those that repeat the last one */
  bool waits;         /* for a server */
  bool right;         /* all so far: cmocka must not jump out of a callback */
} Watch;

/* Where the CPU can look by itself it does so without waiting for anything. */
static bool is_there(Watch const *self, uint64_t done) {
  if (self->dst->capabilities & umemCpuReadable)
    return !memcmp((void const *)self->to, self->bytes, done);
  return holds(self->dst, self->to, self->bytes, done);
}

/* While a server sends nothing, as on a busy machine, the last call is repeated. */
static bool is_repeated(Watch const *self, uint64_t done) {
  return self->waits && self->calls && done == self->last;
}

static bool watch(void *user, uint64_t done, uint64_t total) {
  Watch *self = user;
  if (is_repeated(self, done)) return done < self->cancel_at;
  bool first = self->calls++ == 0;
  self->right = self->right && total == self->total && done <= total;
  self->right = self->right && (first ? done == 0 : done > self->last);
  self->last = done;
  if (self->dst && done) self->right = self->right && is_there(self, done);
  if (self->fails) umem_set_status(NULL, umemTypeError, "of the program's own");
  return done < self->cancel_at;
}

/* Two blocks: the source filled, all of the destination 0xee; and what they hold. */
typedef struct Blocks {
  umemVirtual *src, *dst;
  size_t size;
  uintptr_t from, to;
  unsigned char *bytes;
  Watch watch;
  umemCopyOptions options;
} Blocks;

static void fill_destination(Blocks *blocks) {
  SCOPED_BYTES(unsigned char, other, blocks->size);
  memset(other, 0xee, blocks->size);
  put(blocks->dst, blocks->to, other, blocks->size);
}

/* The copies of the tests leave the last byte out. */
static Blocks open_blocks(Place const *from, Place const *to, size_t nbytes, size_t step) {
  umemVirtual *src = from->ctx, *dst = to->ctx;
  Blocks blocks = {.src = src, .dst = dst, .size = nbytes + 1, .bytes = new_bytes(nbytes + 1, 1)};
  blocks.from = new_block(src, blocks.size);
  blocks.to = new_block(dst, blocks.size);
  put(src, blocks.from, blocks.bytes, blocks.size);
  fill_destination(&blocks);
  blocks.watch = (Watch){.dst = dst,
                         .to = blocks.to,
                         .bytes = blocks.bytes,
                         .total = nbytes,
                         .cancel_at = UINT64_MAX,
                         .waits = (from->row->traits | to->row->traits) & backendWaits,
                         .right = true};
  blocks.options = (umemCopyOptions)UMEM_COPY_OPTIONS_INIT;
  blocks.options.progress = watch;
  blocks.options.step = step;
  return blocks;
}

static umemStatusType copy(Blocks *blocks) {
  Watch *watch = &blocks->watch;
  watch->calls = 0;
  watch->last = 0;
  blocks->options.user = watch;
  return umem_copy_to_with(blocks->src, blocks->from, blocks->dst, blocks->to, (size_t)watch->total,
                           &blocks->options);
}

/* The first nbytes of the destination are the source's, the others as before. */
static void check_destination(Blocks *blocks, size_t nbytes) {
  SCOPED_BYTES(unsigned char, expected, blocks->size);
  memset(expected, 0xee, blocks->size);
  memcpy(expected, blocks->bytes, nbytes);
  assert_holds(blocks->dst, blocks->to, expected, blocks->size);
  assert_holds(blocks->src, blocks->from, blocks->bytes, blocks->size);
}

static void close_blocks(Blocks *blocks) {
  umem_free(blocks->src, blocks->from);
  umem_free(blocks->dst, blocks->to);
  free(blocks->bytes);
}

/* ---- progress ---- */

PAIR(reports_every_step) {
  size_t const nbytes = 10007, steps[] = {1009, 4096, 10006, 10007, 10008, SIZE_MAX};
  int const calls[] = {11, 4, 3, 2, 2, 2};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    Blocks blocks = open_blocks(src, dst, nbytes, steps[i]);
    assert_ok(copy(&blocks));
    assert_true(blocks.watch.right);
    assert_true(blocks.watch.last == nbytes);
    assert_int_equal(blocks.watch.calls, calls[i]);
    check_destination(&blocks, nbytes);
    close_blocks(&blocks);
  }
}

SINGLE(steps_may_be_single_bytes) {
  SCOPED(close_blocks) Blocks blocks = open_blocks(place, place, 37, 1);
  assert_ok(copy(&blocks));
  assert_true(blocks.watch.right);
  assert_int_equal(blocks.watch.calls, 38);
  check_destination(&blocks, 37);
}

PAIR(umem_chooses_the_step) {
  size_t nbytes = test_large_size() + 1;
  SCOPED(close_blocks) Blocks blocks = open_blocks(src, dst, nbytes, 0);
  assert_ok(copy(&blocks));
  assert_true(blocks.watch.right);
  assert_true(blocks.watch.last == nbytes);
  check_destination(&blocks, nbytes);
}

SINGLE(nothing_is_done_at_once) {
  SCOPED(close_blocks) Blocks blocks = open_blocks(place, place, 0, 100);
  blocks.watch.cancel_at = 0; /* there is nothing to cancel */
  assert_ok(copy(&blocks));
  assert_true(blocks.watch.right);
  assert_int_equal(blocks.watch.calls, 1);
  check_destination(&blocks, 0);
}

PAIR(progress_may_be_left_out) {
  SCOPED(close_blocks) Blocks blocks = open_blocks(src, dst, 5000, 100);
  assert_ok(umem_copy_to_with(src->ctx, blocks.from, dst->ctx, blocks.to, 5000, NULL));
  settle(src->ctx, dst->ctx);
  check_destination(&blocks, 5000);
  fill_destination(&blocks);
  blocks.options.progress = NULL;
  assert_ok(copy(&blocks));
  settle(src->ctx, dst->ctx);
  check_destination(&blocks, 5000);
}

PAIR(the_program_may_fail_meanwhile) {
  SCOPED(close_blocks) Blocks blocks = open_blocks(src, dst, 5000, 1000);
  blocks.watch.fails = true;
  uint64_t failures = umem_thread_failures();
  assert_ok(copy(&blocks));
  assert_true(umem_thread_failures() == failures);
  assert_true(blocks.watch.right);
  assert_int_equal(blocks.watch.calls, 6);
  assert_string_equal(umem_thread_message(), "of the program's own");
  umem_thread_clear();
  check_destination(&blocks, 5000);
}

/* ---- cancelling ---- */

PAIR(a_copy_may_be_cancelled) {
  uint64_t const when[] = {0, 1000, 4000};
  for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
    Blocks blocks = open_blocks(src, dst, 5000, 1000);
    blocks.watch.cancel_at = when[i];
    assert_int_equal(copy(&blocks), umemCancelledError);
    assert_true(blocks.watch.right);
    assert_true(blocks.watch.last == when[i]);
    char words[80];
    snprintf(words, sizeof words, "umem_copy_to_with: cancelled after %d of 5000 bytes",
             (int)when[i]);
    assert_non_null(strstr(umem_get_message(dst->ctx), words));
    if (src->ctx != dst->ctx) assert_true(umem_is_ok(src->ctx));
    expect_failure(dst->ctx, umemCancelledError);
    check_destination(&blocks, (size_t)when[i]);
    blocks.watch.cancel_at = UINT64_MAX; /* both can be used on */
    assert_ok(copy(&blocks));
    assert_true(blocks.watch.right);
    check_destination(&blocks, 5000);
    close_blocks(&blocks);
  }
}

PAIR(the_end_cannot_be_cancelled) {
  SCOPED(close_blocks) Blocks blocks = open_blocks(src, dst, 5000, 1000);
  blocks.watch.cancel_at = 5000;
  assert_ok(copy(&blocks));
  check_destination(&blocks, 5000);
}

/* ---- refusals ---- */

PAIR(small_options_are_refused) {
  SCOPED(close_blocks) Blocks blocks = open_blocks(src, dst, 5000, 1000);
  size_t const sizes[] = {0, sizeof(size_t) - 1};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    blocks.options.size = sizes[i];
    expect_status(src->ctx, copy(&blocks), umemValueError);
  }
  assert_int_equal(blocks.watch.calls, 0);
  check_destination(&blocks, 0);
  blocks.options.size = offsetof(umemCopyOptions, progress); /* of an earlier version */
  assert_ok(copy(&blocks));                                  /* as umem_copy_to: queued */
  assert_ok(umem_synchronize(src->ctx));
  assert_ok(umem_synchronize(dst->ctx));
  assert_int_equal(blocks.watch.calls, 0);
  check_destination(&blocks, 5000);
  blocks.options.size = sizeof(umemCopyOptions) + 100; /* of a later version */
  assert_ok(copy(&blocks));
  check_destination(&blocks, 5000);
}

/* Three steps fit into the block, the fourth does not. */
SINGLE_WITH(a_failure_ends_it, backendKeepsRecords) {
  SCOPED(close_blocks) Blocks blocks = open_blocks(place, place, 2999, 1000);
  SCOPED(free_bytes) unsigned char *bytes = new_bytes(5000, 1);
  blocks.watch.total = 5000;
  blocks.options.user = &blocks.watch;
  expect_status(
      ctx, umem_copy_to_with(&test_host, (uintptr_t)bytes, ctx, blocks.to, 5000, &blocks.options),
      umemIndexError);
  assert_true(blocks.watch.right);
  assert_true(blocks.watch.last == 3000);
  assert_int_equal(blocks.watch.calls, 4);
}

/* The whole range is looked at before the first byte moves. */
SINGLE(bad_ranges_copy_nothing) {
  SCOPED(close_blocks) Blocks blocks = open_blocks(place, place, 5000, 10);
  umemCopyOptions *options = &blocks.options;
  options->user = &blocks.watch;
  uintptr_t from = blocks.from, to = blocks.to;
  size_t too_much = SIZE_MAX - 100;
  expect_status(&test_host.super,
                umem_copy_to_with(ctx, from, &test_host, UINTPTR_MAX - 50, 5000, options),
                umemValueError);
  expect_status(ctx, umem_copy_to_with(ctx, UINTPTR_MAX - 50, ctx, to, 5000, options),
                umemValueError);
  assert_int_equal(umem_copy_to_with(ctx, from, ctx, umem_null(ctx), 10, options), umemValueError);
  expect_failure(ctx, umemValueError);
  assert_int_equal(umem_copy_to_with(&test_host, 4096, ctx, to, too_much, options), umemValueError);
  FORGET(&test_host, ctx);
  expect_status(NULL, umem_copy_to_with(ctx, from, NULL, to, 10, options), umemValueError);
  assert_int_equal(blocks.watch.calls, 0);
  check_destination(&blocks, 0);
}

SUITE(progress)
