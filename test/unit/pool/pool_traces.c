/* pool_traces.c - how often a pool over a GPU asks the driver for pages, and how much memory it
 * has, while blocks of sizes that vary come and go. On a double of the runtime, which counts the
 * calls. An allocation of the driver that is mapped, moved or unmapped takes 30 to 60 us on a
 * GPU. */
#include "random.h"
#include "settings.h"
#include "unit/cuda/cuda_help.h"

enum { mebi = 1 << 20, most_live = 4096 };

/* A pool, and its live blocks by number. */
static umemCuda gpu;
static umemPool pool;
static uintptr_t live[most_live];
static uint64_t seed, allocations;

static void put(size_t i) {
  if (live[i]) umem_free(&pool, live[i]);
  live[i] = 0;
}

static void get(size_t i, size_t nbytes) {
  put(i);
  live[i] = umem_alloc(&pool, nbytes);
  assert_true(live[i]);
  allocations++;
}

/* ---- traces: each call is a step, of one allocation or many ---- */

/* 1 << least to 1 << most bytes, of each power of two as many. */
typedef struct Random {
  unsigned least, most;
  size_t blocks;
} Random;

static size_t random_between(unsigned least, unsigned most) {
  size_t power = (size_t)1 << (least + below(&seed, most - least));
  return power + below(&seed, power);
}

/* A block takes the place of another one. */
static void replace(Random const *random) {
  for (size_t i = 0; i < random->blocks; i++)
    if (!live[i]) get(i, random_between(random->least, random->most));
  size_t const nbytes = random_between(random->least, random->most);
  get(below(&seed, random->blocks), nbytes);
}

/* Activations as long as the sequence of the step, until backward comes to their layer; the weights
 * stay. */
static void train(Random const *unused) {
  (void)unused;
  enum { layers = 12, of_layer = 4, weights = 100 };
  size_t const length = 256 + below(&seed, 769), shares[of_layer] = {24, 96, 48, 24};
  for (size_t i = 0; i < layers; i++)
    if (!live[weights + i]) get(weights + i, 20 * mebi);
  for (size_t i = 0; i < layers * of_layer; i++)
    get(i, shares[i % of_layer] * length * (size_t)(mebi / 2) / 1024);
  for (size_t i = layers * of_layer; i > 0; i -= of_layer) {
    get(layers * of_layer, length * (size_t)mebi / 16);
    for (size_t k = 1; k <= of_layer; k++) put(i - k);
    put(layers * of_layer);
  }
}

/* Columns of tables, whose rows differ by four powers of ten; an old table goes as a whole. */
static void work_on_frames(Random const *unused) {
  (void)unused;
  enum { tables = 12, columns = 12 };
  size_t const first = below(&seed, tables) * columns, count = 2 + below(&seed, columns - 1);
  size_t const rows = random_between(16, 26);
  for (size_t i = 0; i < columns; i++) put(first + i);
  for (size_t i = 0; i < count; i++) {
    get(tables * columns, rows / 8);
    get(first + i, below(&seed, 2) ? rows : rows / 2);
    put(tables * columns);
  }
}

/* New patches of a level of a mesh come before its old ones go. */
static void refine_mesh(Random const *unused) {
  (void)unused;
  enum { levels = 5, patches = 40 };
  static size_t half[levels];
  size_t const level = below(&seed, levels), old = (level * 2 + half[level]) * patches;
  half[level] ^= 1;
  size_t const first = (level * 2 + half[level]) * patches, count = 4 + below(&seed, patches - 4);
  for (size_t i = 0; i < count; i++) {
    size_t edge = 8 * (2 + below(&seed, 12)), other = 8 * (2 + below(&seed, 12));
    get(first + i, edge * edge * other * 8 * 3);
  }
  for (size_t i = 0; i < patches; i++) put(old + i);
}

/* What steps remember; 0 when a trace begins. */
static size_t memory[64];

/* The block of one number gets another one, which has none. */
static void renumber(size_t from, size_t to) {
  live[to] = live[from];
  live[from] = 0;
}

/* Vectors that are appended to: the larger block comes before the smaller one goes. */
static void double_vectors(Random const *unused) {
  (void)unused;
  enum { vectors = 24 };
  size_t const i = below(&seed, vectors);
  if (memory[i] && memory[i] < memory[vectors + i]) {
    memory[i] *= 2;
    get(vectors, memory[i]);
    put(i);
    renumber(vectors, i);
  } else {
    put(i);
    memory[i] = random_between(20, 21);
    memory[vectors + i] = random_between(23, 29);
    get(i, memory[i]);
  }
}

/* Sequences that grow by 2 MiB and end, and temporary blocks of a step. */
static void infer(Random const *unused) {
  (void)unused;
  enum { sequences = 60, most_units = 64, temporary = sequences * most_units };
  for (size_t i = 0; i < sequences; i++) {
    if (!below(&seed, 160))
      for (; memory[i]; memory[i]--) put(i * most_units + memory[i] - 1);
    if (!below(&seed, 8) && memory[i] < most_units) get(i * most_units + memory[i]++, 2 * mebi);
  }
  get(temporary, (1 + below(&seed, sequences)) * mebi / 2);
  get(temporary + 1, (1 + below(&seed, sequences)) * mebi * 3);
  put(temporary);
  put(temporary + 1);
}

/* Batches of graphs, of which two are loaded ahead. */
static void learn_graphs(Random const *unused) {
  (void)unused;
  enum { ahead = 3, parts = 4, hidden = ahead * parts, layers = 3, messages = hidden + layers };
  size_t const nodes = random_between(20, 24), edges = nodes * (2 + below(&seed, 18));
  size_t const sizes[parts] = {nodes, nodes * 4, edges, edges / 2};
  size_t const batch = memory[0]++ % ahead * parts;
  for (size_t i = 0; i < parts; i++) put(batch + i);
  for (size_t i = 0; i < parts; i++) get(batch + i, sizes[i]);
  for (size_t layer = 0; layer < layers; layer++) {
    get(messages, edges * 4);
    get(hidden + layer, nodes * 8);
    put(messages);
  }
  for (size_t layer = layers; layer-- > 0;) put(hidden + layer);
}

/* Frames wait in a queue of changing length; each is decoded. */
static void stream_frames(Random const *unused) {
  (void)unused;
  enum { most_frames = 128, decoded = most_frames };
  size_t const frame = 8 * mebi + below(&seed, 16 * mebi), kept = 96 + below(&seed, 32);
  get(memory[0]++ % most_frames, frame);
  get(decoded, 6 * frame);
  get(decoded + 1, frame + frame / 2);
  put(decoded);
  for (; memory[0] - memory[1] > kept; memory[1]++) put(memory[1] % most_frames);
  put(decoded + 1);
}

/* Many blocks of one size, freed in any order, and seldom a very large one. */
static void tile(Random const *unused) {
  (void)unused;
  enum { most_tiles = 2500, giant = most_tiles };
  size_t const wanted = 500 + below(&seed, 2000);
  for (; memory[0] < wanted; memory[0]++) get(memory[0], mebi);
  for (; memory[0] > wanted; memory[0]--) {
    size_t const i = below(&seed, memory[0]);
    put(i);
    if (i < memory[0] - 1) renumber(memory[0] - 1, i);
  }
  if (!below(&seed, 4)) get(giant + memory[1]++ % 2, 128 * mebi + below(&seed, 640 * mebi));
}

/* Steady steps; at times all of the state is copied and packed. */
static void save_state(Random const *unused) {
  (void)unused;
  enum { state = 120, work = 20 };
  static size_t const parts[] = {87, 112, 225, 44, 325};
  for (size_t i = 0; i < state; i++)
    if (!live[i]) get(i, random_between(20, 26));
  for (size_t i = 0; i < work; i++) get(state + i, random_between(19, 25));
  for (size_t i = work; i-- > 0;) put(state + i);
  if (memory[0]++ % 25) return;
  for (size_t i = 0; i < 5; i++) get(state + i, parts[i] * mebi / 100 * (80 + below(&seed, 40)));
  for (size_t i = 0; i < 5; i++) put(state + i);
}

/* Results that stay come between large temporary blocks. */
static void grow_slowly(Random const *unused) {
  (void)unused;
  enum { results = 1500, temporary = results };
  size_t const count = 3 + below(&seed, 6);
  for (size_t i = 0; i < count; i++) {
    get(temporary + i, random_between(23, 27));
    get(memory[0] < results ? memory[0]++ : below(&seed, results), random_between(18, 23));
  }
  for (size_t i = 0; i < count; i++) put(temporary + i);
}

enum { default_spare = 10 };

typedef struct Trace {
  char const *name;
  void (*step)(Random const *);
  Random random;
  unsigned steps;
  /* of 1000 allocations, the most allocations of the driver that are mapped, moved or unmapped: in
   * the first half of the steps, in which the most bytes that are live still grow, and in the
   * second */
  double first, second;
  double factor; /* the most that the pool may have over the most that was in use */
} Trace;

/* A pool of a few MiB has a page for each of many sizes. Results stay in parts of pages, of which
 * the rest is free and can neither move nor serve large blocks. */
static Trace const traces[] = {
    {"256 B to 64 KiB, 1000", replace, {8, 16, 1000}, 6000, 4, 1, 1.40},
    {"64 KiB to 1 MiB, 4096", replace, {16, 20, 4096}, 12000, 90, 4, 1.10},
    {"256 B to 64 MiB, 256", replace, {8, 26, 256}, 12000, 130, 10, 1.10},
    {"1 to 64 MiB, 64", replace, {20, 26, 64}, 12000, 115, 60, 1.10},
    {"training", train, {0}, 80, 115, 4, 1.10},
    {"frames", work_on_frames, {0}, 1200, 45, 9, 1.10},
    {"mesh", refine_mesh, {0}, 160, 180, 30, 1.10},
    {"vectors", double_vectors, {0}, 4000, 620, 200, 1.10},
    {"inference", infer, {0}, 600, 48, 8, 1.10},
    {"graphs", learn_graphs, {0}, 600, 95, 8, 1.10},
    {"streams", stream_frames, {0}, 1500, 105, 4, 1.10},
    {"tiles", tile, {0}, 60, 175, 30, 1.10},
    {"state", save_state, {0}, 200, 175, 4, 1.10},
    {"results", grow_slowly, {0}, 800, 160, 40, 1.13},
};
enum { trace_count = sizeof traces / sizeof *traces };

/* ---- what they cost ---- */

/* A page that moves is asked for, too. */
static unsigned long driver_calls(void) {
  return fake_cudart_calls_of("page_create") + fake_cudart_calls_of("page_retain") +
         fake_cudart_calls_of("page_unmap");
}

static double cost_of_half(Trace const *trace) {
  unsigned long before = driver_calls();
  allocations = 0;
  for (unsigned i = 0; i < trace->steps / 2; i++) trace->step(&trace->random);
  return (double)(driver_calls() - before) * 1000 / (double)allocations;
}

static void begin(uint64_t of_trace, size_t spare) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.spare = spare;
  seed = of_trace;
  memset(memory, 0, sizeof memory);
  fake_cudart_machine()->device[0].capacity = (uint64_t)32 << 30;
  expect_ok(umemCuda_ctor(&gpu, 0));
  expect_ok(umemPool_ctor(&pool, &gpu, &options));
}

/* Returns the most that the pool had over the most that was in use. */
static double end(void) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  expect_ok(umemPool_stats(&pool, &stats));
  for (size_t i = 0; i < most_live; i++) put(i);
  umem_dtor(&pool);
  umem_dtor(&gpu);
  return stats.factor;
}

CUDA_TEST(large_blocks_have_no_cliff) {
  for (size_t i = 0; i < trace_count; i++)
    for (uint64_t s = 1; s <= (setting_small() ? 1 : 4); s++) {
      Trace const *trace = &traces[i];
      begin(s, default_spare);
      double first = cost_of_half(trace), second = cost_of_half(trace), factor = end();
      if (first > trace->first || second > trace->second || factor > trace->factor)
        fail_msg("%s, seed %d: %.1f and %.1f pages of 1000 allocations, %.3f of the bytes in use",
                 trace->name, (int)s, first, second, factor);
    }
}

/* Least memory, in the smallest pages, for more calls. */
CUDA_TEST(without_spare_there_is_the_least_memory) {
  for (size_t i = 2; i < trace_count; i++) {
    begin(1, 0);
    for (unsigned k = 0; k < traces[i].steps / 8; k++) traces[i].step(&traces[i].random);
    umemPoolStats stats = UMEM_POOL_STATS_INIT;
    expect_ok(umemPool_stats(&pool, &stats));
    assert_true(stats.reserved == fake_cudart_live().pages * (2 * (uint64_t)mebi));
    double factor = end();
    if (factor > 1.06) fail_msg("%s: %.3f of the bytes in use", traces[i].name, factor);
  }
}
