/* file_direct.c - long reads and writes of File and MMap, through the page cache and around it: the
 * bytes, the order between both, what is refused. */
#include "file_help.h"

#include <sys/syscall.h>

#include "core/threads.h"

enum { length = (17 << 20) + 12345 };

static unsigned char *data, *back;

static umemFileOptions with(umemDirect direct) {
  umemFileOptions options = {.size = sizeof options, .direct = direct};
  return options;
}

static void fill(unsigned seed) {
  for (size_t i = 0; i < length; i++) data[i] = (unsigned char)((i * 2654435761u >> 13) + seed);
}

static void make(unsigned seed) {
  fill(seed);
  int fd = open_path(O_RDWR | O_CREAT | O_TRUNC);
  for (size_t done = 0; done < length;) {
    ssize_t n = pwrite(fd, data + done, length - done, (off_t)done);
    assert_true(n > 0);
    done += (size_t)n;
  }
  assert_int_equal(close(fd), 0);
}

/* Leaves the pages of [from, to) out of the cache, as far as the system does so. */
static void drop(size_t from, size_t to) {
  int fd = open_path(O_RDONLY);
  assert_int_equal(fdatasync(fd), 0);
  posix_fadvise(fd, (off_t)from, (off_t)(to - from), POSIX_FADV_DONTNEED);
  assert_int_equal(close(fd), 0);
}

static void open_with(Any *ctx, char const *mode, umemDirect direct) {
  umemFileOptions options = with(direct);
  open_any_with(ctx, mode, &options);
}

static void expect_bytes(Any *ctx, size_t offset, size_t size, size_t shift) {
  memset(back, 0, size + shift);
  assert_int_equal(get(ctx, offset, back + shift, size), umemOK);
  /* CMocka compares byte by byte. */
  if (memcmp(back + shift, data + offset, size) != 0)
    assert_memory_equal(back + shift, data + offset, size);
}

static void set_up_case(void **state) {
  set_up(state);
  data = malloc(length);
  back = malloc(length + 8192);
  assert_true(data && back);
  umem_parallel_set(4);
}

static void tear_down_case(void **state) {
  free(data);
  free(back);
  umem_parallel_set(0);
  tear_down(state);
}

#define CASE(name) TEST_CASE_WITH(name, set_up_case, tear_down_case)

/* ---- reads ---- */

static umemDirect const routes[] = {umemDirectAuto, umemDirectOn, umemDirectOff};

static void check_reads(umemDirect direct) {
  static size_t const ranges[][2] = {
      {0, length},      {1, length - 1},           {4096, 8 << 20},       {4095, (2 << 20) + 2},
      {12345, 1 << 20}, {length - 100000, 100000}, {(5 << 20) - 7, 65536}};
  open_with(&any, "r", direct);
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    drop(0, length);
    expect_bytes(&any, ranges[i][0], ranges[i][1], i % 3 * 1000);
    expect_bytes(&any, ranges[i][0], ranges[i][1], 0);
  }
  close_any(&any);
}

CASE(all_bytes_arrive) {
  make(1);
  for (size_t i = 0; i < 3; i++)
    if (routes[i] != umemDirectOn || is_direct(path)) check_reads(routes[i]);
}

CASE(one_thread_reads_alone) {
  umem_parallel_set(1);
  all_bytes_arrive(state);
}

/* Some pages are in the cache, and some are not. */
CASE(half_cached_files_are_read_whole) {
  make(2);
  for (size_t i = 0; i < 3; i++) {
    if (routes[i] == umemDirectOn && !is_direct(path)) continue;
    open_with(&any, "r", routes[i]);
    drop(0, length);
    expect_bytes(&any, 3 << 20, 100000, 0);
    expect_bytes(&any, 9 << 20, 3 << 20, 0);
    expect_bytes(&any, 0, length, 5);
    drop(4 << 20, 8 << 20);
    expect_bytes(&any, 0, length, 0);
    close_any(&any);
  }
}

/* Reads go around the cache at first, and through it when the program has read the file once. */
CASE(a_file_that_is_read_again_comes_into_the_cache) {
  make(3);
  struct {
    uint64_t offset, size;
  } range = {0, length};
  uint64_t pages[5];
  int fd = open(path, O_RDONLY);
  bool answers = fd >= 0 && syscall(451, fd, &range, pages, 0) == 0 && pages[0];
  drop(0, length);
  answers = answers && syscall(451, fd, &range, pages, 0) == 0;
  if (!is_direct(path) || !answers || pages[0]) { /* an overlay sees no pages */
    close(fd);
    skip();
  }
  open_with(&any, "r", umemDirectAuto);
  expect_bytes(&any, 0, length, 0);
  assert_int_equal(syscall(451, fd, &range, pages, 0), 0);
  assert_true(pages[0] < 1024);
  expect_bytes(&any, 0, length, 0);
  expect_bytes(&any, 0, length, 0);
  assert_int_equal(syscall(451, fd, &range, pages, 0), 0);
  assert_true(pages[0] >= length / 4096);
  close_any(&any);
  assert_int_equal(close(fd), 0);
}

CASE(the_end_of_the_file_is_found) {
  make(4);
  for (size_t i = 0; i < 3; i++)
    for (int dropped = 0; dropped < 2; dropped++) {
      if (routes[i] == umemDirectOn && !is_direct(path)) continue;
      open_with(&any, "r", routes[i]);
      if (dropped) drop(0, length);
      expect_status(&any, get(&any, 5, back, length), umemIndexError, "past the end of");
      assert_int_equal(get(&any, length & ~4095, back, 4 << 20), umemIndexError);
      expect_failure(&any, umemIndexError, "read of 4194304 bytes at ");
      expect_bytes(&any, 0, length, 0);
      close_any(&any);
    }
}

CASE(a_file_that_is_cut_is_told) {
  for (size_t i = 0; i < 3; i++) {
    make(5);
    if (routes[i] == umemDirectOn && !is_direct(path)) continue;
    open_with(&any, "r", routes[i]);
    assert_int_equal(truncate(path, 7 << 20), 0);
    assert_int_equal(get(&any, 0, back, length), umemIOError);
    expect_failure(&any, umemIOError, "was truncated by another process: read of 17838137 bytes");
    expect_bytes(&any, 0, 7 << 20, 0);
    close_any(&any);
  }
}

/* ---- order between the cache and the disk ---- */

/* What was written through the cache, or a mapping, is there for a read around it. */
CASE(a_direct_read_sees_what_was_written_before) {
  make(6);
  if (!is_direct(path)) skip();
  SCOPED(close_any) Any reader, writer;
  open_with(&writer, "r+", umemDirectOff);
  open_with(&reader, "r", umemDirectOn);
  uint64_t block = alloc(&writer, length);
  assert_int_equal(block, 0);
  for (unsigned round = 0; round < 3; round++) {
    fill(10 + round);
    put(&writer, 0, data, length);
    expect_bytes(&reader, 0, length, 0);
    int fd = open(path, O_RDWR);
    unsigned char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(fd >= 0 && map != MAP_FAILED);
    for (size_t at = round; at < length; at += 70001) data[at] = map[at] = (unsigned char)at;
    expect_bytes(&reader, 0, length, 0);
    assert_int_equal(munmap(map, length), 0);
    assert_int_equal(close(fd), 0);
  }
}

/* And what was written around the cache is there for reads through it, also through an old
 * mapping. */
CASE(a_cached_read_sees_what_was_written_directly) {
  static size_t const ranges[][2] = {
      {0, length}, {1, (3 << 20) + 1}, {4096, 1 << 20}, {4000, 65536}, {100000, 64 << 10}};
  make(7);
  if (!is_direct(path)) skip();
  SCOPED(close_any) Any writer, reader;
  open_with(&writer, "r+", umemDirectOn);
  open_with(&reader, "r", umemDirectOff);
  assert_int_equal(alloc(&writer, length), 0);
  int fd = open(path, O_RDONLY);
  unsigned char *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
  assert_true(fd >= 0 && map != MAP_FAILED);
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    size_t offset = ranges[i][0], size = ranges[i][1], shift = i % 2 * 24;
    expect_bytes(&reader, 0, length, 0); /* all is cached now */
    memset(data + offset, (int)(40 + i), size);
    memcpy(back + shift, data + offset, size);
    put(&writer, offset, back + shift, size);
    assert_memory_equal(map, data, length);
    expect_bytes(&reader, 0, length, 0);
    expect_bytes(&writer, offset, size, 0);
  }
  assert_int_equal(munmap(map, length), 0);
  assert_int_equal(close(fd), 0);
}

CASE(direct_writes_stay_inside_of_blocks) {
  make(8);
  if (!is_direct(path)) skip();
  open_with(&any, "r+", umemDirectOn);
  assert_int_equal(alloc(&any, 4 << 20), 0);
  put(&any, 1 << 20, data, 4 << 20);
  expect_failure(&any, umemIndexError, "");
  expect_bytes(&any, 0, length, 0);
  close_any(&any);
}

/* ---- options ---- */

CASE(a_file_system_without_direct_io_refuses) {
  int fd = memfd_create("umem", 0);
  assert_true(fd >= 0);
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  int direct = open(name, O_RDONLY | O_DIRECT);
  umemFileOptions options = with(umemDirectOn);
  umemStatusType status = any_adopt_with(&any, fd, &options);
  if (direct >= 0) { /* newer kernels do it for tmpfs too */
    assert_int_equal(status, umemOK);
    close(direct);
  } else {
    assert_int_equal(status, umemNotSupportedError);
    expect_failure(&any, umemNotSupportedError, "cannot use direct I/O on descriptor ");
    options.direct = umemDirectAuto;
    assert_int_equal(any_adopt_with(&any, fd, &options), umemOK);
  }
  fill(9);
  uint64_t block = alloc(&any, length);
  put(&any, block, data, length);
  expect_bytes(&any, block, length, 0);
  close_any(&any);
}

CASE(options_are_checked) {
  make(1);
  umemFileOptions options = with((umemDirect)3);
  assert_int_equal(any_ctor_with(&any, path, "r", &options), umemValueError);
  expect_failure(&any, umemValueError, "direct is 3: neither umemDirectAuto, umemDirectOn nor ");
  options.size = offsetof(umemFileOptions, direct); /* of an older program */
  assert_int_equal(any_ctor_with(&any, path, "r", &options), umemOK);
  close_any(&any);
}

CASE(names_have_the_option) {
  static char const *const words[] = {"auto", "on", "off"};
  char name[400];
  make(1);
  for (size_t i = 0; i < 3; i++) {
    if (i == 1 && !is_direct(path)) continue;
    snprintf(name, sizeof name, "%s:%s?mode=r&direct=%s", kind == kindFile ? "file" : "mmap", path,
             words[i]);
    void *ctx = umem_open(name);
    if (!ctx) fail_msg("%s", umem_thread_message());
    uintptr_t adr = umem_alloc(ctx, length);
    assert_int_equal(umem_copy_to(ctx, adr, &host, (uintptr_t)back, length), umemOK);
    assert_memory_equal(back, data, length);
    umem_close(ctx);
  }
  snprintf(name, sizeof name, "file:%s?direct=yes", path);
  assert_null(umem_open(name));
  assert_non_null(strstr(umem_thread_message(), "direct"));
  umem_thread_clear();
}

int main(void) { return run_on_both(); }
