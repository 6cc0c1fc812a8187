/* array_pieces.c - contents copied between arrays with gaps: as a few boxes, whatever the offsets
 * are, where the shapes have rows in common; else through a buffer. */
#include "array_help.h"

static umemCuda cuda;

static void open_gpu(void **state) {
  set_up(state);
  assert_ok(umemCuda_ctor(&cuda, 0));
}
static void close_gpu(void **state) {
  umem_dtor(&cuda);
  tear_down(state);
}

enum { most_rank = 5, most_elements = 4096 };

typedef struct Shape {
  int rank;
  int64_t extent[most_rank];
} Shape;

static int64_t count_of(Shape const *shape) {
  int64_t count = 1;
  for (int k = 0; k < shape->rank; k++) count *= shape->extent[k];
  return count;
}

/* An array of numbers from first on, the elements of `view` inside of a larger one: with a gap
 * behind each row, and every second element of a row. */
typedef struct Inside {
  umemArray *all, *view;
  int32_t numbers[most_elements]; /* what the model expects in all */
  int at[most_elements];          /* where element i of the view is */
} Inside;

static void make(Inside *made, umemVirtual *ctx, Shape const *shape, int32_t first) {
  int64_t larger[most_rank];
  int count = 1;
  for (int k = 0; k < shape->rank; k++) {
    larger[k] = shape->extent[k] * (k == shape->rank - 1 ? 2 : 1) + 1;
    count *= (int)larger[k];
  }
  assert_true(count <= most_elements);
  for (int i = 0; i < count; i++) made->numbers[i] = first + i;
  for (int i = 0; i < count_of(shape); i++) {
    int index = i, step = 1;
    made->at[i] = 0;
    for (int k = shape->rank - 1; k >= 0; k--) {
      int inner = k == shape->rank - 1 ? 2 : 1, extent = (int)shape->extent[k];
      made->at[i] += (index % extent * inner + 1) * step;
      index /= extent;
      step *= (int)larger[k];
    }
  }
  made->all = umemArray_create(ctx, umemInt, shape->rank, larger, NULL, &status);
  made->view = umemArray_retain(made->all);
  for (int k = 0; k < shape->rank; k++) {
    umemArray *part =
        umemArray_slice(made->view, k, 1, shape->extent[k], k == shape->rank - 1 ? 2 : 1, &status);
    umemArray_release(made->view);
    made->view = part;
  }
  assert_ok(status);
}

static void release(Inside *made) { RELEASE(made->view, made->all); }

static size_t bytes_of(Inside const *made) { return (size_t)umemArray_nbytes(made->all); }

static void write_all(Inside *made) {
  umemVirtual *ctx = umemArray_context(made->all);
  assert_ok(umem_copy_to(&host, (uintptr_t)made->numbers, ctx, umemArray_address(made->all),
                         bytes_of(made)));
}

static void expect_all(Inside const *made, int64_t to, int64_t from, int64_t count) {
  static int32_t found[most_elements];
  umemVirtual *ctx = umemArray_context(made->all);
  assert_ok(
      umem_copy_to(ctx, umemArray_address(made->all), &host, (uintptr_t)found, bytes_of(made)));
  if (memcmp(found, made->numbers, bytes_of(made)) != 0)
    fail_msg("%jd elements from %jd to %jd: other bytes", (intmax_t)count, (intmax_t)from,
             (intmax_t)to);
}

static void copy_and_expect(Inside *dst, Inside const *src, int64_t to, int64_t from,
                            int64_t count) {
  umemArray_copy_contents(dst->view, src->view, to, from, count, &status);
  assert_ok(status);
  for (int64_t i = 0; i < count; i++)
    dst->numbers[dst->at[to + i]] = src->numbers[src->at[from + i]];
  expect_all(dst, to, from, count);
}

/* Shapes with rows in common, and two pairs that have none. */
static struct {
  Shape src, dst;
} const pairs[] = {
    {{2, {9, 8}}, {2, {9, 8}}},          {{2, {5, 12}}, {2, {15, 4}}},
    {{2, {18, 4}}, {2, {6, 12}}},        {{3, {3, 4, 6}}, {3, {3, 4, 6}}},
    {{3, {3, 4, 6}}, {2, {12, 6}}},      {{1, {96}}, {3, {4, 3, 8}}},
    {{3, {4, 3, 8}}, {1, {96}}},         {{4, {3, 2, 4, 5}}, {4, {3, 2, 4, 5}}},
    {{4, {3, 2, 4, 5}}, {3, {3, 8, 5}}}, {{5, {2, 3, 2, 3, 4}}, {5, {2, 3, 2, 3, 4}}},
    {{2, {9, 8}}, {2, {8, 9}}},          {{3, {2, 6, 6}}, {3, {3, 4, 6}}},
};

TEST(all_offsets_copy_the_elements_that_they_name) {
  static Inside src, dst;
  for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
    make(&src, &host.super, &pairs[p].src, 1 << 20);
    make(&dst, &host.super, &pairs[p].dst, 0);
    int64_t const n = count_of(&pairs[p].src), m = count_of(&pairs[p].dst);
    write_all(&src);
    write_all(&dst);
    for (int64_t from = 0; from < n; from += 1 + from / 16)
      for (int64_t to = 0; to < m; to += 1 + to / 16) {
        int64_t most = n - from < m - to ? n - from : m - to;
        copy_and_expect(&dst, &src, to, from, most);
        copy_and_expect(&dst, &src, to, from, most * 5 / 7);
      }
    release(&src);
    release(&dst);
  }
}

/* How many copies the ledger has between these kinds. */
static uint64_t copies(char const *src, char const *dst) {
  umemLedgerRecord records[16];
  size_t count = 16;
  uint64_t calls = 0;
  records[0].size = sizeof *records;
  assert_ok(umem_ledger_read(records, &count));
  for (size_t i = 0; i < count; i++)
    if (!strcmp(records[i].src.kind, src) && !strcmp(records[i].dst.kind, dst))
      calls += records[i].calls;
  return calls;
}

/* Elements of a GPU do not leave it. */
TEST_CASE_WITH(shifted_rows_are_two_boxes, open_gpu, close_gpu) {
  static Inside src, dst;
  Shape const shape = {2, {20, 30}};
  make(&src, &cuda.super, &shape, 1 << 20);
  make(&dst, &cuda.super, &shape, 0);
  write_all(&src);
  write_all(&dst);
  umem_ledger_clear();
  assert_ok(umem_ledger_start());
  umemArray_copy_contents(dst.view, src.view, 0, 1, 599, &status);
  umem_ledger_stop();
  assert_int_equal(copies("cuda", "host") + copies("host", "cuda"), 0);
  assert_in_range(copies("cuda", "cuda"), 1, 4);
  umem_ledger_clear();
  for (int i = 0; i < 599; i++) dst.numbers[dst.at[i]] = src.numbers[src.at[i + 1]];
  expect_all(&dst, 0, 1, 599);
  release(&src);
  release(&dst);
}

/* Boxes of one element each would take a call each. */
TEST(small_extents_are_not_a_call_each) {
  enum { rank = 14 };
  int64_t extents[rank];
  umemArray *part[2];
  for (int k = 0; k < rank; k++) extents[k] = 3;
  for (int side = 0; side < 2; side++) {
    part[side] = umemArray_create(&host, umemChar, rank, extents, NULL, &status);
    umemArray_clear(part[side], &status);
    for (int k = 0; k < rank; k++) {
      umemArray *less = umemArray_slice(part[side], k, 0, 2, 1, &status);
      umemArray_release(part[side]);
      part[side] = less;
    }
  }
  umem_ledger_clear();
  assert_ok(umem_ledger_start());
  umemArray_copy_contents(part[0], part[1], 0, 1, (1 << rank) - 1, &status);
  umem_ledger_stop();
  assert_in_range(copies("host", "host"), 1, 100);
  umem_ledger_clear();
  RELEASE(part[0], part[1]);
}
