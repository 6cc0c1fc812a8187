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
  Any ctx;
  Kind actual = kind;
  kind = kindFile;
  open_any(&ctx, "w");
  run_script(&ctx, expected);
  close_any(&ctx);
  kind = actual;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    open_any(&ctx, modes[i]);
    run_script(&ctx, got);
    assert_memory_equal(got, expected, sizeof got);
    close_any(&ctx);
  }
  open_any(&ctx, "a"); /* the file begins elsewhere: only the unaligned case is the same, shifted */
  uint64_t end = (length_of(path) + 15) & ~UINT64_C(15);
  assert_int_equal(alloc(&ctx, 100), end);
  assert_int_equal(alloc(&ctx, 100), end + 112);
  close_any(&ctx);
}

TEST(what_a_program_wrote_it_reads_with_mode_r) {
  static char const *const modes[] = {"w+", "r"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    Any ctx;
    unsigned char bytes[3000], expected[3000];
    open_any(&ctx, modes[i]);
    uint64_t one = alloc(&ctx, 100), two = alloc(&ctx, 2000);
    umem_free(&ctx, at(&ctx, one));
    uint64_t three = alloc(&ctx, 3000);
    uint64_t four = offset_of(&ctx, umem_realloc(&ctx, at(&ctx, two), 2000, 2500));
    memset(expected, 3, sizeof expected);
    if (i == 0) {
      assert_int_equal(umem_set(&ctx, at(&ctx, three), 3, 3000), umemOK);
      assert_int_equal(umem_set(&ctx, at(&ctx, four), 3, 2500), umemOK);
    }
    assert_int_equal(get(&ctx, three, bytes, 3000), umemOK);
    assert_memory_equal(bytes, expected, 3000);
    assert_int_equal(get(&ctx, four, bytes, 2500), umemOK);
    assert_memory_equal(bytes, expected, 2500);
    close_any(&ctx);
  }
}

TEST(a_file_of_one_array_is_that_array) {
  Any ctx;
  unsigned char array[1237];
  for (size_t i = 0; i < sizeof array; i++) array[i] = pattern(i);
  open_any(&ctx, "w");
  assert_int_equal(alloc(&ctx, sizeof array), 0);
  put(&ctx, 0, array, sizeof array);
  umem_free(&ctx, at(&ctx, 0)); /* a tidy program keeps its data */
  close_any(&ctx);
  assert_int_equal(length_of(path), sizeof array);
  expect_pattern(0, sizeof array);
}

TEST(appended_blocks_start_at_the_end) {
  Any ctx;
  make_file(100);
  open_any(&ctx, "a+");
  assert_int_equal(alloc(&ctx, 10), 112);
  put(&ctx, 112, "0123456789", 10);
  close_any(&ctx);
  assert_int_equal(length_of(path), 122);
  expect_pattern(0, 100);
  unsigned char *bytes = slurp(100, 22);
  assert_memory_equal(bytes,
                      "\0\0\0\0\0\0\0\0\0\0\0\0"
                      "0123456789",
                      22);
  free(bytes);
}

/* ---- an existing file is sacred ---- */

TEST(allocating_freeing_and_trimming_change_no_byte) {
  static char const *const modes[] = {"r+", "a", "a+", "r"};
  uint64_t where[steps];
  Any ctx;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    make_file(200000);
    open_any(&ctx, modes[i]);
    run_script(&ctx, where);
    assert_int_equal(umem_trim(&ctx, 0), umemOK);
    assert_int_equal(umem_flush(&ctx), umemOK);
    close_any(&ctx);
    assert_true(length_of(path) >= 200000);
    expect_pattern(0, 200000);
  }
}

TEST(writes_stay_inside_of_one_live_block) {
  Any ctx;
  make_file(1000);
  open_any(&ctx, "r+");
  uint64_t one = alloc(&ctx, 100), two = alloc(&ctx, 96), three = alloc(&ctx, 96);
  assert_true(one == 0 && two == 112 && three == 208);
  static struct {
    uint64_t offset;
    size_t size;
  } const outside[] = {
      {0, 101},  {99, 2},  {100, 1},  {111, 1},   {112, 97}, /* across two neighbours */
      {200, 16}, {304, 1}, {500, 10}, {990, 100}, {5000, 1}, {0, SIZE_MAX / 2},
  };
  for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
    expect_status(&ctx, umem_set(&ctx, at(&ctx, outside[i].offset), 0, outside[i].size),
                  umemIndexError, "not inside one live block");
  }
  put(&ctx, 111, "x", 1);
  expect_failure(&ctx, umemIndexError, "1 bytes at offset 111 of ");
  umem_free(&ctx, at(&ctx, two));
  put(&ctx, 112, "x", 1);
  expect_failure(&ctx, umemIndexError, "not inside one live block");
  expect_pattern(0, 1000);

  assert_int_equal(umem_set(&ctx, at(&ctx, 99), 0, 1), umemOK);
  assert_int_equal(umem_set(&ctx, at(&ctx, 303), 0, 1), umemOK);
  close_any(&ctx);
  assert_int_equal(length_of(path), 1000);
  unsigned char *bytes = slurp(0, 1000);
  for (size_t i = 0; i < 1000; i++)
    assert_int_equal(bytes[i], i == 99 || i == 303 ? 0 : pattern(i));
  free(bytes);
}

TEST(wrong_frees_leave_the_table_whole) {
  Any ctx;
  open_any(&ctx, "w+");
  uint64_t one = alloc(&ctx, 100), two = alloc(&ctx, 100);
  static uint64_t const wrong[] = {1, 16, 96, 99, 224, 1 << 20};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    umem_free(&ctx, at(&ctx, wrong[i]));
    expect_failure(&ctx, umemValueError, "no live block of ");
    umem_aligned_free(&ctx, at(&ctx, wrong[i]));
    expect_failure(&ctx, umemValueError, "umem_aligned_free: no live block of ");
    assert_true(umem_aligned_origin(&ctx, at(&ctx, wrong[i])) == umem_null(&ctx));
    expect_failure(&ctx, umemValueError, "begins at offset ");
  }
  assert_true(umem_aligned_origin(&ctx, at(&ctx, two)) == at(&ctx, two));
  umem_free(&ctx, at(&ctx, one));
  umem_free(&ctx, at(&ctx, one));
  expect_failure(&ctx, umemValueError, "begins at offset 0");
  assert_int_equal(alloc(&ctx, 112), one);
  assert_int_equal(alloc(&ctx, 1), two + 112);
  close_any(&ctx);
}

/* ---- limits ---- */

TEST(mode_r_ends_with_the_file) {
  Any ctx;
  make_file(1000);
  open_any(&ctx, "r");
  assert_int_equal(alloc(&ctx, 1001), none);
  expect_failure(&ctx, umemMemoryError, "which has 1000 bytes and is only read");
  assert_int_equal(alloc(&ctx, 992), 0);
  assert_int_equal(alloc(&ctx, 9), none);
  expect_failure(&ctx, umemMemoryError, "umem_alloc: 9 bytes at offset 992 do not fit into ");
  assert_int_equal(alloc(&ctx, 8), 992);
  expect_no_block(&ctx, umem_calloc(&ctx, 1, 1), umemNotSupportedError, "");
  expect_status(&ctx, umem_set(&ctx, at(&ctx, 0), 0, 1), umemNotSupportedError,
                path); /* says which file */

  Any writer; /* what a writer adds can be read */
  open_any(&writer, "a");
  assert_int_equal(alloc(&writer, 100), 1008);
  close_any(&writer);
  assert_int_equal(alloc(&ctx, 100), 1008);
  umem_free(&ctx, at(&ctx, 1008));
  assert_int_equal(umem_trim(&ctx, 0), umemOK);
  close_any(&ctx);
  assert_int_equal(length_of(path), 1108);
}

TEST(a_limit_on_the_file_size_is_an_error_and_no_signal) {
  Any ctx;
  struct rlimit old, low;
  make_file(1000);
  open_any(&ctx, "r+");
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  low = old;
  low.rlim_cur = 2000;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
  uint64_t exact = alloc(&ctx, 2000), beyond = alloc(&ctx, 1);
  low.rlim_cur = 500;
  setrlimit(RLIMIT_FSIZE, &low);
  umem_free(&ctx, at(&ctx, 0));
  uint64_t existing = alloc(&ctx, 501), below = alloc(&ctx, 500);
  setrlimit(RLIMIT_FSIZE, &old);
  assert_int_equal(exact, 0);
  assert_int_equal(beyond, none);
  assert_int_equal(existing, none); /* also over bytes that exist: writing them would kill */
  assert_int_equal(below, 0);
  assert_non_null(strstr(umem_get_message(&ctx), "a block up to 2001"));
  assert_non_null(strstr(umem_get_message(&ctx), "passes the 2000 bytes that this process"));
  expect_failure(&ctx, umemMemoryError, "passes the 500 bytes that this process may write to");
  assert_int_equal(length_of(path), 2000);
  expect_pattern(0, 1000);
  close_any(&ctx);
}

TEST(sizes_that_no_disk_has) {
  static size_t const sizes[] = {(size_t)1 << 60, (size_t)1 << 62, ((size_t)1 << 63) - 1,
                                 (size_t)1 << 63, SIZE_MAX - 15,   SIZE_MAX};
  Any ctx;
  make_file(1000);
  open_any(&ctx, "r+");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(alloc(&ctx, sizes[i]), none);
    expect_failure(&ctx, umemMemoryError, path);
    expect_no_block(&ctx, umem_calloc(&ctx, 1, sizes[i]), umemMemoryError, path);
    assert_int_equal(length_of(path), 1000);
  }
  assert_int_equal(alloc(&ctx, 10), 0);
  uint64_t far = offset_of(&ctx, umem_aligned_alloc(&ctx, (size_t)1 << 62, 10));
  if (far == none) {
    expect_failure(&ctx, umemMemoryError, path);
  } else { /* tmpfs knows no limit but the disk that is used */
    assert_int_equal(far, UINT64_C(1) << 62);
    assert_int_equal(umem_set(&ctx, at(&ctx, far), 1, 10), umemOK);
    umem_free(&ctx, at(&ctx, far));
    assert_int_equal(umem_trim(&ctx, 0), umemOK);
  }
  expect_no_block(&ctx, umem_aligned_alloc(&ctx, (size_t)1 << 63, 10), umemMemoryError, path);
  assert_int_equal(length_of(path), 1000);
  assert_int_equal(alloc(&ctx, 10), 16);
  close_any(&ctx);
  expect_pattern(0, 1000);
}

TEST(alignments_up_to_a_gibibyte) {
  Any ctx;
  open_any(&ctx, "w+");
  for (size_t alignment = 1; alignment <= GiB; alignment *= 2) {
    uintptr_t adr = umem_aligned_alloc(&ctx, alignment, 3);
    assert_true(adr != umem_null(&ctx));
    assert_true(adr % alignment == 0 && adr % 16 == 0);
    assert_int_equal(umem_set(&ctx, adr, 1, 3), umemOK);
    assert_true(umem_aligned_origin(&ctx, adr) == adr);
  }
  assert_true(disk_of(path) < 64 * MiB); /* the gaps are holes */
  close_any(&ctx);
}

int main(void) { return run_on_both(); }
