/* file_items.c - copies of single items to and from files, on File and MMap: what they touch, and
 * where they go when there is no mapping. */
#include "stores/store.h"

#include "runs_help.h"

/* ---- items ---- */

/* count items of item bytes, each stride bytes after the other in the file and packed in RAM. */
typedef struct Items {
  size_t item, count;
  ptrdiff_t stride;
} Items;

static umemLayout layout_of(Items const *items, bool to_file) {
  return (umemLayout){.size = sizeof(umemLayout),
                      .item_size = items->item,
                      .rank = 1,
                      .extents = &items->count,
                      .src_strides = to_file ? NULL : &items->stride,
                      .dst_strides = to_file ? &items->stride : NULL};
}

static umemStatusType gather(Any *ctx, uint64_t offset, void *bytes, Items items) {
  umemLayout layout = layout_of(&items, false);
  return umem_copy_strided(ctx, at(ctx, offset), &host, (uintptr_t)bytes, &layout);
}

static umemStatusType scatter(Any *ctx, uint64_t offset, void const *bytes, Items items) {
  umemLayout layout = layout_of(&items, true);
  return umem_copy_strided(&host, (uintptr_t)bytes, ctx, at(ctx, offset), &layout);
}

static void check_items(unsigned char const *bytes, Items items, uint64_t offset) {
  for (size_t i = 0; i < items.count; i++)
    for (size_t k = 0; k < items.item; k++)
      if (bytes[i * items.item + k] != pattern(offset + i * (size_t)items.stride + k))
        fail_msg("byte %zu of item %zu is wrong", k, i);
}

/* The file holds the pattern, but the items, which are all 0xEE. */
static void check_gaps(size_t size, size_t first, Items items) {
  SCOPED(free_bytes) unsigned char *bytes = slurp(0, size);
  for (size_t i = 0; i < size; i++) {
    size_t at_item = i >= first ? (i - first) % (size_t)items.stride : items.item;
    bool in_item = at_item < items.item && (i - first) / (size_t)items.stride < items.count;
    if (bytes[i] != (in_item ? 0xEE : pattern(i))) fail_msg("byte %zu is wrong", i);
  }
}

/* 100 small items from a page and a half each, which are as they should be. */
static Items const small = {4, 100, 400};

static void expect_small(uint64_t offset) {
  unsigned char bytes[400];
  assert_ok(gather(&any, offset, bytes, small));
  check_items(bytes, small, offset);
}

/* ---- one mapping serves many copies ---- */

TEST(a_file_keeps_one_mapping) {
  make_file(200000);
  open_any(&any, "r");
  size_t before = mapped_bytes();
  for (int i = 0; i < 5; i++) {
    expect_small(1000);
    expect_small(99000);
  }
  size_t meanwhile = mapped_bytes();
  if (kind == kindFile)
    assert_true(before == 0 && meanwhile > 0 && meanwhile <= 128 * MiB);
  else
    assert_int_equal(meanwhile, before);
  umem_trim(&any, 0);
  assert_int_equal(mapped_bytes(), before);
  expect_small(1000);
  close_any(&any);
  assert_int_equal(mapped_bytes(), 0);
}

/* ---- far apart, beyond 4 GiB, and more than a window ---- */

TEST(items_may_be_far_apart) {
  static unsigned char bytes[100 * 8], found[100 * 8];
  Items const items = {8, 100, (ptrdiff_t)(100 * MiB) + 40};
  size_t const size = 12 * GiB;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 31 >> 2);
  open_sparse(&any, "w+");
  uint64_t offset = alloc(&any, size);
  assert_true(offset != none);
  assert_int_equal(scatter(&any, offset + 5, bytes, items), umemOK);
  assert_int_equal(gather(&any, offset + 5, found, items), umemOK);
  assert_memory_equal(bytes, found, sizeof bytes);
  for (size_t i = 0; i < items.count; i += 33) {
    uint64_t where = offset + 5 + i * (size_t)items.stride;
    assert_int_equal(get(&any, where, found, 8), umemOK);
    assert_memory_equal(bytes + i * 8, found, 8);
  }
  assert_true(disk_of(path) < 100 * MiB); /* the rest are holes as before */
  Items const backwards = {8, 100, -items.stride};
  assert_int_equal(gather(&any, offset + 5 + 99 * (size_t)items.stride, found, backwards), umemOK);
  for (size_t i = 0; i < 100; i++) assert_memory_equal(bytes + i * 8, found + (99 - i) * 8, 8);
}

/* More than a window has, so that the destination is halved, and then both sides are. */
TEST(rows_may_be_far_apart) {
  enum { rows = 40, columns = 10 };
  static unsigned char bytes[rows * columns * 8], found[sizeof bytes];
  size_t const size = 4 * GiB, extents[] = {rows, columns};
  ptrdiff_t const far[] = {(ptrdiff_t)(100 * MiB) + 40, 400};
  umemLayout const into = {sizeof into, 8, 2, extents, NULL, far};
  umemLayout const within = {sizeof within, 8, 2, extents, far, far};
  umemLayout const out = {sizeof out, 8, 2, extents, far, NULL};
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 31 >> 2);
  open_sparse(&any, "w+");
  uint64_t packed = alloc(&any, sizeof bytes), one = alloc(&any, size), other = alloc(&any, size);
  assert_true(packed != none && one != none && other != none);
  put(&any, packed, bytes, sizeof bytes);
  assert_ok(umem_copy_strided(&any, at(&any, packed), &any, at(&any, one), &into));
  assert_ok(umem_copy_strided(&any, at(&any, one), &any, at(&any, other), &within));
  assert_ok(umem_copy_strided(&any, at(&any, other), &host, (uintptr_t)found, &out));
  assert_memory_equal(bytes, found, sizeof bytes);
}

/* ---- what may not be touched ---- */

TEST(bytes_between_items_stay) {
  enum { size = 300000 };
  static unsigned char bytes[20 * 1000];
  Items const items = {20, 1000, 290};
  memset(bytes, 0xEE, sizeof bytes);
  make_file(size);
  open_any(&any, "r+");
  assert_int_equal(alloc(&any, size), 0);
  assert_int_equal(scatter(&any, 7, bytes, items), umemOK);
  check_gaps(size, 7, items);
  close_any(&any);
  check_gaps(size, 7, items);
}

TEST(items_outside_of_the_block_are_not_written) {
  enum { size = 300000 };
  static unsigned char bytes[20 * 1000];
  Items const items = {20, 1000, 290};
  make_file(size);
  open_any(&any, "r+");
  assert_int_equal(alloc(&any, 1000), 0);
  assert_int_equal(scatter(&any, 100, bytes, items), umemIndexError);
  expect_failure(&any, umemIndexError, "are not inside one live block");
  expect_pattern(1008, size - 1008); /* the block ends at a multiple of 16 */
}

TEST(items_past_the_end_are_an_error) {
  unsigned char bytes[400];
  make_file(30000);
  open_any(&any, "r");
  expect_status(&any, gather(&any, 1000, bytes, small), umemIndexError, "past the end of");
  assert_int_equal(truncate(path, 20000), 0);
  Items const fewer = {4, 60, 400};
  assert_int_equal(gather(&any, 1000, bytes, fewer), umemIOError);
  expect_failure(&any, umemIOError, "was truncated by another process");
  assert_int_equal(truncate(path, 30000), 0);
  assert_int_equal(gather(&any, 1000, bytes, fewer), umemOK);
  assert_int_equal(truncate(path, 24600),
                   0); /* in the page of the last item, which reads as zeros */
  assert_int_equal(gather(&any, 1000, bytes, fewer), umemIOError);
  expect_failure(&any, umemIOError, "was truncated by another process");
}

TEST(a_file_that_is_only_read_is_not_written) {
  unsigned char bytes[400] = {0};
  make_file(100000);
  open_any(&any, "r");
  assert_int_equal(alloc(&any, 100000), 0);
  expect_status(&any, scatter(&any, 1000, bytes, small), umemNotSupportedError, "is not writable");
  expect_small(1000);
  close_any(&any);
  expect_pattern(0, 100000);
}

/* Writes keep the mapping as reads do, and let it go. */
TEST(windows_for_writes_are_given_back) {
  static unsigned char bytes[20 * 1000];
  Items const items = {20, 1000, 290};
  make_file(300000);
  open_any(&any, "r+");
  assert_int_equal(alloc(&any, 300000), 0);
  size_t before = mapped_bytes();
  for (int i = 0; i < 3; i++) assert_int_equal(scatter(&any, 7, bytes, items), umemOK);
  umem_trim(&any, 0);
  assert_int_equal(mapped_bytes(), before);
}

/* From one end of a file that is too long to be mapped as a whole to its other end: the second
 * window must leave the first one where it is. */
TEST(both_ends_of_a_huge_file) {
  enum { count = 1000, stride = 400 };
  static unsigned char bytes[8 * count], found[8 * count];
  size_t const size = 1100 * GiB, far = 1050 * GiB, extents[] = {count};
  ptrdiff_t const strides[] = {stride};
  umemLayout const layout = {sizeof layout, 8, 1, extents, strides, strides};
  Items const items = {8, count, stride};
  if (kind == kindMMap) skip(); /* it has one mapping */
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 31 >> 2);
  open_sparse(&any, "w+");
  uint64_t offset = alloc(&any, size);
  if (offset == none) { /* files of this size exist in few file systems */
    FORGET(&any);
    close_any(&any);
    skip();
  }
  assert_int_equal(scatter(&any, offset, bytes, items), umemOK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(
        umem_copy_strided(&any, at(&any, offset), &any, at(&any, offset + far), &layout), umemOK);
    assert_int_equal(gather(&any, offset + far, found, items), umemOK);
    assert_memory_equal(found, bytes, sizeof bytes);
    memset(found, 0, sizeof found);
  }
}

/* The program may use the position of a descriptor that was taken over. */
TEST(the_position_of_a_descriptor_stays) {
  make_file(100000);
  int fd = open_path(O_RDWR);
  assert_int_equal(lseek(fd, 1234, SEEK_SET), 1234);
  SCOPED(close_fd) int mine = dup(fd);
  assert_true(mine >= 0);
  assert_int_equal(any_adopt(&any, fd), umemOK);
  expect_small(1000);
  assert_int_equal(lseek(mine, 0, SEEK_CUR), 1234);
}

/* A descriptor for writing alone cannot be mapped. */
TEST(without_a_mapping_calls_do_it) {
  enum { size = 300000 };
  static unsigned char bytes[20 * 1000];
  Items const items = {20, 1000, 290};
  if (kind == kindMMap) skip();
  memset(bytes, 0xEE, sizeof bytes);
  make_file(size);
  int fd = open_path(O_WRONLY);
  assert_int_equal(any_adopt(&any, fd), umemOK);
  assert_int_equal(alloc(&any, size), 0);
  assert_int_equal(scatter(&any, 7, bytes, items), umemOK);
  assert_int_equal(mapped_bytes(), 0);
  close_any(&any);
  check_gaps(size, 7, items);
}

/* ---- threads, processes ---- */

enum { threads = 4, rows = 20000 };

typedef struct Worker {
  Any *ctx;
  uint64_t offset;
  unsigned char value;
  umemStatusType status;
  pthread_t thread;
} Worker;

static void join_all(Worker *workers) {
  for (int i = 0; i < threads; i++) {
    join_thread(workers[i].thread);
    assert_int_equal(workers[i].status, umemOK);
  }
}

/* Every fourth item is this thread's. */
static void *write_own_items(void *data) {
  Worker *worker = data;
  Items const items = {4, rows, 4 * threads};
  unsigned char *bytes = malloc(4 * rows);
  if (!bytes) return NULL;
  memset(bytes, worker->value, 4 * rows);
  worker->status = umemOK;
  for (int i = 0; i < 20 && worker->status == umemOK; i++)
    worker->status = scatter(worker->ctx, worker->offset + 4u * worker->value, bytes, items);
  free(bytes);
  return NULL;
}

TEST(threads_lose_nothing) {
  Worker workers[threads];
  size_t const size = 4 * threads * rows;
  open_any(&any, "w+");
  uint64_t offset = alloc(&any, size);
  assert_true(offset != none);
  for (int i = 0; i < threads; i++) {
    workers[i] = (Worker){&any, offset, (unsigned char)i, umemIOError, 0};
    workers[i].thread = start_thread(write_own_items, &workers[i]);
  }
  join_all(workers);
  SCOPED(free_bytes) unsigned char *bytes = slurp(offset, size);
  for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], i / 4 % threads);
}

/* Threads that read parts which no one window covers. */
static void *read_own_part(void *data) {
  Worker *worker = data;
  unsigned char bytes[400];
  worker->status = umemOK;
  for (int i = 0; i < 200 && worker->status == umemOK; i++) {
    memset(bytes, 0xEE, sizeof bytes);
    worker->status = gather(worker->ctx, worker->offset, bytes, small);
    for (size_t k = 0; k < sizeof bytes; k++)
      if (bytes[k]) worker->status = umemRuntimeError;
  }
  return NULL;
}

TEST(threads_read_far_parts) {
  Worker workers[threads];
  open_sparse(&any, "w+");
  uint64_t offset = alloc(&any, GiB);
  assert_true(offset != none);
  for (int i = 0; i < threads; i++) {
    workers[i] = (Worker){&any, offset + (unsigned)i * 200 * MiB, 0, umemIOError, 0};
    workers[i].thread = start_thread(read_own_part, &workers[i]);
  }
  join_all(workers);
  if (kind == kindFile) assert_true(mapped_bytes() <= 2 * GiB); /* one mapping */
}

TEST(a_child_copies_items_too) {
  make_file(100000);
  open_any(&any, "r");
  expect_small(1000);
  IN_CHILD {
    unsigned char bytes[400];
    EXPECT(gather(&any, 1000, bytes, small) == umemOK);
    for (size_t i = 0; i < 100; i++) EXPECT(bytes[4 * i] == pattern(1000 + 400 * i));
    umem_dtor(&any);
  }
  expect_small(1000);
}

/* ---- small that are far from each other ---- */

TEST(far_items_bring_their_pages_alone) {
  Items const all[] = {
      {8, 16, 1 * MiB}, {8, 256, 64 * KiB}, {5000, 64, 256 * KiB}, {20000, 255, 64 * KiB}};
  SCOPED_BYTES(unsigned char, bytes, 255 * 20000);
  make_file(far_size);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!make_cold(far_size)) {
      print_message("skipped: %s keeps its files in the cache\n", folder);
      break;
    }
    open_any(&any, "r");
    assert_int_equal(gather(&any, 100, bytes, all[i]), umemOK);
    check_items(bytes, all[i], 100);
    close_any(&any);
    size_t needed = all[i].count * ((all[i].item + 4095) / 4096 + 1);
    size_t cached = cached_pages(far_size);
    if (cached > needed + 16) fail_msg("%zu pages were read, %zu needed", cached, needed);
  }
}

/* Columns that follow one another in the file, and not in memory. */
TEST(far_columns_bring_their_pages_alone) {
  size_t const extents[] = {4, 16};
  ptrdiff_t const across[] = {8, 1 * MiB};
  umemLayout const layout = {sizeof layout, 8, 2, extents, across, NULL};
  unsigned char bytes[4 * 16 * 8];
  make_file(far_size);
  bool cold = make_cold(far_size);
  open_any(&any, "r");
  assert_int_equal(umem_copy_strided(&any, at(&any, 0), &host, (uintptr_t)bytes, &layout), umemOK);
  for (size_t i = 0; i < sizeof bytes; i++)
    assert_int_equal(bytes[i], pattern(i / 128 * 8 + i % 128 / 8 * MiB + i % 8));
  close_any(&any);
  if (cold) assert_true(cached_pages(far_size) <= 2 * 16 + 16);
}

/* The first item is outside of a block, all others are in one. */
TEST(far_items_behind_one_that_fails_are_not_written) {
  unsigned char bytes[16 * 8];
  memset(bytes, 0xEE, sizeof bytes);
  make_file(far_size);
  open_any(&any, "r+");
  uint64_t first = alloc(&any, MiB);
  assert_int_equal(alloc(&any, far_size - MiB), MiB);
  umem_free(&any, at(&any, first));
  assert_int_equal(scatter(&any, first + 100, bytes, (Items){8, 16, MiB}), umemIndexError);
  expect_failure(&any, umemIndexError, "are not inside one live block");
  close_any(&any);
  expect_pattern(0, far_size);
}

/* By two strides, the lesser one first, into one block and from there to the next items. */
TEST(far_items_have_any_rank) {
  enum { planes = 3, lines = 5 };
  size_t const extents[] = {lines, planes};
  ptrdiff_t const strides[] = {256 * KiB, 5 * MiB};
  umemLayout const read = {sizeof read, 8, 2, extents, strides, NULL};
  umemLayout const written = {sizeof written, 8, 2, extents, NULL, strides};
  unsigned char bytes[planes * lines * 8], found[sizeof bytes];
  make_file(far_size);
  open_any(&any, "r+");
  assert_int_equal(alloc(&any, far_size), 0);
  assert_int_equal(umem_copy_strided(&any, at(&any, 7), &host, (uintptr_t)bytes, &read), umemOK);
  for (size_t i = 0; i < sizeof bytes; i++) {
    size_t row = i / 8 / planes, plane = i / 8 % planes;
    assert_int_equal(bytes[i], pattern(7 + row * 256 * KiB + plane * 5 * MiB + i % 8));
  }
  assert_int_equal(umem_copy_strided(&host, (uintptr_t)bytes, &any, at(&any, 99), &written),
                   umemOK);
  for (size_t i = 0; i < planes * lines; i++) {
    size_t where = 99 + i / planes * 256 * KiB + i % planes * 5 * MiB;
    assert_int_equal(get(&any, where, found + i * 8, 8), umemOK);
  }
  assert_memory_equal(bytes, found, sizeof bytes);
}

TEST(far_items_are_written_alone) {
  Items const items = {8, 16, 1 * MiB};
  unsigned char bytes[8 * 16];
  memset(bytes, 0xEE, sizeof bytes);
  open_any(&any, "w+");
  uint64_t block = alloc(&any, far_size);
  assert_true(block == 0);
  SCOPED_BYTES(unsigned char, all, far_size);
  for (size_t i = 0; i < far_size; i++) all[i] = pattern(i);
  put(&any, block, all, far_size);
  bool cold = make_cold(far_size);
  assert_int_equal(scatter(&any, 100, bytes, items), umemOK);
  if (cold && kind == kindFile) assert_true(cached_pages(far_size) <= 2 * items.count + 16);
  check_gaps(far_size, 100, items);
}

/* The first failure ends the copy; the failure is that of a run. */
TEST(far_items_past_the_end_are_refused) {
  unsigned char bytes[8 * 17];
  make_file(far_size);
  open_any(&any, "r");
  assert_int_equal(gather(&any, 100, bytes, (Items){8, 17, 1 * MiB}), umemIndexError);
  FORGET(&any);
}

/* As if the file were on a tmpfs, or on a disk. */
static void set_takes_ram(bool takes) { umemStore_of((umemVirtual *)&any)->takes_ram = takes; }

/* Calls read those that are too far, too long or too few. */
TEST(cached_far_items_need_no_calls) {
  struct {
    Items items;
    size_t calls;
  } const all[] = {{{8, 64, 128 * KiB}, 0},
                   {{8, 8, 2 * MiB}, 8},
                   {{8, 31, 256 * KiB}, 31},
                   {{20000, 64, 256 * KiB}, 64}};
  SCOPED_BYTES(unsigned char, bytes, 64 * 20000);
  make_file(far_size + MiB);
  open_any(&any, "r");
  set_takes_ram(false);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    reads = 0;
    assert_int_equal(gather(&any, 100, bytes, all[i].items), umemOK);
    check_items(bytes, all[i].items, 100);
    assert_true(all[i].calls ? reads >= all[i].calls : !reads);
  }
}

/* Reads items so often by calls, and then from the mapping. */
static void expect_calls(Items items, size_t times, bool takes_ram) {
  unsigned char bytes[8 * 64];
  open_any(&any, "r");
  set_takes_ram(takes_ram);
  for (size_t i = 0; i <= times; i++) {
    reads = 0;
    assert_int_equal(gather(&any, 100, bytes, items), umemOK);
    check_items(bytes, items, 100);
    assert_int_equal(reads, i < times ? items.count : 0);
  }
  close_any(&any);
}

/* Each of them would take a page fault, but only once. That takes the longer the farther they are
 * from each other. */
TEST(cached_far_items_that_are_read_often_need_no_calls) {
  make_file(far_size + MiB);
  expect_calls((Items){8, 64, 256 * KiB}, 1, false);
  expect_calls((Items){8, 32, 512 * KiB}, 4, false);
  expect_calls((Items){8, 64, 64 * KiB}, 8, true);
  expect_calls((Items){8, 64, 16 * KiB}, 8, true);
}

/* ---- large permutations ---- */

/* A transposed array of more bytes than a window, between two files. */
TEST(transposes_more_than_a_window) {
  enum { n = 3500 };
  size_t const size = (size_t)n * n * sizeof(double), extents[] = {n, n};
  ptrdiff_t const across[] = {8, 8 * n};
  umemLayout const layout = {sizeof layout, 8, 2, extents, across, NULL};
  SCOPED(close_any) Any from, to;
  SCOPED_BYTES(double, values, size);
  for (size_t i = 0; i < (size_t)n * n; i++) values[i] = (double)i;
  open_any(&from, "w+");
  path[strlen(path) - 1] = 'm';
  open_any(&to, "w+");
  uint64_t src = alloc(&from, size), dst = alloc(&to, size);
  assert_true(src != none && dst != none);
  put(&from, src, values, size);
  assert_int_equal(umem_copy_strided(&from, at(&from, src), &to, at(&to, dst), &layout), umemOK);
  assert_int_equal(get(&to, dst, values, size), umemOK);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++)
      if (values[i * n + k] != (double)(k * n + i)) fail_msg("item %zu, %zu is wrong", i, k);
}

int main(void) { return run_on_both(); }
