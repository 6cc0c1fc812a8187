/* pool_traces.c - how often a pool over a GPU asks the driver for pages, and how much memory it
 * has, while blocks come and go as in the traces of the benchmarks: of real models, and drawn. On a
 * double of the runtime, which counts the calls. An allocation of the driver that is mapped, moved
 * or unmapped takes 30 to 60 us on a GPU. */
#include "settings.h"
#include "traces.h"
#include "unit/cuda/cuda_help.h"

enum { default_spare = 10, allocations = 8000, allocations_of_part = 1000, kept_of_small = 4 };
/* A smaller pool has a page for each of many sizes. */
static uint64_t const least_reserved = 64 << 20;

static umemCuda gpu;
static umemPool pool;
static uintptr_t *live; /* [block] */

/* What a trace may cost. */
typedef struct Bound {
  char const *name;
  /* of 1000 allocations, the most allocations of the driver that are mapped, moved or unmapped: in
   * the first half of the steps, in which the most bytes that are live still grow, and in the
   * second */
  double first, second;
  double factor; /* the most that the pool may have over the most that was in use */
} Bound;

/* The traces are the same everywhere: these are some 15 percent more than what they cost. A pool of
 * a few MiB has a page for each of many sizes. */
static Bound const bounds[] = {
    {"training", 232, 4, 1.10},           {"data frames", 176, 46, 1.10},
    {"queries", 198, 54, 1.10},           {"doubling vectors", 548, 216, 1.10},
    {"inference cache", 190, 13, 1.10},   {"graph batches", 80, 29, 1.10},
    {"mesh refinement", 110, 1, 1.10},    {"streaming windows", 65, 1, 1.10},
    {"tiles and giants", 784, 215, 1.10}, {"checkpoints", 214, 1, 1.10},
    {"slow growth", 175, 28, 1.10},       {"convolutions", 94, 26, 1.10},
    {"experts", 162, 21, 1.10},           {"generation", 86, 35, 1.10},
    {"transformer", 108, 8, 1.10},        {"small sizes", 4, 1, 1.30},
    {"medium sizes", 140, 5, 1.10},       {"random sizes 1", 164, 21, 1.10},
    {"random sizes 2", 151, 61, 1.10},    {"random sizes 3", 214, 8, 1.10},
    {"random sizes 4", 141, 27, 1.10},    {"large sizes 1", 162, 2, 1.10},
    {"large sizes 2", 224, 37, 1.10},     {"large sizes 3", 218, 72, 1.10},
    {"large sizes 4", 147, 79, 1.10},
};

static Bound const *bound_of(char const *name) {
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    if (!strcmp(bounds[i].name, name)) return &bounds[i];
  fail_msg("the trace %s has no bound", name);
  return NULL;
}

/* A page that moves is asked for, too. */
static unsigned long driver_calls(void) {
  return fake_cudart_calls_of("page_create") + fake_cudart_calls_of("page_retain") +
         fake_cudart_calls_of("page_unmap");
}

static void begin(TestTrace const *trace, size_t spare) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.spare = spare;
  fake_cudart_machine()->device[0].capacity = (uint64_t)80 << 30;
  expect_ok(umemCuda_ctor(&gpu, 0));
  expect_ok(umemPool_ctor(&pool, &gpu, &options));
  assert_non_null(live = calloc(trace->blocks, sizeof *live));
}

/* Does some of the steps. Returns the driver's calls for 1000 allocations. */
static double cost_of(TestTrace const *trace, size_t from, size_t to) {
  unsigned long before = driver_calls(), count = 0;
  for (size_t i = from; i < to; i++) {
    uintptr_t *block = &live[trace->numbers[i]];
    if (trace->sizes[i]) {
      count++;
      assert_true(*block = umem_alloc(&pool, trace->sizes[i]));
    } else {
      umem_free(&pool, *block);
    }
  }
  return (double)(driver_calls() - before) * 1000 / (double)(count ? count : 1);
}

/* Returns the most that the pool had over the most that was in use. */
static double end(void) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  expect_ok(umemPool_stats(&pool, &stats));
  DESTRUCT(&pool, &gpu);
  free(live);
  return stats.factor;
}

CUDA_TEST(traces_have_no_cliff) {
  size_t count;
  TestTrace const *traces = test_traces(allocations, &count);
  for (size_t i = 0; i < count; i += setting_small() ? kept_of_small : 1) {
    TestTrace const *trace = &traces[i];
    Bound const *bound = bound_of(trace->name);
    begin(trace, default_spare);
    double first = cost_of(trace, 0, trace->count / 2);
    double second = cost_of(trace, trace->count / 2, trace->count), factor = end();
    if (first > bound->first || second > bound->second || factor > bound->factor)
      fail_msg("%s: %.1f and %.1f pages of 1000 allocations, %.3f of the bytes in use", trace->name,
               first, second, factor);
  }
}

/* Least memory, in the smallest pages, for more calls. */
CUDA_TEST(without_spare_there_is_the_least_memory) {
  size_t count;
  TestTrace const *traces = test_traces(allocations_of_part, &count);
  for (TestTrace const *trace = traces; trace < traces + count; trace++) {
    begin(trace, 0);
    cost_of(trace, 0, trace->count / 2);
    umemPoolStats stats = UMEM_POOL_STATS_INIT;
    expect_ok(umemPool_stats(&pool, &stats));
    assert_true(stats.reserved == fake_cudart_live().pages * (uint64_t)(2 << 20));
    cost_of(trace, trace->count / 2, trace->count);
    double factor = end();
    if (factor > 1.06 && stats.reserved > least_reserved)
      fail_msg("%s: %.3f of the bytes in use", trace->name, factor);
  }
}
