/* transfer.c - umem/transfer.h: copies that go on, between any two contexts, against the copies
 * that wait. */
#include "contract.h"

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

/* ---- many at a time, of all three kinds, by several threads, against a model ---- */

enum { slot_count = 12, worker_count = 3, most_items = 40 };
typedef enum Kind { aRun, someItems, aList, kindCount } Kind;

/* Copies items of width bytes, which begin each step bytes after the one before, inside of a part
 * of the block of its own. */
typedef struct Slot {
  umemTransfer *transfer;
  Kind kind;
  size_t at, width, step, count;
  uint8_t done[most_items / 8]; /* of a list, whose items are those from the last one on */
} Slot;

/* Begins, and ends, transfers in an order of its own. */
typedef struct Worker {
  Sides *sides;
  size_t first, end; /* its slots */
  uint64_t random;
  bool right; /* all so far: CMocka cannot leave a thread */
} Worker;

static umemStatusType start_kind(Sides const *sides, Slot *slot) {
  umemVirtual *src = sides->src, *dst = sides->dst;
  uintptr_t from = sides->from + slot->at, to = sides->to + slot->at;
  ptrdiff_t const step[] = {(ptrdiff_t)slot->step};
  umemLayout const layout = {sizeof layout, slot->width, 1, &slot->count, step, step};
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  umemCopyItem items[most_items];
  if (slot->kind == aRun) return umem_start(src, from, dst, to, slot->width, NULL, &slot->transfer);
  if (slot->kind == someItems)
    return umem_start_strided(src, from, dst, to, &layout, NULL, &slot->transfer);
  for (size_t i = 0; i < slot->count; i++) {
    size_t at = (slot->count - 1 - i) * slot->step;
    items[i] = (umemCopyItem){src, from + at, dst, to + at, slot->width};
  }
  options.done = slot->done;
  return umem_start_many(items, slot->count, &options, &slot->transfer);
}

static void start_slot(Worker *worker, Slot *slot, size_t number) {
  uint64_t *random = &worker->random;
  size_t part = worker->sides->nbytes / slot_count;
  slot->kind = (Kind)below(random, kindCount);
  slot->count = slot->kind == aRun ? 1 : 1 + below(random, most_items);
  slot->width = 1 + below(random, part / slot->count);
  slot->step = slot->width + below(random, part / slot->count - slot->width + 1);
  size_t length = (slot->count - 1) * slot->step + slot->width;
  slot->at = number * part + below(random, part - length + 1);
  worker->right = worker->right && start_kind(worker->sides, slot) == umemOK;
}

/* Whether item i is there, if so many bytes are. */
static bool has_item(Slot const *slot, size_t i, uint64_t done) {
  size_t bit = slot->count - 1 - i;
  return slot->kind == aList ? slot->done[bit / 8] >> bit % 8 & 1 : done >= (i + 1) * slot->width;
}

/* Does to the model what was done; what nothing is known of is copied now. */
static void copy_to_model(Worker *worker, Slot const *slot, uint64_t done) {
  Sides *sides = worker->sides;
  for (size_t i = 0; i < slot->count; i++) {
    size_t at = slot->at + i * slot->step;
    bool there = has_item(slot, i, done);
    if (!there && slot->kind == aList)
      there = umem_copy_to(sides->src, sides->from + at, sides->dst, sides->to + at, slot->width) ==
              umemOK;
    worker->right = worker->right && (there || slot->kind != aList);
    if (there) memcpy(sides->model + at, sides->bytes + at, slot->width);
  }
}

static void end_slot(Worker *worker, Slot *slot) {
  uint64_t *random = &worker->random, done = 0, total = 0;
  umemTransfer *transfer = slot->transfer;
  bool cancels = below(random, 4) == 0, waits = below(random, 2);
  if (cancels) umemTransfer_cancel(transfer);
  if (waits) umemTransfer_wait_for(transfer, below(random, 100000));
  umemStatusType status = umemTransfer_wait(transfer);
  umemTransfer_progress(transfer, &done, &total);
  worker->right = worker->right && umemTransfer_poll(transfer) &&
                  (status == umemOK || (cancels && status == umemCancelledError)) &&
                  total == slot->count * slot->width && (done == total) == (status == umemOK);
  umem_thread_clear();
  worker->right = umemTransfer_release(transfer) == umemOK && worker->right;
  slot->transfer = NULL;
  copy_to_model(worker, slot, done);
}

static void *start_and_end(void *argument) {
  Worker *worker = argument;
  Slot slots[slot_count] = {{.transfer = NULL}};
  size_t rounds = (test_is_small() ? 4 : 6) * (worker->end - worker->first);
  for (size_t i = 0; worker->right && i < rounds; i++) {
    size_t k = worker->first + below(&worker->random, worker->end - worker->first);
    if (slots[k].transfer)
      end_slot(worker, &slots[k]);
    else
      start_slot(worker, &slots[k], k);
  }
  for (size_t k = worker->first; k < worker->end; k++)
    if (slots[k].transfer) end_slot(worker, &slots[k]);
  return NULL;
}

static void run_workers(Sides *sides, size_t count, uint64_t seed) {
  pthread_t threads[worker_count];
  Worker workers[worker_count];
  for (size_t i = 0; i < count; i++) {
    size_t first = slot_count / count * i;
    workers[i] = (Worker){sides, first, first + slot_count / count, seed + i, true};
    if (i) assert_int_equal(pthread_create(&threads[i], NULL, start_and_end, &workers[i]), 0);
  }
  start_and_end(&workers[0]);
  for (size_t i = 1; i < count; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < count; i++) assert_true(workers[i].right);
  if (umem_get_status(sides->dst) == umemCancelledError) umem_clear_status(sides->dst);
  if (umem_get_status(sides->src) == umemCancelledError) umem_clear_status(sides->src);
}

PAIR(random_transfers_follow_the_model) {
  bool shared = src->ctx->capabilities & dst->ctx->capabilities & umemConcurrent;
  Sides sides = open_sides(src->ctx, dst->ctx, slot_count * (test_is_small() ? 5000 : 100000));
  for (uint64_t seed = 7; seed < 9; seed++) run_workers(&sides, shared ? worker_count : 1, seed);
  settle(sides.src, sides.dst);
  assert_holds(sides.dst, sides.to, sides.model, sides.nbytes);
  assert_holds(sides.src, sides.from, sides.bytes, sides.nbytes);
  close_sides(&sides);
}

/* ---- the end of blocks ---- */

/* No byte is copied from or to memory that may be that of others by then. */
PAIR(who_frees_a_block_waits_for_its_transfers) {
  for (int frees_source = 0; frees_source < 2; frees_source++) {
    Sides sides = open_sides(src->ctx, dst->ctx, 300000);
    umemVirtual *ctx = frees_source ? sides.src : sides.dst;
    bool queued = ctx->capabilities & umemOrdered;
    umemTransfer *transfer = start(&sides, 0, sides.nbytes);
    umem_free(ctx, frees_source ? sides.from : sides.to);
    if (!queued) expect_done(transfer, sides.nbytes);
    assert_ok(umemTransfer_release(transfer));
    *(frees_source ? &sides.from : &sides.to) = umem_null(ctx);
    close_sides(&sides);
  }
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
  SCOPED_BYTES(unsigned char, zeros, sides.nbytes);
  assert_ok(umem_set(sides.src, sides.from, 0, sides.nbytes));
  settle(sides.src, sides.src);
  umemTransfer *transfer = start(&sides, 0, sides.nbytes);
  if (!(dst->ctx->capabilities & umemOrdered)) assert_ok(umemTransfer_wait(transfer));
  assert_ok(umem_set(sides.dst, sides.to, 9, 1000));
  assert_ok(umemTransfer_release(transfer));
  memset(zeros, 9, 1000);
  settle(sides.src, sides.dst);
  assert_holds(sides.dst, sides.to, zeros, sides.nbytes);
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
  uintptr_t adr = own_block(ctx, 100);
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
