/* file_runs.c - runs of bytes to, from and between files, on File and MMap: at all distances
 * between the addresses and the positions in the file, and from one file to another with one
 * call. */
#include <stdatomic.h>

#include "base/system.h"

#include "file_help.h"
#include "wrap.h"

/* ---- what the library writes ---- */

typedef struct Write {
  size_t size;
  uint64_t offset;
  char const *bytes;
} Write;

static Write writes[64];
static atomic_size_t write_count;
static atomic_int error_of_write;  /* of all of them; 0: none */
static atomic_size_t first_writes; /* at most so many bytes of the first one; 0: all */

typedef ssize_t Pwrite(int fd, void const *bytes, size_t size, off_t offset);

static ssize_t write_noted(Pwrite *real, int fd, void const *bytes, size_t size, off_t offset) {
  size_t const before = atomic_fetch_add(&write_count, 1);
  if (before < sizeof writes / sizeof *writes)
    writes[before] = (Write){size, (uint64_t)offset, bytes};
  if (before == 0 && first_writes && first_writes < size) size = first_writes;
  if (!error_of_write) return real(fd, bytes, size, offset);
  errno = error_of_write;
  return -1;
}

WRAPPED(ssize_t, pwrite, (int fd, void const *bytes, size_t size, off_t offset)) {
  return write_noted(__real_pwrite, fd, bytes, size, offset);
}
WRAPPED(ssize_t, pwrite64, (int fd, void const *bytes, size_t size, off_t offset)) {
  return write_noted(__real_pwrite64, fd, bytes, size, offset);
}

/* The bytes that one call writes at most: as long as a page of the page cache shall be. */
static size_t longest_write(Kind of) { return of == kindMMap ? 2 * MiB : MiB / 2; }

/* ---- writes ---- */

/* Calls end where a page does, so that the pages are not shorter than they may be. */
TEST(long_writes_come_in_pages) {
  SCOPED_BYTES(char, bytes, 4 * MiB);
  for (size_t i = 0; i < 4 * MiB; i++) bytes[i] = (char)(i * 7 >> 3);
  open_any(&any, "w+");
  uint64_t offset = alloc(&any, 5 * MiB);
  write_count = 0;
  put(&any, offset + 5000, bytes, 4 * MiB);
  assert_int_equal(write_count, kind == kindMMap ? 1 : 9);
  for (size_t i = 0; i + 1 < write_count; i++)
    assert_int_equal(writes[i + 1].offset % (MiB / 2), 0);
  write_count = 0;
  put(&any, MiB / 2 - 100, bytes, 4096); /* a short one is one call */
  assert_int_equal(write_count, 1);
  put(&any, offset + 5000, bytes, 4 * MiB);
  SCOPED(free_bytes) unsigned char *found = slurp(offset + 5000, 4 * MiB);
  assert_memory_equal(found, bytes, 4 * MiB);
}

/* ---- fills ---- */

/* Each piece ends where a large page of the page cache does. */
TEST(fills_come_in_large_pages) {
  open_any(&any, "w+");
  uint64_t offset = alloc(&any, 9 * MiB);
  assert_true(offset != none);
  write_count = 0;
  assert_int_equal(umem_set(&any, at(&any, offset) + 100, 7, 8 * MiB), umemOK);
  size_t longest = longest_write(kind);
  assert_int_equal(write_count, 8 * MiB / longest + 1);
  uint64_t next = offset + 100;
  for (size_t i = 0; i < write_count; i++) {
    assert_true(writes[i].offset == next);
    next += writes[i].size;
    assert_true(next % longest == 0 || i + 1 == write_count);
  }
  assert_true(next == offset + 100 + 8 * MiB);
  SCOPED(free_bytes) unsigned char *bytes = slurp(offset, 9 * MiB);
  for (size_t i = 100; i < 100 + 8 * MiB; i++) assert_int_equal(bytes[i], 7);
}

/* ---- all distances ---- */

TEST(runs_at_all_distances) {
  size_t const sizes[] = {2047, 2048, 5000, 300000, 600001};
  SCOPED_BYTES(unsigned char, memory, 600001 + 8192);
  unsigned char *page = memory + (-(uintptr_t)memory & 4095);
  open_any(&any, "w+");
  uint64_t offset = alloc(&any, 600001 + 8192);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (size_t ahead = 0; ahead < 4096; ahead += ahead < 70 || ahead > 4020 ? 3 : 150) {
      size_t n = sizes[k];
      for (size_t i = 0; i < n; i++) page[ahead + i] = pattern(i + ahead);
      put(&any, offset + 4096, page + ahead, n);
      put(&any, offset + 4096 + n, "end", 3);
      memset(page, 0, 600001 + 4096);
      assert_int_equal(get(&any, offset + 4096, page + ahead, n), umemOK);
      for (size_t i = 0; i < n; i++)
        if (page[ahead + i] != pattern(i + ahead)) fail_msg("byte %zu of %zu", i, n);
      if (ahead) assert_int_equal(page[ahead - 1], 0);
      assert_int_equal(page[ahead + n], 0); /* bytes beyond stay */
    }
}

/* Where the destination begins 1 to 31 bytes after the source, modulo a page, they come in pieces
 * by another place. */
TEST(runs_at_slow_distances) {
  SCOPED(free_bytes) unsigned char *page = NULL;
  assert_int_equal(posix_memalign((void **)&page, 4096, MiB), 0);
  memset(page, 1, MiB);
  umem_all_are_slow = true;
  runs_at_all_distances(state);
  close_any(&any);
  open_any(&any, "w+");
  uint64_t offset = alloc(&any, MiB);
  for (size_t before = 0; before <= 32; before++) {
    write_count = 0;
    put(&any, offset + before, page, 100000);
    assert_int_equal(write_count, before > 0 && before < 32 ? 4 : 1);
    for (size_t i = 0; i + 1 < write_count; i++) /* the last piece is short */
      assert_true(((uintptr_t)writes[i].bytes - writes[i].offset) % 4096 == 64);
  }
  umem_all_are_slow = false;
}

/* ---- between files ---- */

static struct {
  Any from, to;
  uint64_t src, dst;
  char to_path[310];
  Kind to_kind;
} pair;

enum { room = 5 << 20 };

static uintptr_t dst_of(uint64_t offset) {
  Kind mine = kind;
  kind = pair.to_kind;
  uintptr_t adr = at(&pair.to, pair.dst) + offset;
  kind = mine;
  return adr;
}

/* Two files of room bytes, the first with the pattern, of which the second is of the other kind if
 * crosses. */
static void open_pair(bool crosses) {
  Kind mine = kind;
  make_file(room);
  open_any(&pair.from, "r+");
  assert_true((pair.src = alloc(&pair.from, room)) != none);
  snprintf(pair.to_path, sizeof pair.to_path, "%s.to", path);
  unlink(pair.to_path);
  pair.to_kind = crosses ? (kind == kindFile ? kindMMap : kindFile) : kind;
  kind = pair.to_kind;
  assert_int_equal(any_ctor(&pair.to, pair.to_path, "w+"), umemOK);
  assert_true((pair.dst = alloc(&pair.to, room)) != none);
  kind = mine;
  write_count = 0;
}

static void close_pair(void) {
  close_any(&pair.from);
  umem_dtor(&pair.to);
  unlink(pair.to_path);
}

static void set_up_pair(void **state) {
  set_up(state);
  open_pair(false);
}

static void tear_down_pair(void **state) {
  close_pair();
  tear_down(state);
}

#define PAIR_TEST(name) TEST_CASE_WITH(name, set_up_pair, tear_down_pair)

static umemStatusType copy_run(uint64_t from, uint64_t to, size_t n) {
  return umem_copy_to(&pair.from, at(&pair.from, pair.src) + from, &pair.to, dst_of(to), n);
}

/* The other file has n bytes of the pattern from `from` on at `to`. */
static void check_run(uint64_t from, uint64_t to, size_t n) {
  SCOPED(free_bytes) unsigned char *bytes = malloc(n);
  int fd = open(pair.to_path, O_RDONLY);
  assert_true(bytes && fd >= 0);
  assert_int_equal(pread(fd, bytes, n, (off_t)(pair.dst + to)), n);
  close(fd);
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != pattern(pair.src + from + i)) fail_msg("byte %zu of %zu is wrong", i, n);
}

/* But for the pages of the target. */
TEST(a_run_between_files_is_one_call) {
  size_t const sizes[] = {32 * KiB, 81608, MiB, 4 * MiB};
  for (int k = 0; k < 2; k++) {
    open_pair(k);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      write_count = 0;
      assert_int_equal(copy_run(100, 4000, sizes[i]), umemOK);
      size_t pages = sizes[i] / (MiB / 2) + 1;
      assert_int_equal(write_count, pair.to_kind == kindMMap || sizes[i] < MiB / 2 ? 1 : pages);
      check_run(100, 4000, sizes[i]);
    }
    close_pair();
  }
}

PAIR_TEST(the_mapping_can_go_afterwards) {
  size_t before = mapped_bytes();
  assert_int_equal(copy_run(0, 0, MiB), umemOK);
  umem_trim(&pair.from, 0);
  assert_int_equal(mapped_bytes(), before);
}

/* Too short, too long, or at a distance at which processors copy slowly. */
PAIR_TEST(other_runs_take_a_buffer) {
  struct {
    uint64_t from, to;
    size_t n;
  } const runs[] = {{0, 0, 32 * KiB - 1}, {0, 0, 4 * MiB + 1}, {0, 16, MiB}};
  umem_all_are_slow = true;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    write_count = 0;
    assert_int_equal(copy_run(runs[i].from, runs[i].to, runs[i].n), umemOK);
    assert_true(write_count > 1 || runs[i].n < 32 * KiB);
    check_run(runs[i].from, runs[i].to, runs[i].n);
  }
  umem_all_are_slow = false;
}

PAIR_TEST(bytes_outside_of_the_block_stay) {
  assert_int_equal(copy_run(0, room - 64 * KiB + 4096, 64 * KiB), umemIndexError);
  assert_int_equal(write_count, 0);
  FORGET(&pair.to, &pair.from);
}

PAIR_TEST(a_source_that_is_cut_is_reported) {
  assert_int_equal(copy_run(0, 0, MiB), umemOK);
  assert_int_equal(truncate(path, 100 * 1000), 0);
  expect_status(&pair.from, copy_run(0, 0, MiB), umemIOError, "was truncated by another process");
  umem_clear_status(&pair.to);
}

/* The one call fails; so does the next way, which says why. */
PAIR_TEST(a_write_that_fails_is_reported) {
  error_of_write = ENOSPC;
  umemStatusType status = copy_run(0, 0, MiB);
  error_of_write = 0;
  assert_int_equal(status, umemIOError);
  assert_int_equal(write_count, 2);
  assert_non_null(strstr(umem_thread_message(), strerror(ENOSPC)));
  FORGET(&pair.from, &pair.to);
  assert_int_equal(copy_run(0, 0, MiB), umemOK);
  check_run(0, 0, MiB);
}

/* The rest goes through a buffer. */
PAIR_TEST(a_short_write_goes_on_where_it_ended) {
  write_count = 0;
  first_writes = 100000;
  umemStatusType status = copy_run(0, 0, MiB);
  first_writes = 0;
  assert_int_equal(status, umemOK);
  assert_true(write_count >= 2 && writes[1].offset == writes[0].offset + 100000);
  check_run(0, 0, MiB);
}

/* Around the page cache there is no mapping. */
PAIR_TEST(direct_files_take_a_buffer) {
  umem_dtor(&pair.to);
  umemFileOptions options = {.size = sizeof options, .direct = umemDirectOn};
  if (any_ctor_with(&pair.to, pair.to_path, "w+", &options) != umemOK) {
    FORGET(&pair.to);
    skip();
  }
  assert_true((pair.dst = alloc(&pair.to, room)) != none);
  write_count = 0;
  assert_int_equal(copy_run(0, 0, 4 * MiB), umemOK);
  assert_true(write_count > 1);
  check_run(0, 0, 4 * MiB);
}

int main(void) { return run_on_both(); }
