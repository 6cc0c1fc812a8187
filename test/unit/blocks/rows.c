/* rows.c - umem/blocks.h: into which blocks an array is cut, which rows each of them holds, and
 * what is refused. */
#include "passage.h"

static umemHost host;

static void open_all(void **state) {
  set_up(state);
  assert_ok(umemHost_ctor(&host));
}
static void close_all(void **state) {
  umem_dtor(&host);
  tear_down(state);
}

#define OPEN open_all
#define CLOSE close_all

/* ---- ghost rows, for all small numbers ---- */

enum { most_count = 9, width = 3, most_gap = 5 };

typedef struct Shape {
  size_t count, rows, before, after, depth;
  umemGhosts ghosts;
  ptrdiff_t stride; /* bytes of source and destination; 0: no gaps */
  bool apart, replaces;
} Shape;

typedef struct Grid {
  unsigned char source[most_count * (width + most_gap)];
  unsigned char destination[most_count * (width + most_gap)];
} Grid;

static void complain(Shape const *shape, char const *what, size_t number) {
  fail_msg("%s: block %zu of %zu rows in blocks of %zu (%zu ghost rows before, %zu after, %s, "
           "stride %td, depth %zu, %s, %s)",
           what, number, shape->count, shape->rows, shape->before, shape->after,
           shape->ghosts == umemGhostsClamped ? "clamped" : "left out", shape->stride, shape->depth,
           shape->apart ? "apart" : "in place", shape->replaces ? "replaces" : "beside");
}

static unsigned char value(ptrdiff_t row, int i) { return (unsigned char)(10 * (row + 1) + i); }

/* The row of the array that stands for one that may be before or after it. */
static ptrdiff_t clamp(Shape const *shape, ptrdiff_t row) {
  ptrdiff_t last = (ptrdiff_t)shape->count - 1;
  return row < 0 ? 0 : row > last ? last : row;
}

static ptrdiff_t lesser(size_t one, size_t other) { return (ptrdiff_t)(one < other ? one : other); }

/* What a stencil makes of a row: depends on all rows that it sees. */
static unsigned char result(Shape const *shape, ptrdiff_t row, int i) {
  bool clamped = shape->ghosts == umemGhostsClamped;
  unsigned sum = 0;
  for (ptrdiff_t k = -(ptrdiff_t)shape->before; k <= (ptrdiff_t)shape->after; k++)
    if (clamped || (row + k >= 0 && row + k < (ptrdiff_t)shape->count))
      sum = 7 * sum + value(clamp(shape, row + k), i);
  return (unsigned char)sum;
}

/* With the rows of a block. rows [low, high) of it are there, counted from its first one. */
static unsigned char stencil(Shape const *shape, unsigned char const *at, ptrdiff_t row,
                             ptrdiff_t low, ptrdiff_t high, int i) {
  unsigned sum = 0;
  for (ptrdiff_t k = -(ptrdiff_t)shape->before; k <= (ptrdiff_t)shape->after; k++)
    if (row + k >= low && row + k < high) sum = 7 * sum + at[(row + k) * width + i];
  return (unsigned char)sum;
}

static void check_block(Shape const *shape, umemBlock const *given, size_t number) {
  size_t first = number * shape->rows;
  size_t after_it = shape->count - first > shape->rows ? shape->count - first - shape->rows : 0;
  bool clamped = shape->ghosts == umemGhostsClamped;
  ptrdiff_t before = clamped ? (ptrdiff_t)shape->before : lesser(shape->before, first);
  ptrdiff_t after = clamped ? (ptrdiff_t)shape->after : lesser(shape->after, after_it);
  if (given->number != number || given->first != first) complain(shape, "not in order", number);
  if ((ptrdiff_t)given->rows != lesser(shape->rows, shape->count - first))
    complain(shape, "wrong number of rows", number);
  if ((ptrdiff_t)given->before != before || (ptrdiff_t)given->after != after)
    complain(shape, "wrong number of ghost rows", number);
  if (shape->apart != (given->out != given->adr))
    complain(shape, "wrong place for results", number);
  unsigned char const *at = (unsigned char const *)given->adr;
  for (ptrdiff_t k = -before; k < (ptrdiff_t)given->rows + after; k++)
    for (int i = 0; i < width; i++)
      if (at[k * width + i] != value(clamp(shape, (ptrdiff_t)first + k), i))
        complain(shape, "wrong value", number);
}

/* Puts the results in out, or where the rows are, once all of them have been computed. */
static void compute(Shape const *shape, umemBlock const *given) {
  unsigned char results[most_count * width];
  ptrdiff_t low = -(ptrdiff_t)given->before, high = (ptrdiff_t)(given->rows + given->after);
  for (ptrdiff_t row = 0; row < (ptrdiff_t)given->rows; row++)
    for (int i = 0; i < width; i++)
      results[row * width + i] =
          stencil(shape, (unsigned char const *)given->adr, row, low, high, i);
  memcpy((void *)given->out, results, given->rows * width);
}

static ptrdiff_t stride_of(Shape const *shape) { return shape->stride ? shape->stride : width; }

/* Rows of negative stride begin at the end. */
static uintptr_t row_0(Shape const *shape, unsigned char *bytes) {
  ptrdiff_t stride = stride_of(shape);
  return (uintptr_t)bytes + (stride < 0 ? (size_t)(-stride) * (most_count - 1) : 0);
}

static umemBlocksOptions options_of(Shape const *shape, Grid *grid) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  unsigned char *to = shape->replaces ? grid->source : grid->destination;
  options.source = (umemRows){&host, row_0(shape, grid->source), width, shape->stride};
  options.destination = (umemRows){&host, row_0(shape, to), width, shape->stride};
  options.count = shape->count;
  options.place = &host;
  options.rows = shape->rows;
  options.depth = shape->depth;
  options.before = shape->before;
  options.after = shape->after;
  options.ghosts = shape->ghosts;
  options.apart = shape->apart;
  return options;
}

static void fill_grid(Shape const *shape, Grid *grid) {
  memset(grid, 0xEE, sizeof *grid);
  for (size_t row = 0; row < shape->count; row++) {
    unsigned char *at =
        (unsigned char *)(row_0(shape, grid->source) + row * (uintptr_t)stride_of(shape));
    for (int i = 0; i < width; i++) at[i] = value((ptrdiff_t)row, i);
  }
}

/* Exactly the rows have changed. */
static void check_results(Shape const *shape, Grid const *before, Grid const *after) {
  Grid expected = *before;
  unsigned char *to = shape->replaces ? expected.source : expected.destination;
  for (size_t row = 0; row < shape->count; row++) {
    unsigned char *at = (unsigned char *)(row_0(shape, to) + row * (uintptr_t)stride_of(shape));
    for (int i = 0; i < width; i++) at[i] = result(shape, (ptrdiff_t)row, i);
  }
  if (memcmp(&expected, after, sizeof expected)) complain(shape, "wrong results", 0);
}

static void run_shape(Shape const *shape) {
  Grid grid, before;
  fill_grid(shape, &grid);
  before = grid;
  umemBlocksOptions options = options_of(shape, &grid);
  block = (umemBlock)UMEM_BLOCK_INIT;
  umemStatusType status = umemBlocks_ctor(&blocks, &options);
  size_t ahead = (shape->before + shape->rows - 1) / shape->rows;
  size_t others = shape->count ? (shape->count - 1) / shape->rows : 0;
  if (ahead > others) ahead = others;
  bool refused = shape->replaces && shape->count && shape->depth && shape->depth <= ahead;
  if ((status == umemValueError) != refused) complain(shape, umem_thread_message(), 0);
  size_t number = 0;
  for (; next(); number++) {
    check_block(shape, &block, number);
    compute(shape, &block);
  }
  if (end() != status) complain(shape, umem_thread_message(), number);
  if (refused) {
    expect_failure(umemValueError, "too few to replace rows");
    return;
  }
  if (number != (shape->count + shape->rows - 1) / shape->rows)
    complain(shape, "wrong number of blocks", number);
  check_results(shape, &before, &grid);
}

static void run_variants(Shape shape) {
  static ptrdiff_t const strides[] = {0, width + most_gap, -(width + 1)};
  static size_t const depths[] = {0, 1, 2, 5};
  for (int variant = 0; variant < 8; variant++) {
    shape.apart = variant & 1;
    shape.replaces = variant & 2;
    shape.ghosts = variant & 4 ? umemGhostsClamped : umemGhostsLeftOut;
    size_t odd = shape.count + shape.rows + shape.before + shape.after + (size_t)variant / 2;
    shape.stride = strides[odd % 3];
    shape.depth = depths[(odd / 3 + (size_t)variant) % 4];
    run_shape(&shape);
  }
}

TEST(every_row_is_where_it_belongs) {
  size_t most = setting_small() ? 5 : most_count;
  for (size_t count = 0; count <= most; count++)
    for (size_t rows = 1; rows <= count + 1; rows++)
      for (size_t before = 0; before <= 4; before++)
        for (size_t after = 0; after <= 3; after++)
          run_variants((Shape){.count = count, .rows = rows, .before = before, .after = after});
}
TEST_AGAIN(one_thread, every_row_is_where_it_belongs)

/* ---- how many rows ---- */

enum { large_count = 1 << 20 };

/* An array of rows of nbytes that are never read. */
static umemBlocksOptions large(size_t nbytes) {
  static Gate closed;
  static bool made;
  if (!made) gate_ctor(&closed);
  made = true;
  closed.super.capabilities &= ~(unsigned)umemConcurrent; /* so that nothing is read ahead */
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&closed, 4096, nbytes, 0};
  options.count = large_count;
  options.place = &host;
  return options;
}

static umemBlocksInfo plan_of(umemBlocksOptions const *options) {
  umemBlocksInfo info = UMEM_BLOCKS_INFO_INIT;
  begin(options);
  assert_ok(umemBlocks_info(&blocks, &info));
  assert_ok(end());
  return info;
}

TEST(a_budget_is_used_and_kept) {
  static size_t const sizes[] = {1, 8, 100, 4096, 100000};
  static size_t const budgets[] = {5 << 20, 16000000, 40 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++)
      for (size_t ghosts = 0; ghosts < 3; ghosts++) {
        umemBlocksOptions options = large(sizes[i]);
        options.budget = budgets[k];
        options.before = ghosts;
        options.after = 2 * ghosts;
        umemBlocksInfo info = plan_of(&options);
        assert_true(info.nbytes <= budgets[k]);
        assert_int_equal(info.depth, info.blocks < 3 ? info.blocks : 3);
        size_t row = sizes[i];
        size_t length = info.rows * row;
        bool small = length >= 1 << 20 && length < (1 << 20) + row;
        bool shared = length >= 4 << 20 && length < (4 << 20) + row;
        bool few = info.blocks == 16 && length < 4 << 20;
        bool many = info.blocks == 32 && length >= 4 << 20;
        if (!small && !shared && !few && !many)
          assert_true(info.nbytes + 3 * (row + 64) > budgets[k]);
        assert_int_equal(info.blocks, (large_count + info.rows - 1) / info.rows);
      }
}

/* Many blocks, unless they get too short for the threads that share one; few, unless they get too
 * short at all. */
TEST(an_array_is_cut_into_many_blocks) {
  static struct {
    size_t mebibytes, blocks;
  } const cases[] = {{1, 1}, {8, 8}, {16, 16}, {32, 16}, {64, 16}, {96, 24}, {128, 32}, {1024, 32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    umemBlocksOptions options = large(4096);
    options.count = cases[i].mebibytes << 8;
    options.budget = 3 * cases[i].mebibytes << 20;
    umemBlocksInfo info = plan_of(&options);
    assert_int_equal(info.blocks, cases[i].blocks);
    assert_true(info.nbytes <= options.budget);
  }
}

TEST(umem_chooses) {
  umemBlocksOptions options = large(4096);
  umemBlocksInfo info = plan_of(&options);
  assert_int_equal(info.depth, 3);
  assert_true(info.nbytes <= 64 << 20 && info.nbytes > 63 << 20);
  options.depth = 8;
  info = plan_of(&options);
  assert_int_equal(info.depth, 8);
  assert_true(info.nbytes <= 64 << 20 && info.nbytes > 63 << 20);
  options.rows = 16;
  options.depth = 0;
  info = plan_of(&options);
  assert_int_equal(info.rows, 16);
  assert_int_equal(info.depth, 3);
  assert_int_equal(info.nbytes, 3 * 16 * 4096);
  options.budget = 16 * 4096 * 2 + 100; /* two fit */
  info = plan_of(&options);
  assert_int_equal(info.depth, 2);
  options.budget = 16 * 4096;
  info = plan_of(&options);
  assert_int_equal(info.depth, 1);
  options = large(4096);
  options.count = 5; /* all of it is small */
  info = plan_of(&options);
  assert_int_equal(info.blocks, 1);
  assert_int_equal(info.depth, 1);
  assert_int_equal(info.nbytes, 5 * 4096);
}

static void no_room_is_refused(umemBlocksOptions const *options) {
  assert_int_equal(umemBlocks_ctor(&blocks, options), umemMemoryError);
  expect_failure(umemMemoryError, "has no room for a block of");
  assert_int_equal(umem_get_status(options->place), umemMemoryError);
  assert_int_equal(end(), umemMemoryError);
}

TEST(what_does_not_fit_is_refused) {
  umemBlocksOptions options = large(4096);
  options.budget = 4095;
  no_room_is_refused(&options);
  options.budget = 3 * 4096;
  options.depth = 4;
  no_room_is_refused(&options);
  options.depth = 1;
  options.before = options.after = 1;
  assert_int_equal(plan_of(&options).rows, 1);
  options.budget--;
  no_room_is_refused(&options);
  options = large(4096);
  options.rows = 100;
  options.budget = 100 * 4096 - 1;
  no_room_is_refused(&options);
  options = large(4096);
  options.before = SIZE_MAX;
  no_room_is_refused(&options);
  options.after = 2;
  no_room_is_refused(&options);
  options = large(1 << 20);
  options.rows = large_count;
  options.depth = SIZE_MAX;
  no_room_is_refused(&options);
}

/* ---- what makes no sense ---- */

static void refused(umemBlocksOptions const *options, umemStatusType type, char const *words,
                    int line) {
  assert_int_equal(umemBlocks_ctor(&blocks, options), type);
  expect_failure_at(type, words, line);
  assert_int_equal(end(), type);
}
static void pass_none(umemBlocksOptions const *options) {
  begin(options);
  assert_ok(end());
}

#define REFUSED(type, words) refused(&options, (type), (words), __LINE__)

static umemBlocksOptions small(void) {
  static int array[64];
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&host, (uintptr_t)array, 4, 0};
  options.destination = (umemRows){&host, (uintptr_t)array + 128, 4, 0};
  options.count = 32;
  options.place = &host;
  return options;
}

TEST(contexts_must_be_some) {
  umemBlocksOptions options = small();
  umemHost none = {.super = {.vptr = NULL}};
  options.source.ctx = NULL;
  REFUSED(umemValueError, "umemBlocks_ctor: there is no source");
  options.source.ctx = &none;
  REFUSED(umemValueError, "the context is not constructed");
  options = small();
  options.destination.ctx = &none;
  REFUSED(umemValueError, "the context is not constructed");
  options = small();
  options.place = NULL;
  REFUSED(umemValueError, "the context is NULL");
  options = small();
  void *queues[] = {&host, &none};
  options.queues = queues;
  options.queue_count = 2;
  REFUSED(umemValueError, "the context is not constructed");
  SCOPED(umem_dtor) Gate gate;
  gate_ctor(&gate);
  queues[1] = &gate;
  REFUSED(umemValueError, "queue 1, a Gate, is in other memory than the Host");
  options.queues = NULL;
  REFUSED(umemValueError, "the queues are NULL");
  options = small();
  options.source.ctx = &gate;
  gate.super.capabilities &= ~(unsigned)umemReadable;
  REFUSED(umemNotSupportedError, "this Gate is not readable");
  gate.super.capabilities = umemReadable;
  options = small();
  options.destination.ctx = &gate;
  REFUSED(umemNotSupportedError, "this Gate is not writable");
  options = small();
  options.place = &gate;
  REFUSED(umemNotSupportedError, "this Gate is not writable");
}

TEST(numbers_must_be_possible) {
  umemBlocksOptions options = small();
  options.size = 3;
  REFUSED(umemValueError, "the size in the umemBlocksOptions is 3");
  options = small();
  options.source.nbytes = 0;
  REFUSED(umemValueError, "are no source in Host");
  options = small();
  options.source.adr = 0;
  REFUSED(umemValueError, "32 rows of 4 bytes, 4 bytes apart, at 0 are no source in Host");
  options = small();
  options.count = SIZE_MAX / 2;
  REFUSED(umemValueError, "are no source");
  options = small();
  options.source.stride = -(ptrdiff_t)(options.source.adr / 16);
  REFUSED(umemValueError, "are no source");
  options = small();
  options.destination.adr = UINTPTR_MAX - 100;
  REFUSED(umemValueError, "are no destination");
  options = small();
  options.destination.stride = 3;
  REFUSED(umemValueError, "the rows of the destination overlap");
  options = small();
  options.ghosts = (umemGhosts)7;
  REFUSED(umemValueError, "ghosts is no umemGhosts");
}

TEST(shared_bytes_are_refused) {
  umemBlocksOptions options = small();
  options.destination.adr = options.source.adr + 4;
  REFUSED(umemValueError, "the destination shares bytes with the source, but not its rows");
  options.destination.adr = options.source.adr;
  options.destination.stride = 8;
  REFUSED(umemValueError, "shares bytes");
  options = small(); /* columns of one matrix */
  options.source.stride = options.destination.stride = 8;
  options.destination.adr = options.source.adr + 4;
  pass_none(&options);
  options.destination.adr = options.source.adr + 5;
  REFUSED(umemValueError, "shares bytes");
  options.destination.adr = options.source.adr + 3;
  REFUSED(umemValueError, "shares bytes");
  options = small(); /* backwards, and each row has bytes of the one before */
  options.source.adr = options.destination.adr = options.source.adr + 124;
  options.source.stride = options.destination.stride = -4;
  options.source.nbytes = 8;
  REFUSED(umemValueError, "shares bytes");
  options.source.nbytes = 4;
  pass_none(&options);
}

/* The stride of a single row means nothing, whatever it is. */
TEST(one_row_has_no_neighbour) {
  umemBlocksOptions options = small();
  options.count = 1;
  options.source.stride = options.destination.stride = PTRDIFF_MIN;
  pass_none(&options);
  options.destination.adr = options.source.adr;
  pass_none(&options);
}

/* ---- results of another size ---- */

TEST(results_may_have_another_size) {
  int source[50];
  long long destination[50];
  for (int i = 0; i < 50; i++) source[i] = i;
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&host, (uintptr_t)source, sizeof *source, 0};
  options.destination = (umemRows){&host, (uintptr_t)destination, sizeof *destination, 0};
  options.count = 50;
  options.place = &host;
  options.rows = 7;
  begin(&options);
  while (next())
    for (size_t i = 0; i < block.rows; i++)
      ((long long *)block.out)[i] = 1000000007LL * ((int *)block.adr)[i];
  assert_ok(end());
  for (int i = 0; i < 50; i++) assert_true(destination[i] == 1000000007LL * i);
}
