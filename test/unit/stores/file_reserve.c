/* file_reserve.c - the disk space of blocks in files: reserved, zeroed, trimmed and moved, on File
 * and MMap. */
#include "file_help.h"

/* ---- reserving ---- */

TEST(space_is_reserved_when_allocated) {
  make_file(1000);
  open_any(&any, "r+");
  assert_int_equal(alloc(&any, 4 * MiB + 5), 0);
  assert_int_equal(length_of(path), 4 * MiB + 5);
  assert_true(disk_of(path) >= 4 * MiB);
  assert_int_equal(alloc(&any, 4 * MiB), 4 * MiB + 16);
  assert_int_equal(length_of(path), 8 * MiB + 16);
  assert_true(disk_of(path) >= 8 * MiB);
  umem_free(&any, at(&any, 4 * MiB + 16));
  umem_free(&any, at(&any, 0));
  assert_int_equal(length_of(path), 8 * MiB + 16);
  assert_true(disk_of(path) >= 8 * MiB);
  close_any(&any);
  expect_pattern(0, 1000);
}

TEST(what_alignment_skips_is_reserved_when_it_is_used) {
  open_any(&any, "w+");
  assert_int_equal(alloc(&any, 1), 0);
  assert_int_equal(offset_of(&any, umem_aligned_alloc(&any, 16 * MiB, 1)), 16 * MiB);
  assert_true(disk_of(path) < MiB);
  assert_int_equal(alloc(&any, 8 * MiB), 16);
  assert_true(disk_of(path) >= 8 * MiB);
}

TEST(holes_of_an_existing_file_are_filled) {
  make_file(10);
  assert_int_equal(truncate(path, 8 * MiB), 0);
  open_any(&any, "r+");
  assert_true(disk_of(path) < MiB);
  assert_int_equal(alloc(&any, 4 * MiB), 0);
  assert_in_range(disk_of(path), 4 * MiB, 5 * MiB);
  assert_int_equal(alloc(&any, 5 * MiB), 4 * MiB); /* across the end */
  assert_true(disk_of(path) >= 9 * MiB);
  close_any(&any);
  assert_int_equal(length_of(path), 9 * MiB);
  expect_pattern(0, 10);
}

/* A file that is only read needs no room for what it does not hold. */
TEST(holes_stay_holes_for_readers) {
  make_file(10);
  assert_int_equal(truncate(path, 8 * MiB), 0);
  open_any(&any, "r");
  assert_int_equal(alloc(&any, 8 * MiB), 0);
  close_any(&any);
  assert_true(disk_of(path) < MiB);
}

TEST(without_reservation_a_file_stays_sparse) {
  make_file(10);
  assert_int_equal(truncate(path, 8 * MiB), 0);
  open_sparse(&any, "r+");
  assert_int_equal(alloc(&any, 8 * MiB), 0);
  assert_int_equal(alloc(&any, 256 * GiB), 8 * MiB);
  assert_int_equal(length_of(path), 8 * MiB + 256 * GiB);
  assert_true(disk_of(path) < MiB);
  put(&any, 8 * MiB + GiB, "abc", 3);
  umem_free(&any, at(&any, 8 * MiB));
  assert_int_equal(umem_trim(&any, 0), umemOK);
  assert_int_equal(length_of(path), 8 * MiB);
  close_any(&any);
  expect_pattern(0, 10);
}

TEST(options_are_checked) {
  make_file(10);
  int fd = open(path, O_RDWR);
  umemFileOptions options = {.size = sizeof options, .reserve = (umemReserve)2};
  assert_int_equal(any_ctor_with(&any, path, "w", &options), umemValueError);
  expect_failure(&any, umemValueError, "reserve is 2: neither umemReserveAuto nor ");
  expect_status(&any, any_adopt_with(&any, fd, &options), umemValueError, "reserve is 2");
  options = (umemFileOptions){.size = 1};
  assert_int_equal(any_ctor_with(&any, path, "w", &options), umemValueError);
  expect_failure(&any, umemValueError, "the size in the umemFileOptions is 1");
  expect_pattern(0, 10);
  assert_int_equal(any_adopt_with(&any, fd, NULL), umemOK);
  close_any(&any);
  assert_int_equal(any_ctor_with(&any, path, "r+", NULL), umemOK);
}

/* ---- calloc ---- */

static void expect_zeros(Any *ctx, uint64_t offset, size_t size) {
  SCOPED_BYTES(unsigned char, bytes, size);
  memset(bytes, 1, size);
  assert_int_equal(get(ctx, offset, bytes, size), umemOK);
  for (size_t i = 0; i < size; i++)
    if (bytes[i]) fail_msg("byte %zu of a zeroed block is %d", i, bytes[i]);
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
    size_t size = sizes[i], length = size + 100;
    make_file(length);
    open_any(&any, "r+");
    assert_int_equal(zeroed(&any, size), 0);
    close_any(&any);
    assert_int_equal(length_of(path), length);
    expect_pattern(size, length - size);
  }
}

/* Bytes that were written would take disk space. */
TEST(calloc_of_fresh_space_writes_nothing) {
  open_sparse(&any, "w+");
  assert_int_equal(zeroed(&any, 256 * KiB), 0);
  assert_true(disk_of(path) < 256 * KiB);
  put(&any, 0, "a", 1);
  umem_free(&any, at(&any, 0));
  assert_int_equal(umem_trim(&any, 0), umemOK);
  assert_int_equal(length_of(path), 0);
  assert_int_equal(zeroed(&any, 256 * KiB), 0);
  assert_true(disk_of(path) < 256 * KiB);
  expect_zeros(&any, 0, 256 * KiB);
}

/* ---- trim and scratch ---- */

TEST(trim_cuts_the_end_and_punches_the_rest) {
  open_any(&any, "w+");
  uint64_t at0 = alloc(&any, 4 * MiB), at4 = alloc(&any, 4 * MiB), at8 = alloc(&any, MiB + 3);
  uint64_t at9 = alloc(&any, 4 * MiB);
  assert_int_equal(umem_set(&any, at(&any, at0), 1, 4 * MiB), umemOK);
  assert_int_equal(umem_set(&any, at(&any, at8), 1, MiB + 3), umemOK);
  umem_free(&any, at(&any, at4));
  umem_free(&any, at(&any, at9));
  assert_int_equal(length_of(path), 13 * MiB + 16);

  assert_int_equal(umem_trim(&any, 64 * MiB), umemOK); /* all of it may stay */
  assert_int_equal(length_of(path), 13 * MiB + 16);
  assert_true(disk_of(path) >= 13 * MiB);
  assert_int_equal(umem_trim(&any, 5 * MiB), umemOK);
  assert_true(disk_of(path) >= 10 * MiB && disk_of(path) < 11 * MiB);
  assert_int_equal(umem_trim(&any, 0), umemOK);
  assert_int_equal(length_of(path), 9 * MiB + 3); /* the end of the last block, exactly */
  assert_true(disk_of(path) < 6 * MiB);

  assert_int_equal(alloc(&any, 4 * MiB), at4); /* reserved anew */
  assert_true(disk_of(path) >= 9 * MiB);
  expect_zeros(&any, at4, 4 * MiB);
  SCOPED(free_bytes) unsigned char *bytes = slurp(at0, 4 * MiB);
  for (size_t i = 0; i < 4 * MiB; i++) assert_int_equal(bytes[i], 1);
}

TEST(trim_never_goes_below_the_old_end) {
  make_file(100000);
  open_any(&any, "r+");
  uint64_t one = alloc(&any, 50000), two = alloc(&any, 100000);
  umem_free(&any, at(&any, one));
  umem_free(&any, at(&any, two));
  assert_int_equal(length_of(path), two + 100000);
  assert_int_equal(umem_trim(&any, 1), umemOK);
  assert_int_equal(length_of(path), 100001);
  assert_int_equal(umem_trim(&any, 0), umemOK);
  assert_int_equal(length_of(path), 100000);
  assert_int_equal(zeroed(&any, 200000), 0);
  expect_zeros(&any, 0, 200000);
}

TEST(trim_leaves_what_others_have_appended) {
  open_any(&any, "w+");
  umem_free(&any, at(&any, alloc(&any, 100)));
  make_file(200);
  assert_int_equal(umem_trim(&any, 0), umemOK);
  assert_int_equal(length_of(path), 200);
  expect_pattern(100, 100);
}

/* The new space is no hole that reads as zero: others have written there. */
TEST(calloc_clears_what_others_have_appended) {
  char const *const modes[] = {"w+", "r+", "a+"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    for (int sparse = 0; sparse < 2; sparse++) {
      make_file(64);
      (sparse ? open_sparse : open_any)(&any, modes[i]);
      uint64_t first = alloc(&any, 64);
      make_file((size_t)first + 64 + 256);
      assert_int_equal(zeroed(&any, 128), first + 64);
      expect_zeros(&any, first + 64, 128);
      expect_pattern(first + 64 + 128, 128);
      close_any(&any);
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
  unsigned char bytes[64 * KiB];
  assert_int_equal(any_ctor(&any, NULL, "w+"), umemOK);
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(i);
  uint64_t block = alloc(&any, sizeof bytes);
  assert_int_equal(block, 0);
  put(&any, block, bytes, sizeof bytes);
  assert_true(child_run(give_back, &any));
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(get(&any, block, bytes, sizeof bytes), umemOK);
  check_pattern(bytes, sizeof bytes, 0);
}

/* ---- realloc ---- */

TEST(realloc_moves_and_keeps_the_bytes) {
  static unsigned char bytes[3 * MiB];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(i);
  open_any(&any, "w+");
  uint64_t block = alloc(&any, sizeof bytes);
  put(&any, block, bytes, sizeof bytes);
  uint64_t larger = offset_of(&any, umem_realloc(&any, at(&any, block), sizeof bytes, 4 * MiB));
  assert_true(larger != none && larger != block);
  expect_pattern(0, sizeof bytes);
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(get(&any, larger, bytes, sizeof bytes), umemOK);
  check_pattern(bytes, sizeof bytes, 0);
  umem_free(&any, at(&any, block)); /* dead */
  expect_failure(&any, umemValueError, "no live block");
  uint64_t least = 4 * MiB / 2 + 1;
  assert_int_equal(offset_of(&any, umem_realloc(&any, at(&any, larger), 4 * MiB, least)), larger);
  uint64_t smaller = offset_of(&any, umem_realloc(&any, at(&any, larger), least, 100));
  assert_int_equal(smaller, 0); /* moved to where there is room */
  assert_int_equal(get(&any, smaller, bytes, 100), umemOK);
  check_pattern(bytes, 100, 0);

  assert_true(umem_realloc(&any, at(&any, smaller), 101, 200) == umem_null(&any));
  expect_failure(&any, umemValueError, "has 100 bytes, not 101");
  assert_true(umem_realloc(&any, at(&any, smaller + 16), 10, 200) == umem_null(&any));
  expect_failure(&any, umemValueError, "no live block");
  assert_true(umem_realloc(&any, at(&any, smaller), 100, (size_t)1 << 60) == umem_null(&any));
  expect_failure(&any, umemMemoryError, path);
  assert_int_equal(get(&any, smaller, bytes, 100), umemOK);
  check_pattern(bytes, 100, 0);
  umem_free(&any, at(&any, smaller));
}

TEST(realloc_needs_to_read) {
  open_any(&any, "w");
  uint64_t block = alloc(&any, 100);
  uintptr_t moved = umem_realloc(&any, at(&any, block), 100, 1000);
  if (kind == kindFile) {
    assert_true(moved == umem_null(&any));
    expect_failure(&any, umemNotSupportedError, "open for writing only");
    assert_int_equal(length_of(path), 100);
    moved = at(&any, block);
  }
  umem_free(&any, moved);
}

int main(void) { return run_on_both(); }
