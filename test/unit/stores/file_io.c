/* file_io.c - reading, writing and flushing files, on File and MMap. */
#include "file_help.h"

/* ---- reading ---- */

TEST(any_byte_of_the_file_can_be_read) {
  static char const *const modes[] = {"r", "r+", "a+"};
  unsigned char bytes[5000];
  make_file(5000);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    open_any(&any, modes[i]); /* no block at all */
    assert_int_equal(get(&any, 0, bytes, 5000), umemOK);
    check_pattern(bytes, 5000, 0);
    assert_int_equal(get(&any, 4999, bytes, 1), umemOK);
    check_pattern(bytes, 1, 4999);
    close_any(&any);
  }
}

TEST(reads_past_the_end_tell_all) {
  char bytes[80], expected[400];
  make_file(4100);
  open_any(&any, "r");
  assert_int_equal(get(&any, 4096, bytes, 80), umemIndexError);
  snprintf(expected, sizeof expected,
           "umem_copy_to: read of 80 bytes at 4096 past the end of \"%s\" (4100 bytes)", path);
  assert_string_equal(umem_get_message(&any), expected);
  expect_failure(&any, umemIndexError, expected);
  assert_int_equal(get(&any, 4100, bytes, 1), umemIndexError);
  expect_failure(&any, umemIndexError, "read of 1 bytes at 4100 past the end of ");
  expect_status(&any, get(&any, 1 << 30, bytes, 1), umemIndexError, "(4100 bytes)");
  if (kind == kindFile) {
    assert_int_equal(get(&any, UINT64_MAX - 80, bytes, 80), umemIndexError);
    expect_failure(&any, umemIndexError, "read of 80 bytes at 18446744073709551535 past");
    expect_status(&any, get(&any, INT64_MAX - 40, bytes, 80), umemIndexError, "past the end of");
  }
}

TEST(a_file_cut_by_others_is_reported_as_that) {
  unsigned char bytes[1000];
  make_file(1000);
  open_any(&any, "r+");
  assert_int_equal(alloc(&any, 2000), 0);
  assert_int_equal(truncate(path, 500), 0);
  expect_status(&any, get(&any, 0, bytes, 1000), umemIOError,
                "was truncated by another process: read of 1000 bytes at 0, but only 500 of "
                "2000 bytes are left");
  assert_int_equal(get(&any, 1999, bytes, 1), umemIOError); /* reserved, so it was there */
  expect_failure(&any, umemIOError, "truncated");
  expect_status(&any, get(&any, 2000, bytes, 2), umemIndexError, "past the end");

  assert_int_equal(get(&any, 0, bytes, 500), umemOK); /* what is left serves on */
  check_pattern(bytes, 500, 0);
  put(&any, 100, bytes + 100, 400);
  assert_int_equal(umem_trim(&any, 0), umemOK);
  assert_int_equal(length_of(path), 500);
  expect_pattern(0, 500);
}

enum { cut_block = 10000 };

/* That [from, cut_block) of the block at adr is refused, and what is before it is there. */
static void expect_lost(Any *ctx, uint64_t adr, uint64_t from) {
  static unsigned char bytes[cut_block];
  size_t const extents[] = {10}; /* as many as go through a mapping */
  ptrdiff_t const strides[] = {cut_block / 10};
  umemLayout const items = {sizeof items, 4, 1, extents, strides, NULL};
  assert_int_equal(get(ctx, adr, bytes, cut_block), umemIOError);
  expect_failure(ctx, umemIOError, "was truncated by another process");
  assert_int_equal(get(ctx, adr + from, bytes, 1), umemIOError);
  expect_failure(ctx, umemIOError, "was truncated by another process");
  expect_status(ctx, umem_copy_strided(ctx, at(ctx, adr), &host, (uintptr_t)bytes, &items),
                umemIOError, "was truncated by another process");
  expect_status(ctx, umem_copy_from(ctx, at(ctx, adr + from), &host, (uintptr_t)bytes, 1),
                umemIOError, "was truncated by another process: write of 1 bytes");
  assert_int_equal(umem_set(ctx, at(ctx, adr), 1, cut_block), umemIOError);
  expect_failure(ctx, umemIOError, "was truncated by another process");
  if (from) assert_int_equal(get(ctx, adr, bytes, from), umemOK);
  if (from) check_pattern(bytes, from, adr);
}

/* What makes the file longer again brings nothing back. */
TEST(a_block_that_was_cut_is_refused_until_it_is_freed) {
  enum { by_read, by_write, by_allocation, by_sparse_allocation, ways };
  for (int way = 0; way < ways; way++) {
    static unsigned char bytes[3 * cut_block];
    uint64_t const cut = cut_block + 500;
    (way == by_sparse_allocation ? open_sparse : open_any)(&any, "w+");
    uint64_t one = alloc(&any, cut_block), two = alloc(&any, cut_block),
             three = alloc(&any, cut_block);
    assert_true(one == 0 && two == cut_block && three == 2 * cut_block);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(i);
    put(&any, 0, bytes, cut_block);
    put(&any, two, bytes + two, cut_block);
    put(&any, three, bytes + three, cut_block);
    assert_int_equal(truncate(path, (off_t)cut), 0);
    if (way == by_read) {
      expect_status(&any, get(&any, three, bytes, 1), umemIOError, "truncated");
    } else if (way == by_write) { /* also the first one does not make the file longer */
      expect_status(&any, umem_copy_from(&any, at(&any, two + 500), &host, (uintptr_t)bytes, 1),
                    umemIOError, "was truncated by another process: write of 1 bytes");
      assert_int_equal(length_of(path), cut);
      expect_lost(&any, two, 500);
    }
    uint64_t four = alloc(&any, cut_block);
    assert_true(four == 3 * cut_block && length_of(path) == 4 * cut_block);
    umemHandle handle;
    assert_int_equal(umem_share(&any, at(&any, two), cut_block, &handle), umemIOError);
    expect_failure(&any, umemIOError, "truncated");
    expect_lost(&any, two, 500);
    expect_lost(&any, three, 0);
    put(&any, four, bytes, cut_block); /* the others serve */
    assert_int_equal(get(&any, 0, bytes, cut_block), umemOK);
    check_pattern(bytes, cut_block, 0);
    umem_free(&any, at(&any, three));
    assert_int_equal(alloc(&any, cut_block), three);
    put(&any, three, bytes, cut_block);
    assert_int_equal(get(&any, three, bytes, cut_block), umemOK);
    expect_lost(&any, two, 500);
    assert_int_equal(truncate(path, (off_t)cut - 100), 0);
    alloc(&any, 2 * cut_block);
    expect_lost(&any, two, 400);
    expect_lost(&any, three, 0);
    assert_true(umem_realloc(&any, at(&any, two), cut_block, 3 * cut_block) == umem_null(&any));
    expect_failure(&any, umemIOError, "truncated");
    umem_free(&any, at(&any, two));
    close_any(&any);
    assert_int_equal(unlink(path), 0);
  }
}

/* The context has known the file to be long enough, with and without disk space behind its
 * bytes. */
TEST(a_new_block_in_a_file_that_was_cut_has_its_bytes) {
  for (int sparse = 0; sparse < 2; sparse++) {
    static unsigned char bytes[cut_block];
    (sparse ? open_sparse : open_any)(&any, "w+");
    uint64_t one = alloc(&any, cut_block), two = alloc(&any, cut_block),
             three = alloc(&any, cut_block);
    assert_true(one == 0 && two == cut_block && three == 2 * cut_block);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(i);
    put(&any, one, bytes, cut_block);
    umem_free(&any, at(&any, three));
    assert_int_equal(truncate(path, 500), 0);
    assert_int_equal(alloc(&any, cut_block), three);
    assert_int_equal(length_of(path), 3 * cut_block);
    expect_lost(&any, one, 500);
    expect_lost(&any, two, 0);
    put(&any, three, bytes, cut_block);
    assert_int_equal(get(&any, three, bytes, cut_block), umemOK);
    check_pattern(bytes, cut_block, 0);
    close_any(&any);
    assert_int_equal(unlink(path), 0);
  }
}

/* A context that only reads keeps refusing, too, when the file's writer has made it longer
 * again. */
TEST(a_reader_keeps_refusing_what_was_cut) {
  unsigned char bytes[1000];
  make_file(1000);
  open_any(&any, "r");
  assert_int_equal(alloc(&any, 1000), 0);
  assert_int_equal(truncate(path, 300), 0);
  expect_status(&any, get(&any, 0, bytes, 1000), umemIOError, "truncated");
  make_file(1000);
  expect_status(&any, get(&any, 0, bytes, 1000), umemIOError, "truncated");
  umem_free(&any, at(&any, 0));
  assert_int_equal(alloc(&any, 1000), 0);
  assert_int_equal(get(&any, 0, bytes, 1000), umemOK);
  check_pattern(bytes, 1000, 0);
}

/* ---- long transfers ---- */

static size_t const long_size = 40 * MiB + 13; /* read by several threads */

TEST(long_reads_are_whole) {
  SCOPED_BYTES(unsigned char, bytes, long_size + 1);
  for (size_t i = 0; i < long_size; i++) bytes[i] = pattern(i);
  open_any(&any, "w+");
  assert_int_equal(alloc(&any, long_size), 0);
  put(&any, 0, bytes, long_size);
  memset(bytes, 0, long_size + 1);
  assert_int_equal(get(&any, 1, bytes + 1, long_size - 1), umemOK);
  assert_true(bytes[0] == 0 && bytes[long_size] == 0);
  check_pattern(bytes + 1, long_size - 1, 1);

  uint64_t before = umem_thread_failures(); /* all parts fail; the call records one failure */
  assert_int_equal(truncate(path, 1), 0);
  assert_int_equal(get(&any, 0, bytes, long_size), umemIOError);
  assert_true(umem_thread_failures() == before + 1);
  expect_failure(&any, umemIOError, "umem_copy_to: ");
}

TEST(the_last_part_of_a_long_read_fails_too) {
  SCOPED_BYTES(char, bytes, long_size);
  make_file(10);
  assert_int_equal(truncate(path, (off_t)long_size - 1), 0);
  open_any(&any, "r");
  assert_int_equal(get(&any, 0, bytes, long_size), umemIndexError);
  char expected[100];
  snprintf(expected, sizeof expected, "umem_copy_to: read of %zu bytes at 0 past", long_size);
  expect_failure(&any, umemIndexError, expected);
}

TEST(set_fills_exactly_what_is_asked) {
  static size_t const sizes[] = {1, 4096, 4097, MiB - 1, MiB, MiB + 1, 3 * MiB + 7};
  for (size_t i = 0; i < 2 * (sizeof sizes / sizeof *sizes); i++) {
    size_t size = sizes[i / 2];
    int c = i % 2 ? 0x1A5 : 0; /* as unsigned char; zeros are written in another way */
    make_file(size + 20);
    open_any(&any, "r+");
    assert_int_equal(alloc(&any, size + 20), 0);
    assert_int_equal(umem_set(&any, at(&any, 7), c, size), umemOK);
    close_any(&any);
    unsigned char *bytes = slurp(0, size + 20);
    check_pattern(bytes, 7, 0);
    for (size_t k = 0; k < size; k++)
      if (bytes[7 + k] != (unsigned char)c) fail_msg("byte %zu of %zu was not set", k, size);
    check_pattern(bytes + 7 + size, 13, 7 + size);
    free(bytes);
    assert_int_equal(length_of(path), size + 20);
  }
}

TEST(offsets_beyond_4_GiB) {
  unsigned char bytes[2000];
  uint64_t far = 5 * GiB + 3;
  make_file(1000);
  assert_int_equal(truncate(path, (off_t)(6 * GiB)), 0);
  open_sparse(&any, "r+");
  assert_int_equal(alloc(&any, 6 * GiB), 0);
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(far + i);
  put(&any, far, bytes, sizeof bytes);
  assert_int_equal(umem_set(&any, at(&any, 6 * GiB - 1), 77, 1), umemOK);
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(get(&any, far, bytes, sizeof bytes), umemOK);
  check_pattern(bytes, sizeof bytes, far);
  assert_int_equal(alloc(&any, 10), 6 * GiB);
  put(&any, 6 * GiB, "0123456789", 10);
  umem_free(&any, at(&any, 6 * GiB));
  close_any(&any);
  assert_int_equal(length_of(path), 6 * GiB + 10);
  expect_pattern(0, 1000);
  expect_pattern(far, sizeof bytes);
  unsigned char *end = slurp(6 * GiB - 1, 11);
  assert_memory_equal(end,
                      "\x4D"
                      "0123456789",
                      11);
  free(end);
  assert_true(disk_of(path) < MiB); /* nothing else was written */

  open_any(&any, "a+");
  assert_int_equal(alloc(&any, 1), 6 * GiB + 16);
}

TEST(one_file_copies_within_itself) {
  size_t size = 20 * MiB + 1;
  make_file(size);
  open_any(&any, "r+");
  uint64_t one = alloc(&any, size), two = alloc(&any, size);
  assert_int_equal(umem_copy_to(&any, at(&any, one), &any, at(&any, two), size), umemOK);
  close_any(&any);
  SCOPED(free_bytes) unsigned char *bytes = slurp(two, size);
  check_pattern(bytes, size, 0);
}

/* ---- durability ---- */

TEST(flush_serves_new_old_and_moved_files) {
  char moved[320], old[256];
  snprintf(moved, sizeof moved, "%s/moved", folder);
  assert_non_null(getcwd(old, sizeof old));
  assert_int_equal(chdir(folder), 0);
  umemStatusType status = any_ctor(&any, "a.bin", "w"); /* a relative name, and then elsewhere */
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(status, umemOK);
  assert_int_equal(alloc(&any, 3), 0);
  put(&any, 0, "abc", 3);
  assert_int_equal(umem_flush(&any), umemOK);
  assert_int_equal(rename(path, moved), 0);
  put(&any, 0, "def", 3);
  assert_int_equal(umem_flush(&any), umemOK);
  close_any(&any);
  assert_int_equal(chdir(old), 0);
  assert_int_equal(any_ctor(&any, moved, "r"), umemOK);
  assert_int_equal(umem_flush(&any), umemOK);
  close_any(&any);
  assert_int_equal(any_ctor(&any, NULL, "w+"), umemOK);
  assert_int_equal(umem_flush(&any), umemOK);
  assert_int_equal(alloc(&any, 100), 0);
  assert_int_equal(umem_flush(&any), umemOK);
}

/* ---- many threads ---- */

enum { workers = 4, rounds = 300 };

static void *work(void *argument) {
  Any *ctx = argument;
  unsigned char mine[777], back[777];
  for (unsigned k = 0; k < rounds; k++) {
    size_t size = 1 + k * 31 % sizeof mine;
    uintptr_t adr = umem_calloc(ctx, 1, size);
    memset(mine, 0, size);
    if (adr == umem_null(ctx)) return "alloc";
    uint64_t offset = kind == kindFile ? adr : umemMMap_offset(&ctx->mmap, adr);
    if (get(ctx, offset, back, size) != umemOK || memcmp(mine, back, size) != 0) return "zero";
    memset(mine, (int)(offset >> 4), size);
    put(ctx, offset, mine, size);
    if (get(ctx, offset, back, size) != umemOK || memcmp(mine, back, size) != 0) return "bytes";
    if (k % 50 == 0 && umem_trim(ctx, 1000) != umemOK) return "trim";
    umem_free(ctx, adr);
  }
  return umem_thread_status() == umemOK ? NULL : "status";
}

TEST(many_threads_share_a_file) {
  static char const *const names[] = {NULL, path};
  for (size_t i = 0; i < 2; i++) {
    pthread_t threads[workers];
    assert_int_equal(any_ctor(&any, names[i], "w+"), umemOK);
    assert_int_equal(alloc(&any, 1), 0);
    for (unsigned k = 0; k < workers; k++)
      assert_int_equal(pthread_create(&threads[k], NULL, work, &any), 0);
    for (unsigned k = 0; k < workers; k++) {
      void *complaint;
      pthread_join(threads[k], &complaint);
      if (complaint) fail_msg("%s: %s", (char const *)complaint, umem_get_message(&any));
    }
    assert_int_equal(alloc(&any, 1), 16); /* all of it came back */
    close_any(&any);
  }
}

/* The failure hook may use the context that failed: no lock is held then. */
static void look_again(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)type, (void)message;
  umem_free(ctx, umem_alloc(ctx, 10));
  ++*(int *)data;
}

TEST(the_failure_hook_may_use_the_context) {
  int calls = 0;
  open_any(&any, "w+");
  assert_int_equal(alloc(&any, 10), 0);
  umem_set_failure_hook(look_again, &calls);
  umem_free(&any, at(&any, 1));
  umem_set(&any, at(&any, 100), 0, 1);
  assert_int_equal(alloc(&any, (size_t)1 << 60), none);
  umem_set_failure_hook(NULL, NULL);
  assert_int_equal(calls, 3);
  FORGET(&any);
}

int main(void) { return run_on_both(); }
