/* file_items.c - copies of single items to and from files, on File and MMap: what they touch, and
 * where they go when there is no mapping. */
#include "base/faultable.h"
#include "stores/store.h"

#include "file_help.h"
#include "wrap.h"

/* ---- what the library calls ---- */

/* Atomic, all four. */
static size_t reads, announced; /* calls that read the file, and runs of which it knows */
static off_t announced_last;    /* the run that was announced last */
static bool announced_back;     /* one was announced after one behind it */
/* The length that the file gets before bytes are copied from its mapping; 0: as it is. */
static off_t cut_to;

WRAPPED(ssize_t, pread, (int fd, void *bytes, size_t size, off_t offset)) {
  __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
  return __real_pread(fd, bytes, size, offset);
}
WRAPPED(ssize_t, pread64, (int fd, void *bytes, size_t size, off_t offset)) {
  __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
  return __real_pread64(fd, bytes, size, offset);
}
WRAPPED(int, posix_fadvise, (int fd, off_t offset, off_t size, int advice)) {
  if (advice == POSIX_FADV_WILLNEED) {
    off_t const last = __atomic_exchange_n(&announced_last, offset, __ATOMIC_RELAXED);
    if (__atomic_fetch_add(&announced, 1, __ATOMIC_RELAXED) && offset < last)
      __atomic_store_n(&announced_back, true, __ATOMIC_RELAXED);
  }
  return __real_posix_fadvise(fd, offset, size, advice);
}
WRAPPED(bool, umem_access_faultable,
        (umemFaultableRange const ranges[2], umemFaultableWork *work, void *data)) {
  if (cut_to) assert_int_equal(truncate(path, cut_to), 0);
  return __real_umem_access_faultable(ranges, work, data);
}

/* ---- rings of the kernel ---- */

enum { ring_setup = 425, ring_enter = 426 };

static size_t setups, enters; /* calls */
static int setup_error;       /* of all of them; 0: none */
static size_t failing_enter;  /* this one fails with EAGAIN, counted from 1; 0: none */
static long enter_time;       /* nanoseconds that each takes */
static off_t ring_cut_to;     /* the length that the file gets before the second one; 0: as it is */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (number == ring_setup) {
    setups++;
    errno = setup_error;
    if (setup_error) return -1;
  }
  if (number == ring_enter) {
    enters++;
    if (enter_time) nanosleep(&(struct timespec){0, enter_time}, NULL);
    if (ring_cut_to && enters == 2) assert_int_equal(truncate(path, ring_cut_to), 0);
    errno = EAGAIN;
    if (enters == failing_enter) return -1;
  }
  return __real_syscall(number, a, b, c, d, e, f);
}

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

/* ---- one mapping serves many copies ---- */

TEST(a_file_keeps_one_mapping) {
  unsigned char bytes[400];
  Items const items = {4, 100, 400};
  make_file(200000);
  open_any(&any, "r");
  size_t before = mapped_bytes();
  for (int i = 0; i < 5; i++) {
    assert_int_equal(gather(&any, 1000, bytes, items), umemOK);
    check_items(bytes, items, 1000);
    assert_int_equal(gather(&any, 99000, bytes, items), umemOK);
    check_items(bytes, items, 99000);
  }
  size_t meanwhile = mapped_bytes();
  if (kind == kindFile)
    assert_true(before == 0 && meanwhile > 0 && meanwhile <= 128 * MiB);
  else
    assert_int_equal(meanwhile, before);
  umem_trim(&any, 0);
  assert_int_equal(mapped_bytes(), before);
  assert_int_equal(gather(&any, 1000, bytes, items), umemOK);
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
  Items const items = {4, 100, 400};
  make_file(30000);
  open_any(&any, "r");
  expect_status(&any, gather(&any, 1000, bytes, items), umemIndexError, "past the end of");
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
  Items const items = {4, 100, 400};
  make_file(100000);
  open_any(&any, "r");
  assert_int_equal(alloc(&any, 100000), 0);
  expect_status(&any, scatter(&any, 1000, bytes, items), umemNotSupportedError, "is not writable");
  assert_int_equal(gather(&any, 1000, bytes, items), umemOK);
  check_items(bytes, items, 1000);
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
  unsigned char bytes[400];
  Items const items = {4, 100, 400};
  make_file(100000);
  int fd = open_path(O_RDWR);
  assert_int_equal(lseek(fd, 1234, SEEK_SET), 1234);
  SCOPED(close_fd) int mine = dup(fd);
  assert_true(mine >= 0);
  assert_int_equal(any_adopt(&any, fd), umemOK);
  assert_int_equal(gather(&any, 1000, bytes, items), umemOK);
  check_items(bytes, items, 1000);
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
  Items const items = {4, 100, 400};
  worker->status = umemOK;
  for (int i = 0; i < 200 && worker->status == umemOK; i++) {
    memset(bytes, 0xEE, sizeof bytes);
    worker->status = gather(worker->ctx, worker->offset, bytes, items);
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

static void in_forked(void *ctx) {
  unsigned char bytes[400];
  Items const items = {4, 100, 400};
  EXPECT(gather(ctx, 1000, bytes, items) == umemOK);
  for (size_t i = 0; i < 100; i++) EXPECT(bytes[4 * i] == pattern(1000 + 400 * i));
  umem_dtor(ctx);
}

TEST(a_child_copies_items_too) {
  unsigned char bytes[400];
  Items const items = {4, 100, 400};
  make_file(100000);
  open_any(&any, "r");
  assert_int_equal(gather(&any, 1000, bytes, items), umemOK);
  assert_true(child_run(in_forked, &any));
  assert_int_equal(gather(&any, 1000, bytes, items), umemOK);
  check_items(bytes, items, 1000);
}

/* ---- items that are far from each other ---- */

/* How many pages of the file at path the cache has. */
static size_t cached_pages(size_t size) {
  size_t const page = 4096, pages = (size + page - 1) / page;
  SCOPED(free_bytes) unsigned char *present = malloc(pages);
  int fd = open_path(O_RDONLY);
  void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  assert_true(present && bytes != MAP_FAILED && mincore(bytes, size, present) == 0);
  size_t count = 0;
  for (size_t i = 0; i < pages; i++) count += present[i] & 1;
  munmap(bytes, size);
  close(fd);
  return count;
}

/* Takes the file out of the cache. False where the file system keeps all of it there. */
static bool make_cold(size_t size) {
  int fd = open_path(O_RDWR);
  bool dropped = fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  close(fd);
  return dropped && cached_pages(size) == 0;
}

static size_t const far_size = 16 * MiB;

TEST(far_items_bring_their_pages_alone) {
  Items const all[] = {
      {8, 16, 1 * MiB}, {8, 256, 64 * KiB}, {5000, 64, 256 * KiB}, {20000, 255, 64 * KiB}};
  SCOPED(free_bytes) unsigned char *bytes = calloc(255, 20000);
  assert_non_null(bytes);
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
  unsigned char *all = malloc(far_size);
  assert_non_null(all);
  for (size_t i = 0; i < far_size; i++) all[i] = pattern(i);
  put(&any, block, all, far_size);
  free(all);
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
  SCOPED(free_bytes) unsigned char *bytes = calloc(64, 20000);
  assert_non_null(bytes);
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

/* ---- lists of short runs ---- */

enum { list_count = 64, list_row = 40, list_size = 200000 };

/* Rows from all over the file, in no order. */
static uint64_t place_of_row(size_t i) { return i * 37 % list_count * 3000 + 11; }

static umemStatusType read_list(unsigned char *bytes, umemCopyManyOptions const *options) {
  umemCopyItem items[list_count];
  for (size_t i = 0; i < list_count; i++)
    items[i] = (umemCopyItem){&any, at(&any, place_of_row(i)), &host,
                              (uintptr_t)bytes + i * list_row, list_row};
  reads = 0;
  return umem_copy_many(items, list_count, options);
}

static void check_row(unsigned char const *bytes, size_t i) {
  check_pattern(bytes + i * list_row, list_row, place_of_row(i));
}

TEST(cached_rows_need_no_calls) {
  unsigned char bytes[list_count * list_row];
  uint8_t done[list_count / 8] = {0};
  umemCopyManyOptions options = {.size = sizeof options, .done = done};
  make_file(list_size);
  open_any(&any, "r");
  assert_int_equal(read_list(bytes, &options), umemOK);
  for (size_t i = 0; i < list_count; i++) check_row(bytes, i);
  for (size_t i = 0; i < list_count / 8; i++) assert_int_equal(done[i], 0xFF);
  assert_int_equal(reads, 0);
}

TEST(cold_rows_bring_their_pages_alone) {
  unsigned char bytes[8 * list_count];
  umemCopyItem items[list_count];
  make_file(far_size);
  bool cold = make_cold(far_size);
  open_any(&any, "r");
  for (size_t i = 0; i < list_count; i++)
    items[i] = (umemCopyItem){&any, at(&any, (i * 37 % list_count * 4 + 1) * 64 * KiB), &host,
                              (uintptr_t)bytes + i * 8, 8};
  assert_int_equal(umem_copy_many(items, list_count, NULL), umemOK);
  close_any(&any);
  if (cold) assert_true(cached_pages(far_size) <= 8 * list_count);
}

/* The kernel knows all rows before they are read, in the order of the file: nothing else is
 * announced. */
TEST(cold_rows_are_announced) {
  unsigned char bytes[list_count * list_row];
  make_file(list_size);
  for (umemDirect direct = umemDirectAuto; direct <= umemDirectOff; direct++) {
    if (!make_cold(list_size)) break;
    umemFileOptions options = {.size = sizeof options, .direct = direct};
    if (any_ctor_with(&any, path, "r", &options) != umemOK) continue;
    announced = 0;
    announced_back = false;
    assert_int_equal(read_list(bytes, NULL), umemOK);
    for (size_t i = 0; i < list_count; i++) check_row(bytes, i);
    assert_int_equal(announced, direct == umemDirectOn ? 0 : list_count);
    assert_false(announced_back);
    close_any(&any);
  }
}

TEST(a_list_names_the_cold_row_past_the_end) {
  unsigned char bytes[list_count * list_row];
  uint8_t done[list_count / 8] = {0};
  size_t failed = list_count;
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  make_file(63 * 3000 + 20);
  make_cold(63 * 3000 + 20);
  open_any(&any, "r");
  assert_int_equal(read_list(bytes, &options), umemIndexError);
  expect_failure(&any, umemIndexError, "past the end of");
  assert_int_equal(place_of_row(failed), 63 * 3000 + 11);
  for (size_t i = 0; i < list_count; i++)
    if (done[i / 8] >> i % 8 & 1) check_row(bytes, i);
}

/* To whole pages, whose access raises a signal, and into a page, whose rest reads as zeros. */
TEST(a_list_names_the_row_that_is_cut_off_meanwhile) {
  off_t const lengths[] = {98304, 63 * 3000 + 20};
  for (size_t k = 0; k < 2; k++) {
    unsigned char bytes[list_count * list_row];
    uint8_t done[list_count / 8] = {0};
    size_t failed = list_count;
    umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
    make_file(list_size);
    open_any(&any, "r");
    cut_to = lengths[k];
    umemStatusType status = read_list(bytes, &options);
    cut_to = 0;
    assert_int_equal(status, umemIOError);
    expect_failure(&any, umemIOError, "was truncated by another process");
    assert_true(failed < list_count && place_of_row(failed) + list_row > (uint64_t)lengths[k]);
    for (size_t i = 0; i < list_count; i++)
      if (done[i / 8] >> i % 8 & 1) check_row(bytes, i);
    close_any(&any);
  }
}

/* ---- large permutations ---- */

/* A transposed array of more bytes than a window, between two files. */
TEST(transposes_more_than_a_window) {
  enum { n = 3500 };
  size_t const size = (size_t)n * n * sizeof(double), extents[] = {n, n};
  ptrdiff_t const across[] = {8, 8 * n};
  umemLayout const layout = {sizeof layout, 8, 2, extents, across, NULL};
  SCOPED(close_any) Any from, to;
  SCOPED(free_bytes) double *values = malloc(size);
  assert_non_null(values);
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

/* ---- lists of pieces that the cache lacks ---- */

/* More than a ring has in flight, three times as many, and so many that they are read for longer
 * than a step. */
enum {
  few_pieces = 160,
  some_pieces = 400,
  most_pieces = 1024,
  piece_size = 20 << 10,
  piece_step = 24 << 10
};
static size_t piece_count;

static size_t size_of_pieces(void) { return piece_count * piece_step + MiB; }

static bool has_ring(void) {
  char parameters[120] = {0};
  long fd = __real_syscall(ring_setup, 8L, parameters);
  if (fd >= 0) close((int)fd);
  return fd >= 0;
}

static uint64_t place_of_piece(size_t i, size_t shift) {
  return i * 37 % piece_count * piece_step + shift;
}

static char *pieces; /* of the memory that they are read to */

/* Reads pieces that begin shift bytes after a page. */
static umemStatusType read_pieces(size_t shift, umemCopyManyOptions const *options) {
  umemCopyItem items[most_pieces];
  for (size_t i = 0; i < piece_count; i++)
    items[i] = (umemCopyItem){&any, at(&any, place_of_piece(i, shift)), &host,
                              (uintptr_t)pieces + i * piece_size + shift, piece_size};
  memset(pieces, 0xEE, (piece_count + 1) * piece_size);
  reads = announced = setups = enters = 0;
  return umem_copy_many(items, piece_count, options);
}

static void check_piece(size_t i, size_t shift) {
  check_pattern((unsigned char *)pieces + i * piece_size + shift, piece_size,
                place_of_piece(i, shift));
}

static void check_pieces(size_t shift) {
  for (size_t i = 0; i < piece_count; i++) check_piece(i, shift);
  for (size_t i = 0; i < shift; i++) assert_int_equal((unsigned char)pieces[i], 0xEE);
  assert_int_equal((unsigned char)pieces[piece_count * piece_size + shift], 0xEE);
}

/* Opens the cold file; false, with a message, where it cannot be cold, or there are no rings. */
static bool open_pieces(size_t count, umemDirect direct) {
  umemFileOptions options = {.size = sizeof options, .direct = direct};
  piece_count = count;
  if (!pieces) pieces = aligned_alloc(4096, (most_pieces + 1) * piece_size);
  assert_non_null(pieces);
  make_file(size_of_pieces());
  if (make_cold(size_of_pieces()) && has_ring() &&
      any_ctor_with(&any, path, "r", &options) == umemOK)
    return true;
  umem_thread_clear();
  print_message("skipped: no cold files in %s, or no io_uring\n", folder);
  return false;
}

TEST(a_ring_reads_cold_pieces) {
  size_t const shifts[] = {0, 100};
  umemDirect const ways[] = {umemDirectAuto, umemDirectOn};
  for (size_t k = 0; k < 4; k++) {
    if (!open_pieces(few_pieces, ways[k / 2])) continue;
    assert_int_equal(read_pieces(shifts[k % 2], NULL), umemOK);
    check_pieces(shifts[k % 2]);
    assert_int_equal(reads + announced, 0);
    assert_true(setups == 1 && enters > 1);
    close_any(&any);
    assert_int_equal(cached_pages(size_of_pieces()), 0);
  }
}

/* The last page of the file is read in part. */
TEST(a_ring_reads_up_to_the_end) {
  if (!open_pieces(few_pieces, umemDirectAuto)) return;
  close_any(&any);
  size_t const end = (piece_count - 1) * (size_t)piece_step + 100 + piece_size;
  assert_int_equal(truncate(path, (off_t)end), 0);
  make_cold(end);
  open_any(&any, "r");
  assert_int_equal(read_pieces(100, NULL), umemOK);
  check_pieces(100);
  assert_int_equal(reads, 0);
}

TEST(other_cold_pieces_are_announced) {
  if (!open_pieces(few_pieces, umemDirectOff)) return;
  assert_int_equal(read_pieces(0, NULL), umemOK);
  check_pieces(0);
  assert_int_equal(announced, piece_count);
  assert_int_equal(setups, 0);
}

TEST(a_ring_that_fails_leaves_the_rest_to_calls) {
  for (failing_enter = 1; failing_enter <= 3; failing_enter += 2) {
    if (!open_pieces(some_pieces, umemDirectAuto)) continue;
    assert_int_equal(read_pieces(0, NULL), umemOK);
    check_pieces(0);
    assert_true(reads > 0 && reads <= piece_count);
    close_any(&any);
  }
  failing_enter = 0;
}

static void read_without_ring(void *argument UNUSED) {
  setup_error = EPERM;
  for (size_t k = 0; k < 2; k++) {
    make_cold(size_of_pieces());
    EXPECT(read_pieces(0, NULL) == umemOK && announced == piece_count && setups == !k);
    bool same = true;
    for (size_t i = 0; i < piece_count * piece_size; i++)
      same &=
          (unsigned char)pieces[i] == pattern(place_of_piece(i / piece_size, 0) + i % piece_size);
    EXPECT(same);
  }
}

/* As in a sandbox. It is asked once. */
TEST(a_ring_that_is_refused_is_not_needed) {
  if (!open_pieces(few_pieces, umemDirectAuto)) return;
  child_run(read_without_ring, NULL);
}

TEST(a_list_names_the_piece_that_is_cut_off_in_the_ring) {
  uint8_t done[few_pieces / 8] = {0};
  size_t failed = few_pieces;
  umemCopyManyOptions options = {.size = sizeof options, .done = done, .failed = &failed};
  if (!open_pieces(few_pieces, umemDirectAuto)) return;
  ring_cut_to = (few_pieces - 20) * (off_t)piece_step + 5000;
  umemStatusType status = read_pieces(0, &options);
  assert_int_equal(status, umemIOError);
  expect_failure(&any, umemIOError, "was truncated by another process");
  assert_true(failed < piece_count);
  assert_true(place_of_piece(failed, 0) + piece_size > (uint64_t)ring_cut_to);
  ring_cut_to = 0;
  size_t count = 0;
  for (size_t i = 0; i < piece_count; i++)
    if (done[i / 8] >> i % 8 & 1) check_piece(i, 0), count++;
  assert_true(count > 0 && count < piece_count);
}

static bool goes_on(void *user UNUSED, uint64_t done, uint64_t nbytes) { return done <= nbytes; }

/* A list with progress takes a ring for each of its pieces. */
TEST(a_ring_stops_in_time) {
  umemCopyManyOptions options = {.size = sizeof options, .progress = goes_on, .step = 64 << 10};
  if (!open_pieces(most_pieces, umemDirectAuto)) return;
  enter_time = 2 * 1000 * 1000;
  assert_int_equal(read_pieces(0, &options), umemOK);
  enter_time = 0;
  check_pieces(0);
  assert_true(setups > 1);
  assert_true(reads < piece_count); /* on a slow machine a step has too few pieces for a ring */
}

int main(void) { return run_on_both(); }
