/* overlap.c - overlap.h against a table of bytes; contexts that have one file at different
 * addresses; and no memory for a buffer. The contract tests copies whose sides overlap on every
 * context. */

#include "core/copy.h"

#include "fake/fake.h"
#include "failures.h"
#include "wrap.h"

/* ---- what the library allocates ---- */

static _Thread_local bool refuses;

WRAP(refuses, NULL, void *, malloc, (size_t size), (size))

/* ---- two layouts ---- */

enum { most_rank = 4, most_bytes = 4096 };

typedef struct Items {
  umemItems items;
  size_t extents[most_rank];
  ptrdiff_t strides[most_rank];
} Items;

static size_t below(size_t bound) { return (size_t)rand() % bound; }

static void draw(Items *drawn) {
  drawn->items = (umemItems){.item_size = 1 + below(9),
                             .rank = (int)below(most_rank),
                             .extents = drawn->extents,
                             .strides = drawn->strides};
  size_t low = 0, high = drawn->items.item_size;
  for (int k = 0; k < drawn->items.rank; k++) {
    drawn->extents[k] = 1 + below(5);
    drawn->strides[k] = (ptrdiff_t)(below(2) ? 4 * below(20) : below(90)) * (below(2) ? 1 : -1);
    size_t reach = (size_t)labs(drawn->strides[k]) * (drawn->extents[k] - 1);
    *(drawn->strides[k] < 0 ? &low : &high) += reach;
  }
  drawn->items.adr = low + below(most_bytes / 8);
  assert_true(drawn->items.adr + high < most_bytes);
}

/* Adds mark to all bytes of the items. */
static void mark(umemItems const *items, unsigned char *bytes, int k, uintptr_t adr,
                 unsigned char with) {
  if (k < items->rank)
    for (size_t i = 0; i < items->extents[k]; i++)
      mark(items, bytes, k + 1, adr + i * (uintptr_t)items->strides[k], with);
  else
    for (size_t i = 0; i < items->item_size; i++) bytes[adr + i] |= with;
}

TEST_CASE(meetings_are_as_the_bytes_say) {
  int met = 0, rounds = 20000;
  srand(35);
  for (int i = 0; i < rounds; i++) {
    unsigned char bytes[most_bytes] = {0};
    bool meet = false;
    Items one, other;
    draw(&one);
    draw(&other);
    mark(&one.items, bytes, 0, one.items.adr, 1);
    mark(&other.items, bytes, 0, other.items.adr, 2);
    for (int b = 0; b < most_bytes; b++) meet = meet || bytes[b] == 3;
    if (umem_items_meet(&one.items, &other.items) != meet) fail_msg("round %d: not %d", i, meet);
    met += meet;
  }
  assert_in_range(met, rounds / 10, rounds * 9 / 10);
}

/* The columns of a matrix of 10^6 rows take turns; the bytes next to each other are apart. */
TEST_CASE(large_layouts_are_decided_at_once) {
  size_t const extents[] = {1000000, 100};
  ptrdiff_t const strides[] = {8000, 16};
  umemItems one = {1 << 20, 8, 2, extents, strides}, other = one;
  other.adr += 8;
  assert_false(umem_items_meet(&one, &other));
  other.adr += 1;
  assert_true(umem_items_meet(&one, &other));
  ptrdiff_t const turned[] = {8, 8000000};
  other = (umemItems){(1 << 20) + 4000, 8, 2, extents, turned};
  assert_true(umem_items_meet(&one, &other));
}

/* ---- one file, two addresses ---- */

enum { length = 8 << 20, shift = 5000 };
static char const path[] = "unit_overlap.bin";
static umemHost host;

static void put(unsigned char *bytes) {
  for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 24);
  CONTEXT(umemFile, file, path, "w");
  uintptr_t adr = umem_alloc(&file, length);
  assert_ok(umem_copy_to(&host, (uintptr_t)bytes, &file, adr, length));
}

static void check_shift(void *src, void *dst, unsigned char *bytes, int up) {
  unsigned char *found = test_malloc(length);
  size_t from = up ? 0 : shift, to = up ? shift : 0, n = length - shift;
  umemFile file;
  memmove(bytes + to, bytes + from, n);
  uintptr_t of = umem_alloc(src, length), at = umem_alloc(dst, length);
  assert_ok(umem_copy_to(src, of + from, dst, at + to, n));
  DESTRUCT(src, dst);
  assert_ok(umemFile_ctor(&file, path, "r"));
  assert_ok(umem_copy_to(&file, 0, &host, (uintptr_t)found, length));
  assert_memory_equal(found, bytes, length);
  umem_dtor(&file);
  unlink(path);
  test_free(found);
}

TEST_CASE(contexts_of_one_file_are_one_memory) {
  unsigned char *bytes = test_malloc(length);
  for (int way = 0; way < 8; way++) {
    umemFile file, other;
    umemMMap map, second;
    put(bytes);
    if (way & 1)
      assert_ok(umemFile_ctor(&file, path, "r"));
    else
      assert_ok(umemMMap_ctor(&map, path, "r"));
    if (way & 2)
      assert_ok(umemFile_ctor(&other, path, "r+"));
    else
      assert_ok(umemMMap_ctor(&second, path, "r+"));
    check_shift(way & 1 ? (void *)&file : &map, way & 2 ? (void *)&other : &second, bytes,
                way >> 2);
  }
  test_free(bytes);
}

/* ---- a move of rows that take turns ---- */

/* The items of two rows alternate, so that each row moves over the other one; together they exceed
 * the buffer. */
TEST_CASE(rows_that_take_turns_are_read_first) {
  enum { n = 600000, step = 2, second = 5, all = second + step * n + 1 };
  size_t const extents[] = {2, n};
  ptrdiff_t const strides[] = {second * 8, step * 8};
  umemLayout const layout = {sizeof layout, 8, 2, extents, strides, strides};
  int64_t *items = test_malloc(all * sizeof *items);
  for (int up = 0; up < 2; up++) {
    for (int64_t i = 0; i < all; i++) items[i] = i;
    uintptr_t from = (uintptr_t)(items + !up), to = (uintptr_t)(items + up);
    assert_ok(umem_copy_strided(&host, from, &host, to, &layout));
    for (int64_t k = 0; k < 2; k++)
      for (int64_t i = 0; i < n; i++)
        assert_int_equal(items[up + k * second + i * step], !up + k * second + i * step);
  }
  test_free(items);
}

/* ---- a row that goes to many ---- */

/* The first of them writes over its end. It is in the buffer once. */
TEST_CASE(a_row_goes_to_rows_that_overlap_it) {
  enum { n = 1000, rows = 3, all = n / 2 + rows * n };
  size_t const extents[] = {rows, n};
  ptrdiff_t const again[] = {0, 8}, apart[] = {n * 8, 8};
  umemLayout const layout = {sizeof layout, 8, 2, extents, again, apart};
  int64_t items[all];
  for (int64_t i = 0; i < all; i++) items[i] = i;
  uintptr_t adr = (uintptr_t)items;
  assert_ok(umem_copy_strided(&host, adr, &host, adr + n / 2 * 8, &layout));
  for (int64_t i = 0; i < all; i++) assert_int_equal(items[i], i < n / 2 ? i : (i - n / 2) % n);
}

/* ---- two queues over one memory ---- */

static FakeAsync device, queue;

static uintptr_t open_queues(size_t nbytes) {
  assert_ok(fake_async_ctor(&device));
  assert_ok(fake_async_ctor_on(&queue, &device));
  return umem_alloc(&device, nbytes);
}

static void write_device(uintptr_t adr, void const *bytes, size_t nbytes) {
  assert_ok(umem_copy_to(&host, (uintptr_t)bytes, &device, adr, nbytes));
  assert_ok(umem_synchronize(&device));
}

static void close_queues(uintptr_t adr) {
  umem_free(&device, adr);
  DESTRUCT(&queue, &device);
}

/* What one queue reads into the buffer is there before the other one writes it back. */
TEST_CASE(a_buffer_waits_for_what_fills_it) {
  enum { n = 50 };
  double matrix[n * n];
  size_t const extents[] = {n, n};
  ptrdiff_t const rows[] = {n * sizeof *matrix, sizeof *matrix};
  ptrdiff_t const columns[] = {sizeof *matrix, n * sizeof *matrix};
  umemLayout const layout = {sizeof layout, sizeof *matrix, 2, extents, rows, columns};
  uintptr_t adr = open_queues(sizeof matrix);
  for (int i = 0; i < n * n; i++) matrix[i] = i;
  write_device(adr, matrix, sizeof matrix);
  assert_ok(umem_copy_strided(&device, adr, &queue, adr, &layout));
  assert_ok(umem_synchronize(&queue));
  assert_ok(umem_copy_to(&queue, adr, &host, (uintptr_t)matrix, sizeof matrix));
  assert_ok(umem_synchronize(&queue));
  for (int i = 0; i < n * n; i++) {
    int moved_from = i % n * n + i / n;
    assert_true(matrix[i] == moved_from);
  }
  double moved[n * n - 1]; /* other numbers: a buffer of before may hold those above */
  for (int i = 0; i < n * n; i++) matrix[i] = -1 - i;
  write_device(adr, matrix, sizeof matrix);
  assert_ok(umem_copy_to(&device, adr, &queue, adr + sizeof *moved, sizeof moved));
  assert_ok(umem_synchronize(&queue));
  assert_ok(umem_copy_to(&queue, adr + sizeof *moved, &host, (uintptr_t)moved, sizeof moved));
  assert_ok(umem_synchronize(&queue));
  assert_memory_equal(moved, matrix, sizeof moved);
  close_queues(adr);
}

/* What was queued before to write the destination writes the source, too. */
TEST_CASE(the_source_is_read_after_earlier_work_of_the_destination) {
  enum { n = 2500 };
  int64_t items[n] = {0}, moved[n - 1];
  uintptr_t adr = open_queues(sizeof items);
  write_device(adr, items, sizeof items);
  for (int i = 0; i < n; i++) items[i] = 1 + i;
  assert_ok(umem_copy_to(&host, (uintptr_t)items, &queue, adr, sizeof items));
  assert_ok(umem_copy_to(&device, adr, &queue, adr + sizeof *items, sizeof moved));
  assert_ok(umem_copy_to(&queue, adr + sizeof *items, &host, (uintptr_t)moved, sizeof moved));
  assert_ok(umem_synchronize(&queue));
  assert_memory_equal(moved, items, sizeof moved);
  close_queues(adr);
}

/* Queues a part of what is to be read, and fails. */
static bool read_a_part(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                        uintptr_t dst_adr, umemLayout const *layout) {
  if (src != self || dst->type != umemHostDevice) return false;
  self->vptr->copy_to(self, src_adr, dst, dst_adr, layout->item_size);
  umemVirtual_fail(self, umemIOError, "cannot read the rest");
  return true;
}

/* A read that fails may have been given to the queue in part: this writes to the buffer. */
TEST_CASE(a_buffer_stays_until_its_work_is_done) {
  enum { n = 8, step = 16 };
  size_t const extents[] = {n};
  ptrdiff_t const up[] = {step}, down[] = {-step};
  umemLayout const layout = {sizeof layout, sizeof(double), 1, extents, up, down};
  uintptr_t adr = open_queues((size_t)n * step);
  struct umemVtbl const *plain = device.super.super.vptr;
  struct umemVtbl failing = *plain;
  failing.copy_direct = read_a_part;
  device.super.super.vptr = queue.super.super.vptr = &failing;
  umemStatusType status = umem_copy_strided(&device, adr, &queue, adr + (n - 1) * step, &layout);
  device.super.super.vptr = queue.super.super.vptr = plain;
  assert_int_equal(status, umemIOError);
  assert_int_equal(status, umemIOError);
  assert_int_equal(fake_async_queued(&device), 0);
  FORGET(&device);
  close_queues(adr);
}

/* ---- the question of a program ---- */

TEST_CASE(programs_can_ask) {
  char bytes[64];
  uintptr_t adr = (uintptr_t)bytes;
  umemLayout const run = {.size = sizeof run, .item_size = 8};
  assert_true(umem_copy_overlaps(&host, adr, &host, adr + 7, &run));
  assert_true(umem_copy_overlaps(&host, adr + 7, &host, adr, &run));
  assert_false(umem_copy_overlaps(&host, adr, &host, adr + 8, &run));
  assert_false(umem_copy_overlaps(&host, adr, &host, adr, &run)); /* each item to itself */
  size_t const extents[] = {2, 2}, none[] = {2, 0};
  ptrdiff_t const rows[] = {16, 8}, columns[] = {8, 16};
  umemLayout layout = {sizeof layout, 8, 2, extents, rows, columns};
  assert_true(umem_copy_overlaps(&host, adr, &host, adr, &layout));
  layout.extents = none;
  assert_false(umem_copy_overlaps(&host, adr, &host, adr, &layout));
  layout.rank = -1;
  assert_false(umem_copy_overlaps(&host, adr, &host, adr, &layout));
  assert_int_equal(umem_thread_status(), umemValueError);
  FORGET(&host);
}

TEST_CASE(files_of_one_folder_do_not_overlap) {
  umemFile one, other, again;
  umemLayout const run = {.size = sizeof run, .item_size = 8};
  assert_ok(umemFile_ctor(&one, path, "w+"));
  assert_ok(umemFile_ctor(&other, "unit_overlap_2.bin", "w+"));
  assert_ok(umemFile_ctor(&again, path, "r"));
  uintptr_t adr = umem_alloc(&one, 100);
  assert_int_equal(umem_alloc(&other, 100), adr);
  assert_false(umem_copy_overlaps(&one, adr, &other, adr + 4, &run));
  assert_int_equal(umem_alloc(&again, 100), adr);
  assert_true(umem_copy_overlaps(&again, adr, &one, adr + 4, &run));
  DESTRUCT(&again, &other, &one);
  unlink(path);
  unlink("unit_overlap_2.bin");
}

/* ---- no memory ---- */

TEST_CASE(without_a_buffer_nothing_changes) {
  enum { n = 100 };
  double *matrix = test_malloc(n * n * sizeof *matrix), *old = test_malloc(n * n * sizeof *old);
  size_t const extents[] = {n, n};
  ptrdiff_t const rows[] = {n * sizeof *matrix, sizeof *matrix};
  ptrdiff_t const columns[] = {sizeof *matrix, n * sizeof *matrix};
  umemLayout const layout = {sizeof layout, sizeof *matrix, 2, extents, rows, columns};
  for (int i = 0; i < n * n; i++) matrix[i] = old[i] = i;
  uintptr_t adr = (uintptr_t)matrix;
  refuses = true;
  umemStatusType status = umem_copy_strided(&host, adr, &host, adr, &layout);
  refuses = false;
  assert_int_equal(status, umemMemoryError);
  assert_memory_equal(matrix, old, n * n * sizeof *matrix);
  FORGET(&host);
  assert_ok(umem_copy_strided(&host, adr, &host, adr, &layout));
  for (int i = 0; i < n * n; i++) assert_true(matrix[i] == old[i % n * n + i / n]);
  test_free(matrix);
  test_free(old);
}

static void open_host(void **state UNUSED) { assert_ok(umemHost_ctor(&host)); }

int main(void) { return run_cases(open_host, NULL); }
