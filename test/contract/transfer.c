/* transfer.c - umem/transfer.h: copies that go on, between any two contexts, against the copies
 * that wait. */
#include "contract.h"

#include <pthread.h>

#include "random.h"

/* Two blocks, and the same bytes in the test. */
typedef struct Sides {
  umemVirtual *src, *dst;
  size_t nbytes;
  uintptr_t from, to;
  unsigned char *bytes, *model;
} Sides;

static Sides open_sides(umemVirtual *src, umemVirtual *dst, size_t nbytes) {
  Sides sides = {.src = src, .dst = dst, .nbytes = nbytes};
  sides.bytes = new_bytes(nbytes, 1);
  sides.model = new_bytes(nbytes, 2);
  sides.from = new_block(src, nbytes);
  sides.to = new_block(dst, nbytes);
  put(src, sides.from, sides.bytes, nbytes);
  put(dst, sides.to, sides.model, nbytes);
  return sides;
}

static void close_sides(Sides *sides) {
  umem_free(sides->src, sides->from);
  umem_free(sides->dst, sides->to);
  free(sides->bytes);
  free(sides->model);
}

static umemTransfer *start(Sides const *sides, size_t at, size_t nbytes) {
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(sides->src, sides->from + at, sides->dst, sides->to + at, nbytes, NULL,
                       &transfer));
  assert_non_null(transfer);
  return transfer;
}

static void expect_done(umemTransfer *transfer, size_t nbytes) {
  uint64_t done, total;
  assert_true(umemTransfer_poll(transfer));
  assert_ok(umemTransfer_progress(transfer, &done, &total));
  assert_true(done == nbytes && total == nbytes);
}

PAIR(copies_every_size) {
  static size_t const sizes[] = {0, 1, 4097, 100003, 1 << 20};
  size_t count = test_is_small() ? 4 : 5;
  for (size_t i = 0; i < count; i++) {
    Sides sides = open_sides(src->ctx, dst->ctx, sizes[i] + 1);
    umemTransfer *transfer = start(&sides, 0, sizes[i]);
    assert_ok(umemTransfer_wait(transfer));
    expect_done(transfer, sizes[i]);
    memcpy(sides.model, sides.bytes, sizes[i]);
    assert_holds(sides.dst, sides.to, sides.model, sides.nbytes);
    assert_ok(umemTransfer_wait(transfer));
    assert_ok(umemTransfer_release(transfer));
    close_sides(&sides);
  }
}

PAIR(ends_without_a_wait) {
  Sides sides = open_sides(src->ctx, dst->ctx, 100003);
  umemTransfer *transfer = start(&sides, 0, sides.nbytes);
  while (!umemTransfer_poll(transfer)) sched_yield();
  expect_done(transfer, sides.nbytes);
  assert_ok(umemTransfer_release(transfer));
  assert_holds(sides.dst, sides.to, sides.bytes, sides.nbytes);
  transfer = start(&sides, 0, sides.nbytes);
  while (!umemTransfer_wait_for(transfer, 1000)) continue;
  assert_ok(umemTransfer_release(transfer));
  assert_ok(umemTransfer_release(start(&sides, 0, sides.nbytes)));
  close_sides(&sides);
}

/* ---- many at a time, against a model ---- */

enum { slots = 12 };

typedef struct Slot {
  umemTransfer *transfer;
  size_t at, nbytes;
} Slot;

/* Ends a transfer, and does to the model what it has done. */
static void end_slot(Sides *sides, Slot *slot, uint64_t *random) {
  bool cancels = below(random, 4) == 0;
  uint64_t done;
  if (cancels) umemTransfer_cancel(slot->transfer);
  if (below(random, 2)) umemTransfer_wait_for(slot->transfer, below(random, 100000));
  umemStatusType status = umemTransfer_wait(slot->transfer);
  assert_ok(umemTransfer_progress(slot->transfer, &done, NULL));
  if (cancels && status == umemCancelledError)
    expect_failure(sides->dst, umemCancelledError);
  else
    assert_int_equal(status, umemOK);
  assert_true(done <= slot->nbytes && (done == slot->nbytes) == (status == umemOK));
  memcpy(sides->model + slot->at, sides->bytes + slot->at, done);
  assert_ok(umemTransfer_release(slot->transfer));
  slot->transfer = NULL;
}

/* Each slot copies inside a part of the block of its own. */
static void start_slot(Sides *sides, Slot *slot, size_t number, uint64_t *random) {
  size_t part = sides->nbytes / slots;
  slot->nbytes = 1 + below(random, part);
  slot->at = number * part + below(random, part - slot->nbytes + 1);
  slot->transfer = start(sides, slot->at, slot->nbytes);
}

PAIR(random_transfers_follow_the_model) {
  Sides sides = open_sides(src->ctx, dst->ctx, slots * (test_is_small() ? 5000 : 100000));
  Slot slot[slots] = {{NULL, 0, 0}};
  uint64_t random = 7;
  int rounds = test_is_small() ? 40 : 100;
  for (int i = 0; i < rounds; i++) {
    size_t k = below(&random, slots);
    if (slot[k].transfer)
      end_slot(&sides, &slot[k], &random);
    else
      start_slot(&sides, &slot[k], k, &random);
  }
  for (size_t k = 0; k < slots; k++)
    if (slot[k].transfer) end_slot(&sides, &slot[k], &random);
  settle(sides.src, sides.dst);
  assert_holds(sides.dst, sides.to, sides.model, sides.nbytes);
  assert_holds(sides.src, sides.from, sides.bytes, sides.nbytes);
  close_sides(&sides);
}

/* ---- items ---- */

/* Every second row of half of a cube, from behind. */
PAIR(copies_items_as_copies_do) {
  enum { edge = 20, item = 6 };
  size_t const extents[] = {edge, edge / 2, edge};
  ptrdiff_t const strides[] = {-edge * edge * item, 2 * edge * item, item};
  umemLayout layout = {sizeof layout, item, 3, extents, strides, NULL};
  Sides sides = open_sides(src->ctx, dst->ctx, edge * edge * edge * item);
  uintptr_t last = sides.from + (edge - 1) * edge * edge * item;
  umemTransfer *transfer;
  assert_ok(umem_start_strided(sides.src, last, sides.dst, sides.to, &layout, NULL, &transfer));
  assert_ok(umemTransfer_wait(transfer));
  expect_done(transfer, sides.nbytes / 2);
  assert_ok(umemTransfer_release(transfer));
  uintptr_t again = new_block(sides.dst, sides.nbytes);
  unsigned char *expected = malloc(sides.nbytes);
  put(sides.dst, again, sides.model, sides.nbytes);
  assert_ok(umem_copy_strided(sides.src, last, sides.dst, again, &layout));
  settle(sides.src, sides.dst);
  get(sides.dst, again, expected, sides.nbytes);
  assert_holds(sides.dst, sides.to, expected, sides.nbytes);
  free(expected);
  umem_free(sides.dst, again);
  close_sides(&sides);
}

/* ---- from many threads ---- */

enum { thread_count = 4 };

typedef struct Part {
  Sides const *sides;
  size_t number;
  bool right;
} Part;

static void *copy_part(void *argument) {
  Part *part = argument;
  Sides const *sides = part->sides;
  size_t nbytes = sides->nbytes / thread_count, at = part->number * nbytes;
  int rounds = test_is_small() ? 5 : 20;
  part->right = true;
  for (int i = 0; i < rounds; i++) {
    umemTransfer *transfer;
    part->right = part->right &&
                  umem_start(sides->src, sides->from + at, sides->dst, sides->to + at, nbytes, NULL,
                             &transfer) == umemOK &&
                  umemTransfer_wait(transfer) == umemOK && umemTransfer_release(transfer) == umemOK;
  }
  return NULL;
}

PAIR_IF(many_threads_start_and_wait, umemConcurrent) {
  Sides sides = open_sides(src->ctx, dst->ctx, thread_count * 40000);
  pthread_t threads[thread_count];
  Part parts[thread_count];
  for (size_t i = 0; i < thread_count; i++) {
    parts[i] = (Part){&sides, i, false};
    assert_int_equal(pthread_create(&threads[i], NULL, copy_part, &parts[i]), 0);
  }
  for (size_t i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < thread_count; i++) assert_true(parts[i].right);
  settle(sides.src, sides.dst);
  assert_holds(sides.dst, sides.to, sides.bytes, sides.nbytes);
  close_sides(&sides);
}

/* ---- the order of a queue ---- */

PAIR(follows_earlier_work_and_precedes_later_work) {
  Sides sides = open_sides(src->ctx, dst->ctx, 50000);
  unsigned char *zeros = calloc(1, sides.nbytes);
  assert_non_null(zeros);
  assert_ok(umem_set(sides.src, sides.from, 0, sides.nbytes));
  settle(sides.src, sides.src);
  umemTransfer *transfer = start(&sides, 0, sides.nbytes);
  if (!(dst->ctx->capabilities & umemOrdered)) assert_ok(umemTransfer_wait(transfer));
  assert_ok(umem_set(sides.dst, sides.to, 9, 1000));
  assert_ok(umemTransfer_release(transfer));
  memset(zeros, 9, 1000);
  settle(sides.src, sides.dst);
  assert_holds(sides.dst, sides.to, zeros, sides.nbytes);
  free(zeros);
  close_sides(&sides);
}

/* ---- refusals ---- */

static bool never(void *user, uint64_t done, uint64_t total) {
  (void)user, (void)done, (void)total;
  return false;
}

SINGLE(refuses_what_copies_refuse) {
  umemTransfer *transfer = (umemTransfer *)ctx;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  uintptr_t adr = new_block(ctx, 100);
  umemStatusType status = umem_start(ctx, umem_null(ctx), ctx, adr, 10, NULL, &transfer);
  assert_null(transfer);
  expect_status(ctx, status, umemValueError);
  status = umem_start(ctx, adr, NULL, adr, 10, NULL, &transfer);
  expect_status(NULL, status, umemValueError);
  status = umem_start(ctx, adr, ctx, adr, 10, NULL, NULL);
  expect_status(NULL, status, umemValueError);
  options.progress = never;
  status = umem_start(ctx, adr, ctx, adr, 10, &options, &transfer);
  expect_status(ctx, status, umemValueError);
  options = (umemCopyOptions){.size = 3};
  status = umem_start(ctx, adr, ctx, adr, 10, &options, &transfer);
  expect_status(ctx, status, umemValueError);
  status = umem_start_strided(ctx, adr, ctx, adr, NULL, NULL, &transfer);
  expect_status(ctx, status, umemValueError);
  assert_null(transfer);
  umem_free(ctx, adr);
}

ONCE(null_is_no_transfer) {
  assert_ok(umemTransfer_release(NULL));
  assert_true(umemTransfer_poll(NULL));
  assert_true(umemTransfer_wait_for(NULL, 0));
  umemTransfer_cancel(NULL);
  expect_status(NULL, umemTransfer_wait(NULL), umemValueError);
  expect_status(NULL, umemTransfer_progress(NULL, NULL, NULL), umemValueError);
  assert_int_equal(umemTransfer_descriptor(NULL), -1);
  expect_failure(NULL, umemValueError);
}

/* ---- routes ---- */

PAIR(writes_its_route) {
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.route = &route;
  Sides sides = open_sides(src->ctx, dst->ctx, 50000);
  umemTransfer *transfer;
  assert_ok(
      umem_start(sides.src, sides.from, sides.dst, sides.to, sides.nbytes, &options, &transfer));
  assert_ok(umemTransfer_release(transfer));
  assert_true(route.bytes == sides.nbytes);
  assert_true(route.leg_count > 0);
  close_sides(&sides);
}

SUITE(transfer)
