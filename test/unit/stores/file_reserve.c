/* file_reserve.c - the disk space of blocks in files: reserved, zeroed, trimmed and moved, on File
 * and MMap. */
#include "file_help.h"

/* ---- reserving ---- */

TEST(space_is_reserved_when_allocated) {
  Any ctx;
  make_file(1000);
  open_any(&ctx, "r+");
  assert_int_equal(alloc(&ctx, 4 * MiB + 5), 0);
  assert_int_equal(length_of(path), 4 * MiB + 5);
  assert_true(disk_of(path) >= 4 * MiB);
  assert_int_equal(alloc(&ctx, 4 * MiB), 4 * MiB + 16);
  assert_int_equal(length_of(path), 8 * MiB + 16);
  assert_true(disk_of(path) >= 8 * MiB);
  umem_free(&ctx, at(&ctx, 4 * MiB + 16));
  umem_free(&ctx, at(&ctx, 0));
  assert_int_equal(length_of(path), 8 * MiB + 16);
  assert_true(disk_of(path) >= 8 * MiB);
  close_any(&ctx);
  expect_pattern(0, 1000);
}

TEST(what_alignment_skips_is_reserved_when_it_is_used) {
  Any ctx;
  open_any(&ctx, "w+");
  assert_int_equal(alloc(&ctx, 1), 0);
  assert_int_equal(offset_of(&ctx, umem_aligned_alloc(&ctx, 16 * MiB, 1)), 16 * MiB);
  assert_true(disk_of(path) < MiB);
  assert_int_equal(alloc(&ctx, 8 * MiB), 16);
  assert_true(disk_of(path) >= 8 * MiB);
  close_any(&ctx);
}

TEST(holes_of_an_existing_file_are_filled) {
  Any ctx;
  make_file(10);
  assert_int_equal(truncate(path, 8 * MiB), 0);
  open_any(&ctx, "r+");
  assert_true(disk_of(path) < MiB);
  assert_int_equal(alloc(&ctx, 4 * MiB), 0);
  assert_in_range(disk_of(path), 4 * MiB, 5 * MiB);
  assert_int_equal(alloc(&ctx, 5 * MiB), 4 * MiB); /* across the end */
  assert_true(disk_of(path) >= 9 * MiB);
  close_any(&ctx);
  assert_int_equal(length_of(path), 9 * MiB);
  expect_pattern(0, 10);
}

/* A file that is only read needs no room for what it does not hold. */
TEST(holes_stay_holes_for_readers) {
  Any ctx;
  make_file(10);
  assert_int_equal(truncate(path, 8 * MiB), 0);
  open_any(&ctx, "r");
  assert_int_equal(alloc(&ctx, 8 * MiB), 0);
  close_any(&ctx);
  assert_true(disk_of(path) < MiB);
}

TEST(without_reservation_a_file_stays_sparse) {
  Any ctx;
  make_file(10);
  assert_int_equal(truncate(path, 8 * MiB), 0);
  open_sparse(&ctx, "r+");
  assert_int_equal(alloc(&ctx, 8 * MiB), 0);
  assert_int_equal(alloc(&ctx, 256 * GiB), 8 * MiB);
  assert_int_equal(length_of(path), 8 * MiB + 256 * GiB);
  assert_true(disk_of(path) < MiB);
  put(&ctx, 8 * MiB + GiB, "abc", 3);
  umem_free(&ctx, at(&ctx, 8 * MiB));
  assert_int_equal(umem_trim(&ctx, 0), umemOK);
  assert_int_equal(length_of(path), 8 * MiB);
  close_any(&ctx);
  expect_pattern(0, 10);
}

TEST(options_are_checked) {
  Any ctx;
  make_file(10);
  int fd = open(path, O_RDWR);
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  options.reserve = (umemReserve)2;
  assert_int_equal(any_ctor_with(&ctx, path, "w", &options), umemValueError);
  expect_failure(&ctx, umemValueError, "reserve is 2: neither umemReserveAuto nor ");
  expect_status(&ctx, any_adopt_with(&ctx, fd, &options), umemValueError, "reserve is 2");
  options = (umemFileOptions){.size = 1};
  assert_int_equal(any_ctor_with(&ctx, path, "w", &options), umemValueError);
  expect_failure(&ctx, umemValueError, "the size in the umemFileOptions is 1");
  expect_pattern(0, 10);
  assert_int_equal(any_adopt_with(&ctx, fd, NULL), umemOK);
  close_any(&ctx);
  assert_int_equal(any_ctor_with(&ctx, path, "r+", NULL), umemOK);
  close_any(&ctx);
}

/* ---- calloc ---- */

static void expect_zeros(Any *ctx, uint64_t offset, size_t size) {
  unsigned char *bytes = malloc(size);
  assert_non_null(bytes);
  memset(bytes, 1, size);
  assert_int_equal(get(ctx, offset, bytes, size), umemOK);
  for (size_t i = 0; i < size; i++)
    if (bytes[i]) fail_msg("byte %zu of a zeroed block is %d", i, bytes[i]);
  free(bytes);
}

static uint64_t zeroed(Any *ctx, size_t size) { return offset_of(ctx, umem_calloc(ctx, 1, size)); }

TEST(calloc_reads_as_zero_at_every_offset) {
  static size_t const sizes[] = {1, 100, 5000, 3 * MiB + 7}; /* the last is zeroed in another way */
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t size = sizes[i];
    Any ctx;
    make_file(size / 2 + 1);
    open_any(&ctx, "r+"); /* across the end that the file had */
    assert_int_equal(zeroed(&ctx, size), 0);
    expect_zeros(&ctx, 0, size);
    assert_int_equal(umem_set(&ctx, at(&ctx, 0), 5, size), umemOK);
    umem_free(&ctx, at(&ctx, 0));
    assert_int_equal(zeroed(&ctx, 2 * size), 0); /* across what was used before */
    expect_zeros(&ctx, 0, 2 * size);
    assert_true(disk_of(path) >= 2 * size); /* still reserved */
    close_any(&ctx);
    assert_int_equal(length_of(path), 2 * size > size / 2 + 1 ? 2 * size : size / 2 + 1);
  }
}

TEST(calloc_zeroes_nothing_but_its_block) {
  static size_t const sizes[] = {1, 100, 2 * MiB + 3};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    Any ctx;
    size_t size = sizes[i], length = size + 100;
    make_file(length);
    open_any(&ctx, "r+");
    assert_int_equal(zeroed(&ctx, size), 0);
    close_any(&ctx);
    assert_int_equal(length_of(path), length);
    expect_pattern(size, length - size);
  }
}

/* Bytes that were written would take disk space. */
TEST(calloc_of_fresh_space_writes_nothing) {
  Any ctx;
  open_sparse(&ctx, "w+");
  assert_int_equal(zeroed(&ctx, 256 * KiB), 0);
  assert_true(disk_of(path) < 256 * KiB);
  put(&ctx, 0, "a", 1);
  umem_free(&ctx, at(&ctx, 0));
  assert_int_equal(umem_trim(&ctx, 0), umemOK);
  assert_int_equal(length_of(path), 0);
  assert_int_equal(zeroed(&ctx, 256 * KiB), 0);
  assert_true(disk_of(path) < 256 * KiB);
  expect_zeros(&ctx, 0, 256 * KiB);
  close_any(&ctx);
}

/* ---- trim and scratch ---- */

TEST(trim_cuts_the_end_and_punches_the_rest) {
  Any ctx;
  open_any(&ctx, "w+");
  uint64_t at0 = alloc(&ctx, 4 * MiB), at4 = alloc(&ctx, 4 * MiB), at8 = alloc(&ctx, MiB + 3);
  uint64_t at9 = alloc(&ctx, 4 * MiB);
  assert_int_equal(umem_set(&ctx, at(&ctx, at0), 1, 4 * MiB), umemOK);
  assert_int_equal(umem_set(&ctx, at(&ctx, at8), 1, MiB + 3), umemOK);
  umem_free(&ctx, at(&ctx, at4));
  umem_free(&ctx, at(&ctx, at9));
  assert_int_equal(length_of(path), 13 * MiB + 16);

  assert_int_equal(umem_trim(&ctx, 64 * MiB), umemOK); /* all of it may stay */
  assert_int_equal(length_of(path), 13 * MiB + 16);
  assert_true(disk_of(path) >= 13 * MiB);
  assert_int_equal(umem_trim(&ctx, 5 * MiB), umemOK);
  assert_true(disk_of(path) >= 10 * MiB && disk_of(path) < 11 * MiB);
  assert_int_equal(umem_trim(&ctx, 0), umemOK);
  assert_int_equal(length_of(path), 9 * MiB + 3); /* the end of the last block, exactly */
  assert_true(disk_of(path) < 6 * MiB);

  assert_int_equal(alloc(&ctx, 4 * MiB), at4); /* reserved anew */
  assert_true(disk_of(path) >= 9 * MiB);
  expect_zeros(&ctx, at4, 4 * MiB);
  unsigned char *bytes = slurp(at0, 4 * MiB);
  for (size_t i = 0; i < 4 * MiB; i++) assert_int_equal(bytes[i], 1);
  free(bytes);
  close_any(&ctx);
}

TEST(trim_never_goes_below_the_old_end) {
  Any ctx;
  make_file(100000);
  open_any(&ctx, "r+");
  uint64_t one = alloc(&ctx, 50000), two = alloc(&ctx, 100000);
  umem_free(&ctx, at(&ctx, one));
  umem_free(&ctx, at(&ctx, two));
  assert_int_equal(length_of(path), two + 100000);
  assert_int_equal(umem_trim(&ctx, 1), umemOK);
  assert_int_equal(length_of(path), 100001);
  assert_int_equal(umem_trim(&ctx, 0), umemOK);
  assert_int_equal(length_of(path), 100000);
  assert_int_equal(zeroed(&ctx, 200000), 0);
  expect_zeros(&ctx, 0, 200000);
  close_any(&ctx);
}

TEST(trim_leaves_what_others_have_appended) {
  Any ctx;
  open_any(&ctx, "w+");
  umem_free(&ctx, at(&ctx, alloc(&ctx, 100)));
  make_file(200);
  assert_int_equal(umem_trim(&ctx, 0), umemOK);
  assert_int_equal(length_of(path), 200);
  expect_pattern(100, 100);
  close_any(&ctx);
}

/* The new space is no hole that reads as zero: others have written there. */
TEST(calloc_clears_what_others_have_appended) {
  char const *const modes[] = {"w+", "r+", "a+"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    for (int sparse = 0; sparse < 2; sparse++) {
      Any ctx;
      make_file(64);
      (sparse ? open_sparse : open_any)(&ctx, modes[i]);
      uint64_t first = alloc(&ctx, 64);
      make_file((size_t)first + 64 + 256);
      assert_int_equal(zeroed(&ctx, 128), first + 64);
      expect_zeros(&ctx, first + 64, 128);
      expect_pattern(first + 64 + 128, 128);
      close_any(&ctx);
    }
  }
}

static void give_back(void *argument) {
  Any *ctx = argument;
  umem_free(ctx, at(ctx, 0));
  umem_trim(ctx, 0);
  EXPECT(umem_is_ok(ctx));
  umem_dtor(ctx);
}

/* To it the blocks are free; to the parent they are not. */
TEST(a_forked_child_gives_nothing_back) {
  Any ctx;
  unsigned char bytes[64 * KiB];
  assert_int_equal(any_ctor(&ctx, NULL, "w+"), umemOK);
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(i);
  uint64_t block = alloc(&ctx, sizeof bytes);
  assert_int_equal(block, 0);
  put(&ctx, block, bytes, sizeof bytes);
  assert_true(child_run(give_back, &ctx));
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(get(&ctx, block, bytes, sizeof bytes), umemOK);
  check_pattern(bytes, sizeof bytes, 0);
  close_any(&ctx);
}

/* ---- realloc ---- */

TEST(realloc_moves_and_keeps_the_bytes) {
  Any ctx;
  static unsigned char bytes[3 * MiB];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(i);
  open_any(&ctx, "w+");
  uint64_t block = alloc(&ctx, sizeof bytes);
  put(&ctx, block, bytes, sizeof bytes);
  uint64_t larger = offset_of(&ctx, umem_realloc(&ctx, at(&ctx, block), sizeof bytes, 4 * MiB));
  assert_true(larger != none && larger != block);
  expect_pattern(0, sizeof bytes);
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(get(&ctx, larger, bytes, sizeof bytes), umemOK);
  check_pattern(bytes, sizeof bytes, 0);
  umem_free(&ctx, at(&ctx, block)); /* dead */
  expect_failure(&ctx, umemValueError, "no live block");
  uint64_t least = 4 * MiB / 2 + 1;
  assert_int_equal(offset_of(&ctx, umem_realloc(&ctx, at(&ctx, larger), 4 * MiB, least)), larger);
  uint64_t smaller = offset_of(&ctx, umem_realloc(&ctx, at(&ctx, larger), least, 100));
  assert_int_equal(smaller, 0); /* moved to where there is room */
  assert_int_equal(get(&ctx, smaller, bytes, 100), umemOK);
  check_pattern(bytes, 100, 0);

  assert_true(umem_realloc(&ctx, at(&ctx, smaller), 101, 200) == umem_null(&ctx));
  expect_failure(&ctx, umemValueError, "has 100 bytes, not 101");
  assert_true(umem_realloc(&ctx, at(&ctx, smaller + 16), 10, 200) == umem_null(&ctx));
  expect_failure(&ctx, umemValueError, "no live block");
  assert_true(umem_realloc(&ctx, at(&ctx, smaller), 100, (size_t)1 << 60) == umem_null(&ctx));
  expect_failure(&ctx, umemMemoryError, path);
  assert_int_equal(get(&ctx, smaller, bytes, 100), umemOK);
  check_pattern(bytes, 100, 0);
  umem_free(&ctx, at(&ctx, smaller));
  close_any(&ctx);
}

TEST(realloc_needs_to_read) {
  Any ctx;
  open_any(&ctx, "w");
  uint64_t block = alloc(&ctx, 100);
  uintptr_t moved = umem_realloc(&ctx, at(&ctx, block), 100, 1000);
  if (kind == kindFile) {
    assert_true(moved == umem_null(&ctx));
    expect_failure(&ctx, umemNotSupportedError, "open for writing only");
    assert_int_equal(length_of(path), 100);
    moved = at(&ctx, block);
  }
  umem_free(&ctx, moved);
  close_any(&ctx);
}

int main(void) { return run_on_both(); }
