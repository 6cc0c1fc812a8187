/* range_model.c - the range allocator against a naive model, with random calls.
 *
 * The number of calls comes from the environment variable UMEM_TEST_OPERATIONS (1000000 when unset
 * or empty). */
#include "range_help.h"

#include "settings.h"

static uint64_t operations(void) { return setting_operations(1000000); }

/* ---- where a random test fails ---- */

static uint64_t run_seed;
static unsigned run_operation;

#define CHECK(condition) check_operation(condition, run_seed, run_operation)

/* ---- the model: a row of cells, each outside of all regions, free or live ---- */

enum { CELLS = 160, OUTSIDE = -1, FREE = 0 };
enum { LOWER_WANTS = 1, UPPER_WANTS = 2 }; /* whose region does not join */

typedef struct Model {
  uint64_t granule, cell, base; /* cell: granules are at most that large */
  int owner[CELLS];             /* OUTSIDE, FREE, or the number of a live range */
  unsigned wall[CELLS + 1];     /* [i]: if not 0, nothing spans the border below cell i */
  bool separate[CELLS];
  uint64_t size[CELLS + 1]; /* of live ranges, by number */
  unsigned live;
} Model;

static uint64_t up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

static uint64_t address(Model const *model, unsigned cell) {
  return model->base + cell * model->cell;
}

static bool same_range(Model const *model, unsigned low) {
  return model->owner[low] == model->owner[low + 1] && !model->wall[low + 1] &&
         model->separate[low] == model->separate[low + 1];
}

static bool is_separate(Model const *model, uint64_t at) {
  return model->separate[(at - model->base) / model->cell];
}

/* The range that cell i, in a region, belongs to, and the cell after it. */
static umemRangeItem model_range(Model const *model, unsigned i, unsigned *end) {
  unsigned first = i, last = i;
  while (first > 0 && same_range(model, first - 1)) --first;
  while (last + 1 < CELLS && same_range(model, last)) ++last;
  int owner = model->owner[i];
  uint64_t extent = (last + 1 - first) * model->cell;
  *end = last + 1;
  return (umemRangeItem){address(model, first), owner == FREE ? extent : model->size[owner], extent,
                         owner != FREE, false};
}

static bool same(umemRangeItem a, umemRangeItem b) {
  return a.start == b.start && a.size == b.size && a.extent == b.extent && a.live == b.live;
}

/* Each free range of size or more once, and no other one: there are count, of sum bytes. */
static void verify_large(umemRange const *range, uint64_t size, uint64_t count, uint64_t sum) {
  umemRangeItem item, found;
  for (uint32_t cursor = 0; umemRange_next_free(range, size, &cursor, &item); count--) {
    CHECK(!item.live && item.size >= size && count);
    CHECK(umemRange_find(range, item.start, &found) && same(item, found));
    sum -= item.size;
  }
  CHECK(!count && !sum);
}

/* range holds exactly what model says, whichever way it is asked. */
static void verify(umemRange const *range, Model const *model) {
  umemRangeTotals sum = {0}, totals = umemRange_totals(range);
  umemRangeItem item;
  uint64_t at = 0, size = (1 + draw_below(CELLS)) * model->cell, large = 0, large_bytes = 0;
  for (unsigned i = 0, end; i < CELLS; i = end) {
    end = i + 1;
    if (model->owner[i] == OUTSIDE) continue;
    umemRangeItem expected = model_range(model, i, &end);
    CHECK(umemRange_next(range, at, &item) && same(item, expected));
    at = item.start + item.extent;
    CHECK(umemRange_find(range, at - 1, &item) && same(item, expected));
    uint64_t *count = expected.live ? &sum.live_count : &sum.free_count;
    *count += 1;
    *(expected.live ? &sum.live_bytes : &sum.free_bytes) += expected.extent;
    if (!expected.live && expected.size > sum.largest_free) sum.largest_free = expected.size;
    if (expected.live || expected.size < size) continue;
    large++;
    large_bytes += expected.size;
  }
  verify_large(range, size, large, large_bytes);
  CHECK(!umemRange_next(range, at, &item));
  CHECK(!memcmp(&sum, &totals, sizeof sum));
}

/* Questions about any address, in all regions or out of them. */
static void verify_somewhere(umemRange const *range, Model const *model) {
  unsigned i = draw_below(CELLS), end;
  uint64_t at = address(model, i) + draw() % model->cell;
  umemRangeItem item, expected = {0};
  bool inside = model->owner[i] != OUTSIDE;
  if (inside) expected = model_range(model, i, &end);
  CHECK(umemRange_find(range, at, &item) == inside && (!inside || same(item, expected)));
  bool begins = inside && expected.start == at;
  if (!begins)
    for (i = inside ? end : i + 1; i < CELLS && model->owner[i] == OUTSIDE;) ++i;
  bool more = i < CELLS;
  if (more) expected = model_range(model, i, &end);
  CHECK(umemRange_next(range, at, &item) == more && (!more || same(item, expected)));
  CHECK(!umemRange_find(range, model->base - 1, &item));
  CHECK(!umemRange_find(range, address(model, CELLS), &item));
}

/* ---- what the header promises of placement, by looking at all free ranges ---- */

/* The smallest number of granules in the class of n, and the least n' >= n that is one. */
static uint64_t class_step(uint64_t n) {
  uint64_t power = 1;
  while (power <= n / 2) power *= 2;
  return power < 32 ? 1 : power / 32;
}

static uint64_t class_low(uint64_t n) { return n / class_step(n) * class_step(n); }

static bool fits(umemRangeItem item, uint64_t extent, uint64_t alignment) {
  return up(item.start, alignment) + extent <= item.start + item.extent;
}

/* Checks an answer for separate numbers, or for others, against model, which has not seen it
 * yet. */
static void verify_placement(Model const *model, bool separate, uint64_t size, uint64_t alignment,
                             uint64_t start) {
  uint64_t extent = up(size, model->granule), surely = extent, best = UINT64_MAX;
  if (alignment > model->granule) surely += alignment - model->granule;
  surely = up(surely / model->granule, class_step(surely / model->granule));
  unsigned count = 0, fitting = 0, end;
  uint64_t chosen = 0;
  for (unsigned i = 0; i < CELLS; i = end) {
    end = i + 1;
    if (model->owner[i] != FREE || model->separate[i] != separate) continue;
    umemRangeItem item = model_range(model, i, &end);
    uint64_t low = class_low(item.extent / model->granule);
    ++count;
    if (fits(item, extent, alignment)) ++fitting;
    if (low >= surely && low < best) best = low;
    if (start != UMEM_RANGE_NONE && start >= item.start && start < item.start + item.extent) {
      CHECK(start == up(item.start, alignment)); /* the low end */
      CHECK(fits(item, extent, alignment));
      chosen = low;
    }
  }
  if (start == UMEM_RANGE_NONE) {
    CHECK(best == UINT64_MAX);
    CHECK(!fitting || count > 64);
  } else {
    CHECK(chosen);
    CHECK(chosen == class_low(extent / model->granule) || best == UINT64_MAX || chosen == best);
  }
}

/* ---- random sequences ---- */

/* Two allocators that see the same calls. For the second one memory fails first each time. */
typedef struct Run {
  Model model;
  umemRange *range, *twin;
  unsigned fill; /* percent of operations that allocate */
} Run;

static void run_alloc(Run *run) {
  Model *model = &run->model;
  uint64_t cells = 1 + (draw_below(8) ? draw_below(6) : draw_below(CELLS));
  uint64_t size = cells * model->cell - draw() % model->granule;
  uint64_t alignment = UINT64_C(1) << (draw_below(2) ? 0 : draw_below(63));
  if (draw_below(2)) alignment = model->cell << draw_below(5);
  bool separate = draw_below(4) == 0;
  uint64_t (*alloc)(umemRange *, uint64_t, uint64_t) =
      separate ? umemRange_alloc_separate : umemRange_alloc;
  uint64_t start = alloc(run->range, size, alignment);
  fail_memory(run_operation % 2, UINT_MAX);
  uint64_t twin = alloc(run->twin, size, alignment);
  end_failing();
  if (twin != start) {
    CHECK(twin == UMEM_RANGE_NONE);
    verify(run->twin, model);
    twin = alloc(run->twin, size, alignment);
  }
  CHECK(twin == start);
  bool last = start == UMEM_RANGE_NONE || is_separate(model, start);
  if (!separate) verify_placement(model, false, size, alignment, last ? UMEM_RANGE_NONE : start);
  if (last) verify_placement(model, true, size, alignment, start);
  if (start == UMEM_RANGE_NONE) return;
  CHECK(last || !separate);
  CHECK(start % alignment == 0 && (start - model->base) % model->cell == 0);
  int owner = (int)++model->live;
  model->size[owner] = size;
  uint64_t first = (start - model->base) / model->cell;
  for (uint64_t i = first; i < first + cells; ++i) {
    CHECK(model->owner[i] == FREE);
    CHECK(i == first || !model->wall[i]);
    model->owner[i] = owner;
  }
}

/* Frees what begins at a random cell, or drops it, if a live range does. */
static void run_free(Run *run, bool drop) {
  Model *model = &run->model;
  uint64_t (*end)(umemRange *, uint64_t) = drop ? umemRange_drop : umemRange_free;
  unsigned i = draw_below(CELLS);
  int owner = model->owner[i];
  for (; owner > 0 && draw_below(8) && i > 0 && model->owner[i - 1] == owner;) --i;
  uint64_t start = address(model, i), size = 0;
  if (model->granule > 1 && !draw_below(16))
    start += 1 + draw() % (model->granule - 1);
  else if (owner > 0 && (i == 0 || model->owner[i - 1] != owner))
    size = model->size[owner];
  fail_memory(0, UINT_MAX);
  CHECK(end(run->range, start) == size);
  CHECK(end(run->twin, start) == size);
  end_failing();
  if (!size) return;
  if (drop) {
    unsigned after = i;
    while (after < CELLS && model->owner[after] == owner) ++after;
    model->wall[i] &= LOWER_WANTS;
    model->wall[after] &= UPPER_WANTS;
  }
  /* The highest number moves to the one that has become unused. */
  int last = (int)model->live--;
  for (i = 0; i < CELLS; ++i) {
    if (model->owner[i] == owner) model->owner[i] = drop ? OUTSIDE : FREE;
    if (model->owner[i] == last) model->owner[i] = owner;
  }
  model->size[owner] = model->size[last];
}

/* What happens to a stretch: it becomes a region, or stops being one, or becomes a live range: one
 * outside of all regions, which is separate if it does not join others, or one that is free. */
typedef enum Change { adds, removes, enters, takes } Change;

static bool change(umemRange *range, Change kind, uint64_t start, uint64_t size, bool joins) {
  switch (kind) {
  case adds:
    return umemRange_add(range, start, size, joins);
  case removes:
    return umemRange_remove(range, start, size);
  case enters:
    return umemRange_enter(range, start, size, !joins);
  default:
    return umemRange_take(range, start, size);
  }
}

/* Of a random stretch; often one that breaks the rules. */
static void run_change(Run *run, Change kind) {
  Model *model = &run->model;
  unsigned first = draw_below(CELLS), count = 1 + draw_below(draw_below(4) ? 8 : CELLS - first);
  if (count > CELLS - first) count = CELLS - first;
  uint64_t start = address(model, first), size = count * model->cell;
  bool joins = draw_below(2), outside = kind == adds || kind == enters, valid = true;
  for (unsigned i = first; i < first + count; ++i) {
    if (model->owner[i] != (outside ? OUTSIDE : FREE)) valid = false;
    if (!outside && i > first && (model->wall[i] || model->separate[i] != model->separate[i - 1]))
      valid = false;
  }
  if (model->granule > 1 && !draw_below(16)) {
    *(draw_below(2) ? &start : &size) += model->granule / 2;
    valid = false;
  }
  CHECK(change(run->range, kind, start, size, joins) == valid);
  fail_memory(run_operation % 2, UINT_MAX);
  bool done = change(run->twin, kind, start, size, joins);
  end_failing();
  if (done != valid) {
    CHECK(!done);
    verify(run->twin, model);
    done = change(run->twin, kind, start, size, joins);
  }
  CHECK(done == valid);
  if (!valid) return;
  int owner = kind == adds ? FREE : kind == removes ? OUTSIDE : (int)++model->live;
  if (owner > 0) model->size[owner] = size;
  for (unsigned i = first; i < first + count; ++i) model->owner[i] = owner;
  if (kind == takes) return;
  for (unsigned i = first; i < first + count; ++i) model->separate[i] = kind == enters && !joins;
  unsigned *low = &model->wall[first], *high = &model->wall[first + count];
  *low = (*low & LOWER_WANTS) | (kind == adds && !joins ? UPPER_WANTS : 0u);
  *high = (*high & UPPER_WANTS) | (kind == adds && !joins ? LOWER_WANTS : 0u);
}

static void run_start(Run *run, uint64_t seed) {
  run_seed = random_state = seed;
  run_operation = 0;
  *run = (Run){.fill = 50};
  Model *model = &run->model;
  unsigned granule_bits = draw_below(3) ? draw_below(12) : 0;
  unsigned cell_bits = granule_bits + (draw_below(3) ? 0 : draw_below(52 - granule_bits));
  model->granule = UINT64_C(1) << granule_bits;
  model->cell = UINT64_C(1) << cell_bits;
  /* Near 0, at the very end, or anywhere. */
  uint64_t top = UINT64_C(1) << 63, span = CELLS * model->cell;
  model->base = model->cell;
  if (draw_below(3) == 0) model->base = top - span;
  if (draw_below(3) == 0) model->base = draw() % (top - span) / model->cell * model->cell;
  for (unsigned i = 0; i < CELLS; ++i) model->owner[i] = OUTSIDE;
  run->range = umemRange_create(model->granule);
  run->twin = umemRange_create(model->granule);
  CHECK(run->range && run->twin);
  if (draw_below(4) == 0) return; /* begins without any region */
  CHECK(umemRange_add(run->range, model->base, span, true));
  CHECK(umemRange_add(run->twin, model->base, span, true));
  for (unsigned i = 0; i < CELLS; ++i) model->owner[i] = FREE;
}

static void run_step(Run *run) {
  if (draw_below(100) == 0) run->fill = 20 + draw_below(70);
  unsigned kind = draw_below(100);
  if (kind < 6)
    run_change(run, draw_below(2) ? adds : removes);
  else if (kind < 10)
    run_change(run, draw_below(2) ? enters : takes);
  else if (kind < 10 + run->fill)
    run_alloc(run);
  else
    run_free(run, draw_below(8) == 0);
  verify(run->range, &run->model);
  verify_somewhere(run->range, &run->model);
}

/* Frees all: only the free regions remain. */
static void run_end(Run *run) {
  Model *model = &run->model;
  for (unsigned i = 0; i < CELLS; ++i) {
    if (model->owner[i] <= 0 || (i > 0 && model->owner[i - 1] == model->owner[i])) continue;
    CHECK(umemRange_free(run->range, address(model, i)) == model->size[model->owner[i]]);
  }
  verify(run->twin, model);
  for (unsigned i = 0; i < CELLS; ++i)
    if (model->owner[i] > 0) model->owner[i] = FREE;
  verify(run->range, model);
  umemRange_destroy(run->range);
  umemRange_destroy(run->twin);
}

TEST_CASE(agrees_with_the_model) {
  enum { RUN = 2000 };
  uint64_t left = operations();
  memory.failed = 0;
  for (uint64_t seed = 1; left > 0; ++seed) {
    static Run run;
    run_start(&run, seed);
    for (run_operation = 0; run_operation < RUN && left > 0; ++run_operation, --left)
      run_step(&run);
    run_end(&run);
  }
  assert_true(memory.failed > 0 || operations() < RUN);
}

/* Many ranges, so that the index is deep and large; looked at as a whole at the end. */
TEST_CASE(many_ranges_are_found) {
  enum { LIVE = 20000 };
  static uint64_t starts[LIVE], sizes[LIVE];
  uint64_t const region = UINT64_C(1) << 40, granule = 256;
  umemRange *range = umemRange_create(granule);
  assert_non_null(range);
  assert_true(umemRange_add(range, 0, region, true));
  run_seed = random_state = 1;
  memset(sizes, 0, sizeof sizes);
  uint64_t left = operations() / 4 + LIVE;
  for (run_operation = 0; run_operation < left; ++run_operation) {
    unsigned i = draw_below(LIVE);
    if (sizes[i]) CHECK(umemRange_free(range, starts[i]) == sizes[i]);
    sizes[i] = random_size(&random_state, 21);
    starts[i] = umemRange_alloc(range, sizes[i], 1);
    CHECK(starts[i] != UMEM_RANGE_NONE);
  }
  umemRangeItem item;
  uint64_t live = 0, at = 0;
  bool was_free = false;
  for (; umemRange_next(range, at, &item); at = item.start + item.extent) {
    CHECK(item.start == at);
    CHECK(item.extent == (item.live ? up(item.size, granule) : item.size));
    CHECK(item.live || !was_free);
    was_free = !item.live;
    live += item.live;
  }
  CHECK(at == region);
  for (unsigned i = 0; i < LIVE; ++i) {
    if (!sizes[i]) continue;
    --live;
    CHECK(umemRange_find(range, starts[i] + draw() % sizes[i], &item));
    CHECK(item.live && item.start == starts[i] && item.size == sizes[i]);
  }
  CHECK(live == 0);
  umemRange_destroy(range);
}
