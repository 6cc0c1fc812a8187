/* file_space.c - where blocks of files are: placement, bytes that stay, and limits, on File and
 * MMap. */
#include "file_help.h"

#include <sys/resource.h>

/* ---- placement ---- */

enum { steps = 400, live_most = 40 };

/* A fixed mix of allocations and frees; where[k] is what step k gave. */
static void run_script(Any *ctx, uint64_t where[steps]) {
  uint64_t live[live_most];
  unsigned count = 0, random = 12345;
  for (unsigned k = 0; k < steps; k++) {
    random = random * 1103515245u + 12345u;
    unsigned dice = random >> 16;
    size_t size = 1 + (dice >> 3) % 3000;
    where[k] = none;
    if (count == live_most || (count && dice % 3 == 0)) {
      unsigned victim = (dice >> 4) % count;
      umem_free(ctx, at(ctx, live[victim]));
      live[victim] = live[--count];
      continue;
    }
    uintptr_t adr = dice % 3 == 1 ? umem_alloc(ctx, size)
                                  : umem_aligned_alloc(ctx, (size_t)1 << dice % 13, size);
    where[k] = live[count++] = offset_of(ctx, adr);
    assert_true(where[k] != none);
  }
}

TEST(placement_is_the_same_in_all_modes_and_kinds) {
  static char const *const modes[] = {"w+", "r", "r+", "w"};
  uint64_t expected[steps], got[steps];
  Kind actual = kind;
  kind = kindFile;
  open_any(&any, "w");
  run_script(&any, expected);
  close_any(&any);
  kind = actual;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    open_any(&any, modes[i]);
    run_script(&any, got);
    assert_memory_equal(got, expected, sizeof got);
    close_any(&any);
  }
  open_any(&any, "a"); /* the file begins elsewhere: only the unaligned case is the same, shifted */
  uint64_t end = (length_of(path) + 15) & ~UINT64_C(15);
  assert_int_equal(alloc(&any, 100), end);
  assert_int_equal(alloc(&any, 100), end + 112);
}

TEST(what_a_program_wrote_it_reads_with_mode_r) {
  static char const *const modes[] = {"w+", "r"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    unsigned char bytes[3000], expected[3000];
    open_any(&any, modes[i]);
    uint64_t one = alloc(&any, 100), two = alloc(&any, 2000);
    umem_free(&any, at(&any, one));
    uint64_t three = alloc(&any, 3000);
    uint64_t four = offset_of(&any, umem_realloc(&any, at(&any, two), 2000, 2500));
    memset(expected, 3, sizeof expected);
    if (i == 0) {
      assert_int_equal(umem_set(&any, at(&any, three), 3, 3000), umemOK);
      assert_int_equal(umem_set(&any, at(&any, four), 3, 2500), umemOK);
    }
    assert_int_equal(get(&any, three, bytes, 3000), umemOK);
    assert_memory_equal(bytes, expected, 3000);
    assert_int_equal(get(&any, four, bytes, 2500), umemOK);
    assert_memory_equal(bytes, expected, 2500);
    close_any(&any);
  }
}

TEST(a_file_of_one_array_is_that_array) {
  unsigned char array[1237];
  for (size_t i = 0; i < sizeof array; i++) array[i] = pattern(i);
  open_any(&any, "w");
  assert_int_equal(alloc(&any, sizeof array), 0);
  put(&any, 0, array, sizeof array);
  umem_free(&any, at(&any, 0)); /* a tidy program keeps its data */
  close_any(&any);
  assert_int_equal(length_of(path), sizeof array);
  expect_pattern(0, sizeof array);
}

TEST(appended_blocks_start_at_the_end) {
  make_file(100);
  open_any(&any, "a+");
  assert_int_equal(alloc(&any, 10), 112);
  put(&any, 112, "0123456789", 10);
  close_any(&any);
  assert_int_equal(length_of(path), 122);
  expect_pattern(0, 100);
  SCOPED(free_bytes) unsigned char *bytes = slurp(100, 22);
  assert_memory_equal(bytes,
                      "\0\0\0\0\0\0\0\0\0\0\0\0"
                      "0123456789",
                      22);
}

/* ---- an existing file is sacred ---- */

TEST(allocating_freeing_and_trimming_change_no_byte) {
  static char const *const modes[] = {"r+", "a", "a+", "r"};
  uint64_t where[steps];
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    make_file(200000);
    open_any(&any, modes[i]);
    run_script(&any, where);
    assert_int_equal(umem_trim(&any, 0), umemOK);
    assert_int_equal(umem_flush(&any), umemOK);
    close_any(&any);
    assert_true(length_of(path) >= 200000);
    expect_pattern(0, 200000);
  }
}

TEST(writes_stay_inside_of_one_live_block) {
  make_file(1000);
  open_any(&any, "r+");
  uint64_t one = alloc(&any, 100), two = alloc(&any, 96), three = alloc(&any, 96);
  assert_true(one == 0 && two == 112 && three == 208);
  static struct {
    uint64_t offset;
    size_t size;
  } const outside[] = {
      {0, 101},  {99, 2},  {100, 1},  {111, 1},   {112, 97}, /* across two neighbours */
      {200, 16}, {304, 1}, {500, 10}, {990, 100}, {5000, 1}, {0, SIZE_MAX / 2},
  };
  for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
    expect_status(&any, umem_set(&any, at(&any, outside[i].offset), 0, outside[i].size),
                  umemIndexError, "not inside one live block");
  }
  put(&any, 111, "x", 1);
  expect_failure(&any, umemIndexError, "1 bytes at offset 111 of ");
  umem_free(&any, at(&any, two));
  put(&any, 112, "x", 1);
  expect_failure(&any, umemIndexError, "not inside one live block");
  expect_pattern(0, 1000);

  assert_int_equal(umem_set(&any, at(&any, 99), 0, 1), umemOK);
  assert_int_equal(umem_set(&any, at(&any, 303), 0, 1), umemOK);
  close_any(&any);
  assert_int_equal(length_of(path), 1000);
  SCOPED(free_bytes) unsigned char *bytes = slurp(0, 1000);
  for (size_t i = 0; i < 1000; i++)
    assert_int_equal(bytes[i], i == 99 || i == 303 ? 0 : pattern(i));
}

TEST(wrong_frees_leave_the_table_whole) {
  open_any(&any, "w+");
  uint64_t one = alloc(&any, 100), two = alloc(&any, 100);
  static uint64_t const wrong[] = {1, 16, 96, 99, 224, 1 << 20};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    umem_free(&any, at(&any, wrong[i]));
    expect_failure(&any, umemValueError, "no live block of ");
    umem_aligned_free(&any, at(&any, wrong[i]));
    expect_failure(&any, umemValueError, "umem_aligned_free: no live block of ");
    assert_true(umem_aligned_origin(&any, at(&any, wrong[i])) == umem_null(&any));
    expect_failure(&any, umemValueError, "begins at offset ");
  }
  assert_true(umem_aligned_origin(&any, at(&any, two)) == at(&any, two));
  umem_free(&any, at(&any, one));
  umem_free(&any, at(&any, one));
  expect_failure(&any, umemValueError, "begins at offset 0");
  assert_int_equal(alloc(&any, 112), one);
  assert_int_equal(alloc(&any, 1), two + 112);
}

/* ---- limits ---- */

TEST(mode_r_ends_with_the_file) {
  make_file(1000);
  open_any(&any, "r");
  assert_int_equal(alloc(&any, 1001), none);
  expect_failure(&any, umemMemoryError, "which has 1000 bytes and is only read");
  assert_int_equal(alloc(&any, 992), 0);
  assert_int_equal(alloc(&any, 9), none);
  expect_failure(&any, umemMemoryError, "umem_alloc: 9 bytes at offset 992 do not fit into ");
  assert_int_equal(alloc(&any, 8), 992);
  expect_no_block(&any, umem_calloc(&any, 1, 1), umemNotSupportedError, "");
  expect_status(&any, umem_set(&any, at(&any, 0), 0, 1), umemNotSupportedError,
                path); /* says which file */

  Any writer; /* what a writer adds can be read */
  open_any(&writer, "a");
  assert_int_equal(alloc(&writer, 100), 1008);
  close_any(&writer);
  assert_int_equal(alloc(&any, 100), 1008);
  umem_free(&any, at(&any, 1008));
  assert_int_equal(umem_trim(&any, 0), umemOK);
  close_any(&any);
  assert_int_equal(length_of(path), 1108);
}

TEST(a_limit_on_the_file_size_is_an_error_and_no_signal) {
  struct rlimit old, low;
  make_file(1000);
  open_any(&any, "r+");
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  low = old;
  low.rlim_cur = 2000;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
  uint64_t exact = alloc(&any, 2000), beyond = alloc(&any, 1);
  low.rlim_cur = 500;
  setrlimit(RLIMIT_FSIZE, &low);
  umem_free(&any, at(&any, 0));
  uint64_t existing = alloc(&any, 501), below = alloc(&any, 500);
  setrlimit(RLIMIT_FSIZE, &old);
  assert_int_equal(exact, 0);
  assert_int_equal(beyond, none);
  assert_int_equal(existing, none); /* also over bytes that exist: writing them would kill */
  assert_int_equal(below, 0);
  assert_non_null(strstr(umem_get_message(&any), "a block up to 2001"));
  assert_non_null(strstr(umem_get_message(&any), "passes the 2000 bytes that this process"));
  expect_failure(&any, umemMemoryError, "passes the 500 bytes that this process may write to");
  assert_int_equal(length_of(path), 2000);
  expect_pattern(0, 1000);
}

TEST(sizes_that_no_disk_has) {
  static size_t const sizes[] = {(size_t)1 << 60, (size_t)1 << 62, ((size_t)1 << 63) - 1,
                                 (size_t)1 << 63, SIZE_MAX - 15,   SIZE_MAX};
  make_file(1000);
  open_any(&any, "r+");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(alloc(&any, sizes[i]), none);
    expect_failure(&any, umemMemoryError, path);
    expect_no_block(&any, umem_calloc(&any, 1, sizes[i]), umemMemoryError, path);
    assert_int_equal(length_of(path), 1000);
  }
  assert_int_equal(alloc(&any, 10), 0);
  uint64_t far = offset_of(&any, umem_aligned_alloc(&any, (size_t)1 << 62, 10));
  if (far == none) {
    expect_failure(&any, umemMemoryError, path);
  } else { /* tmpfs knows no limit but the disk that is used */
    assert_int_equal(far, UINT64_C(1) << 62);
    assert_int_equal(umem_set(&any, at(&any, far), 1, 10), umemOK);
    umem_free(&any, at(&any, far));
    assert_int_equal(umem_trim(&any, 0), umemOK);
  }
  expect_no_block(&any, umem_aligned_alloc(&any, (size_t)1 << 63, 10), umemMemoryError, path);
  assert_int_equal(length_of(path), 1000);
  assert_int_equal(alloc(&any, 10), 16);
  close_any(&any);
  expect_pattern(0, 1000);
}

TEST(alignments_up_to_a_gibibyte) {
  open_any(&any, "w+");
  for (size_t alignment = 1; alignment <= GiB; alignment *= 2) {
    uintptr_t adr = umem_aligned_alloc(&any, alignment, 3);
    assert_true(adr != umem_null(&any));
    assert_true(adr % alignment == 0 && adr % 16 == 0);
    assert_int_equal(umem_set(&any, adr, 1, 3), umemOK);
    assert_true(umem_aligned_origin(&any, adr) == adr);
  }
  assert_true(disk_of(path) < 64 * MiB); /* the gaps are holes */
}

int main(void) { return run_on_both(); }
