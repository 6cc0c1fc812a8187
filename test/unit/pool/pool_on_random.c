/* pool_on_random.c - views of a pool against a naive model, on a device that records the order of
 * work: no block may be given to a queue that is not ordered after all who had its memory before.
 *
 * The number of random operations comes from UMEM_TEST_OPERATIONS (a tenth of that; 300000 when
 * unset). */
#include "pool_help.h"

#include "fake/clocks.h"

enum {
  most_live = 800,
  views = clockQueues - 1,
  pool_itself = views,
  grains = clockBytes / clockGrain
};

typedef struct Block {
  uintptr_t adr;
  size_t size;
  unsigned users; /* bit q: queue q has used it */
} Block;

typedef struct Model {
  Clocks *clocks;
  ClockQueue base;         /* what the pool stands on: queue 0, or none */
  ClockQueue queue[views]; /* 1, 2, ... */
  umemPoolOn view[views];
  size_t order[views]; /* whose queue view i is in the order of */
  umemPool pool;
  bool ordered; /* base is */
  bool failing; /* now and then waiting fails */
  bool marks;   /* the queues have some: a call on one view must not use the queue of another */
  size_t maximum;
  Block blocks[most_live];
  size_t count;
  bool taken[grains]; /* by a live block */
  uintptr_t freed[64];
  uint64_t random, seed, operation;
  char const *race;
} Model;

#define CHECK(condition) check_operation(condition, model->seed, model->operation)

/* View i, or the pool itself. */
static void *context(Model *model, size_t i) {
  return i == pool_itself ? (void *)&model->pool : (void *)&model->view[i];
}

/* Its queue. */
static ClockQueue *queue_of(Model *model, size_t i) {
  return i == pool_itself ? &model->base : &model->queue[model->order[i]];
}

/* The next calls are those of this view, or of the pool. */
static void call_of(Model *model, size_t who) {
  ClockQueue *queue = queue_of(model, who);
  clocks_allow(model->clocks, queue->number < 0 ? 1U : 1U << queue->number | 1U);
}

static void call_of_all(Model *model) { clocks_allow(model->clocks, ~0U); }

/* ---- live blocks ---- */

static void mark(Model *model, Block const *block, bool taken) {
  size_t first = (block->adr - clock_base) / clockGrain;
  for (size_t i = first; i < first + (block->size + clockGrain - 1) / clockGrain; i++) {
    CHECK(model->taken[i] == !taken);
    model->taken[i] = taken;
  }
}

/* Work of that queue on the block. */
static void use(Model *model, size_t who, Block *block) {
  ClockQueue *queue = queue_of(model, who);
  clock_use(queue, block->adr, block->size);
  if (queue->number >= 0) block->users |= 1U << queue->number;
}

/* What a program does before another queue uses, or frees, the block. */
static void order(Model *model, size_t who, Block const *block) {
  ClockQueue *queue = queue_of(model, who);
  call_of_all(model);
  for (size_t i = 0; i <= views; i++) {
    ClockQueue *other = i == views ? &model->base : &model->queue[i];
    if (other == queue || other->number < 0 || !(block->users >> other->number & 1)) continue;
    if (queue->number < 0)
      CHECK(umem_synchronize(other) == umemOK);
    else
      CHECK(umem_wait(queue, other) == umemOK);
  }
}

/* ---- operations ---- */

static size_t anyone(Model *model) { return below(&model->random, views + 1); }

static void forgive(Model *model, void *ctx) {
  umem_clear_status(ctx);
  umem_clear_status(&model->base);
  for (size_t i = 0; i < views; i++) umem_clear_status(&model->queue[i]);
  umem_thread_clear();
}

static void do_alloc(Model *model) {
  size_t who = anyone(model),
         size = random_size(&model->random, below(&model->random, 10) ? 14 : 20);
  if (!below(&model->random, 20)) size += 100000;
  void *ctx = context(model, who);
  bool fails = model->failing && !below(&model->random, 4);
  if (fails) clocks_fail_waits(model->clocks, 1 + (unsigned)below(&model->random, 3));
  call_of(model, who);
  uintptr_t adr = below(&model->random, 20)
                      ? umem_alloc(ctx, size)
                      : umem_aligned_alloc(ctx, (size_t)1 << below(&model->random, 18), size);
  clocks_fail_waits(model->clocks, 0);
  if (!adr) {
    CHECK(fails || umem_thread_status() == umemMemoryError);
    CHECK(umem_get_status(ctx) == umem_thread_status());
    forgive(model, ctx);
    return;
  }
  CHECK(adr % clockGrain == 0);
  Block *block = &model->blocks[model->count++];
  *block = (Block){adr, size, 0};
  mark(model, block, true);
  use(model, who, block);
}

static void do_use(Model *model) {
  Block *block = &model->blocks[below(&model->random, model->count)];
  size_t who = anyone(model);
  order(model, who, block);
  use(model, who, block);
}

/* Most often in the order of the only queue that has used it. */
static size_t who_frees(Model *model, Block const *block) {
  if (below(&model->random, 8) == 0) return anyone(model);
  for (size_t i = 0; i <= views; i++)
    if (queue_of(model, i)->number >= 0 && block->users >> queue_of(model, i)->number & 1) return i;
  return pool_itself;
}

static void do_free(Model *model) {
  size_t at = below(&model->random, model->count);
  Block *block = &model->blocks[at];
  size_t who = who_frees(model, block);
  order(model, who, block);
  call_of(model, who);
  umem_free(context(model, who), block->adr);
  CHECK(umem_is_ok(context(model, who)));
  mark(model, block, false);
  model->freed[below(&model->random, 64)] = block->adr;
  *block = model->blocks[--model->count];
}

static void do_wrong_free(Model *model) {
  uintptr_t adr = model->freed[below(&model->random, 64)];
  size_t who = anyone(model);
  void *ctx = context(model, who);
  if (!adr) return;
  for (size_t i = 0; i < model->count; i++)
    if (model->blocks[i].adr == adr) return;
  uint64_t before = umem_thread_failures();
  call_of(model, who);
  umem_free(ctx, adr);
  CHECK(umem_thread_failures() == before + 1 && umem_thread_status() == umemValueError);
  forgive(model, ctx);
}

static void do_trim(Model *model) {
  size_t who = anyone(model);
  void *ctx = context(model, who);
  call_of(model, who);
  if (model->failing) clocks_fail_waits(model->clocks, (unsigned)below(&model->random, 3));
  umemStatusType status = umem_trim(ctx, below(&model->random, 4) ? 0 : 1 << 20);
  clocks_fail_waits(model->clocks, 0);
  CHECK(status == umemOK || model->failing);
  forgive(model, ctx);
}

static void do_reopen(Model *model) {
  size_t i = below(&model->random, views);
  if (model->failing) clocks_fail_waits(model->clocks, (unsigned)below(&model->random, 2));
  call_of(model, i);
  umem_dtor(&model->view[i]);
  clocks_fail_waits(model->clocks, 0);
  forgive(model, &model->view[i]);
  model->order[i] = below(&model->random, views);
  CHECK(umemPoolOn_ctor(&model->view[i], &model->pool, queue_of(model, i)) == umemOK);
}

static void do_check(Model *model) {
  umemPoolStats stats = stats_of(&model->pool);
  uint64_t bytes = 0;
  for (size_t i = 0; i < model->count; i++) bytes += model->blocks[i].size;
  CHECK(stats.blocks == model->count);
  CHECK(stats.used >= bytes && stats.used <= stats.reserved);
  CHECK(stats.reserved == clocks_allocated(model->clocks));
  CHECK(!model->maximum || stats.reserved_peak <= model->maximum);
}

static void operate(Model *model) {
  size_t choice = below(&model->random, 1000);
  size_t frees = model->operation >> 12 & 1 ? 550 : 350;
  if (model->count && (choice < frees || model->count == most_live))
    do_free(model);
  else if (choice < frees + 30)
    do_wrong_free(model);
  else if (model->count && choice < frees + 60)
    do_use(model);
  else if (choice < frees + 62)
    do_trim(model);
  else if (choice < frees + 64)
    do_reopen(model);
  else if (model->count < most_live)
    do_alloc(model);
  if (model->operation % 5003 == 0) do_check(model);
}

/* ---- runs ---- */

static Model *new_model(uint64_t seed, bool ordered, size_t maximum, bool marks) {
  Model *model = calloc(1, sizeof *model);
  assert_non_null(model);
  model->clocks = clocks_create();
  assert_non_null(model->clocks);
  model->seed = model->random = seed;
  model->ordered = ordered;
  model->maximum = maximum;
  model->marks = marks;
  assert_ok(clock_queue_ctor(&model->base, model->clocks, ordered ? 0 : -1));
  if (marks) clock_queue_have_marks(&model->base); /* as all queues of one memory */
  open_pool(&model->pool, &model->base, 0, 1 << 20, maximum);
  for (int i = 0; i < views; i++) {
    assert_ok(clock_queue_ctor(&model->queue[i], model->clocks, i + 1));
    if (marks) clock_queue_have_marks(&model->queue[i]);
    model->order[i] = (size_t)i;
    assert_ok(umemPoolOn_ctor(&model->view[i], &model->pool, &model->queue[i]));
  }
  return model;
}

static void end_model(Model *model) {
  for (size_t i = 0; i < views; i++) umem_dtor(&model->view[i]);
  umem_dtor(&model->pool);
  for (size_t i = 0; i < views; i++) umem_dtor(&model->queue[i]);
  umem_dtor(&model->base);
  clocks_destroy(model->clocks);
  free(model);
}

static void run_with(uint64_t seed, bool ordered, size_t maximum, bool failing, bool marks,
                     uint64_t count) {
  Model *model = new_model(seed, ordered, maximum, marks);
  model->failing = failing;
  for (; model->operation < count; model->operation++) {
    operate(model);
    char const *race = clocks_race(model->clocks);
    if (race)
      fail_msg("seed %ju, operation %ju: %s", (uintmax_t)seed, (uintmax_t)model->operation, race);
  }
  do_check(model);
  model->failing = false;
  while (model->count) do_free(model);
  for (size_t i = 0; i < views; i++) {
    call_of(model, i);
    assert_ok(umem_trim(&model->view[i], 0));
  }
  expect_nothing_left(&model->pool);
  call_of_all(model);
  assert_null(clocks_race(model->clocks));
  end_model(model);
}

/* With and without marks. */
static void run(uint64_t seed, bool ordered, size_t maximum, bool failing, uint64_t count) {
  run_with(seed, ordered, maximum, failing, false, count / 2);
  run_with(seed, ordered, maximum, failing, true, count / 2);
}

TEST_CASE(over_what_is_not_ordered) { run(1, false, 0, false, operations() / 10); }

TEST_CASE(over_an_ordered_upstream) { run(2, true, 0, false, operations() / 10); }

TEST_CASE(with_little_memory) {
  run(3, false, 6 << 20, false, operations() / 20);
  run(4, true, 6 << 20, false, operations() / 20);
}

TEST_CASE(with_waits_that_fail) {
  run(5, false, 8 << 20, true, operations() / 40);
  run(6, true, 0, true, operations() / 40);
}

/* The test itself: where waiting has no effect, a race is found. */
TEST_CASE(a_wait_left_out_is_found) {
  for (uint64_t seed = 1; seed <= 8; seed++) {
    Model *model = new_model(seed, seed & 1, seed & 2 ? 6 << 20 : 0, seed > 4);
    clocks_forget_waits(model->clocks);
    for (; model->operation < 50000 && !clocks_race(model->clocks); model->operation++)
      if (below(&model->random, 3) && model->count < most_live)
        do_alloc(model);
      else if (
          model->count) { /* each block stays with one queue: the program has nothing to order */
        Block *block = &model->blocks[model->count - 1];
        size_t who = pool_itself;
        for (size_t i = 0; i <= views; i++)
          if (queue_of(model, i)->number >= 0 && block->users >> queue_of(model, i)->number & 1)
            who = i;
        umem_free(context(model, who), block->adr);
        mark(model, block, false);
        model->count--;
      }
    assert_non_null(clocks_race(model->clocks));
    end_model(model);
  }
}
