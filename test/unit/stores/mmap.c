/* mmap.c - what a MMap has beside a File: pointers. The rest is in file.c, file_owner.c,
 * file_space.c, file_reserve.c and file_io.c. */
#include "file_help.h"

#include <sys/resource.h>

/* ---- the pointers ---- */

TEST(pointers_reach_the_file_and_back) {
  Any ctx;
  make_file(1000);
  open_any(&ctx, "r+");
  unsigned char *bytes = (unsigned char *)umem_alloc(&ctx, 5000);
  check_pattern(bytes, 1000, 0);
  for (size_t i = 1000; i < 5000; i++) {
    assert_int_equal(bytes[i], 0);
    bytes[i] = pattern(i);
  }
  expect_pattern(0, 5000); /* others see it at once */
  unsigned char copied[5000];
  assert_int_equal(get(&ctx, 0, copied, 5000), umemOK); /* and so do copies */
  assert_memory_equal(copied, bytes, 5000);
  assert_int_equal(umem_set(&ctx, (uintptr_t)bytes + 10, 9, 1), umemOK);
  assert_int_equal(bytes[10], 9);
  assert_int_equal(umem_flush(&ctx), umemOK);
  close_any(&ctx);
}

TEST(blocks_never_move_when_the_file_grows) {
  Any ctx;
  open_any(&ctx, "w+");
  int *first = (int *)umem_alloc(&ctx, sizeof *first);
  *first = 42;
  for (size_t size = 1; size <= GiB / 4; size *= 16) {
    char *block = (char *)umem_alloc(&ctx, size);
    assert_non_null(block);
    assert_int_equal(umemMMap_offset(&ctx.mmap, (uintptr_t)block) % 16, 0);
    block[0] = block[size - 1] = 1;
  }
  assert_int_equal(*first, 42);
  assert_int_equal(umemMMap_offset(&ctx.mmap, (uintptr_t)first), 0);
  close_any(&ctx);
}

TEST(offsets_and_addresses_answer_each_other) {
  Any ctx;
  make_file(1000);
  open_any(&ctx, "r");
  uintptr_t base = umemMMap_address(&ctx.mmap, 0);
  assert_true(base != 0 && base % (size_t)sysconf(_SC_PAGESIZE) == 0);
  assert_true(umemMMap_address(&ctx.mmap, 999) == base + 999);
  assert_true(umemMMap_offset(&ctx.mmap, base + 999) == 999);
  assert_true(umemMMap_address(&ctx.mmap, 1000) == 0);
  expect_failure(&ctx, umemIndexError, "umemMMap_address: offset 1000 is past the end of ");
  assert_true(umemMMap_address(&ctx.mmap, UINTPTR_MAX) == 0);
  expect_failure(&ctx, umemIndexError, "(1000 bytes)");
  uintptr_t const elsewhere[] = {0, base - 1, (uintptr_t)&ctx, UINTPTR_MAX};
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
    assert_true(umemMMap_offset(&ctx.mmap, elsewhere[i]) == UINTPTR_MAX);
    expect_failure(&ctx, umemIndexError, "is not in the mapping of ");
  }
  assert_true(umemMMap_offset(NULL, base) == UINTPTR_MAX);
  assert_true(umemMMap_address(NULL, 0) == 0);
  umem_thread_clear();
  close_any(&ctx);
}

TEST(pointers_that_are_not_its_own_are_refused) {
  Any ctx;
  char foreign[16] = "abc";
  open_any(&ctx, "w+");
  assert_int_equal(alloc(&ctx, 100), 0);
  umem_free(&ctx, (uintptr_t)foreign);
  expect_failure(&ctx, umemValueError, "is not in the mapping of ");
  assert_true(umem_aligned_origin(&ctx, (uintptr_t)foreign) == 0);
  expect_failure(&ctx, umemValueError, "is not in the mapping of ");
  assert_true(umem_realloc(&ctx, (uintptr_t)foreign, 3, 100) == 0);
  expect_failure(&ctx, umemValueError, "is not in the mapping of ");
  assert_int_equal(umem_set(&ctx, (uintptr_t)foreign, 0, 3), umemIndexError);
  expect_failure(&ctx, umemIndexError, "is not in the mapping of ");
  umemHost host;
  umemHost_ctor(&host);
  char byte = 1;
  expect_status(&ctx, umem_copy_to(&ctx, (uintptr_t)foreign, &host, (uintptr_t)&byte, 1),
                umemIndexError, "is not in the mapping of ");
  expect_status(&ctx, umem_copy_from(&ctx, (uintptr_t)foreign, &host, (uintptr_t)&byte, 1),
                umemIndexError, "is not in the mapping of ");
  assert_string_equal(foreign, "abc");
  close_any(&ctx);
}

TEST(a_plain_host_shares_the_memory) {
  Any ctx;
  umemHost host;
  umemHost_ctor(&host);
  make_file(100);
  open_any(&ctx, "r");
  uintptr_t adr = umem_alloc(&ctx, 100);
  assert_true(umem_connect(&ctx, adr, 100, &host, 64) == adr);
  assert_int_equal(umem_disconnect(&ctx, adr, &host, adr, 64), umemOK);
  umem_dtor(&host);
  close_any(&ctx);
}

/* ---- what the kernel forbids ---- */

/* What the kernel lets the CPU do with the mapping of path, as "r--s". */
static void permissions(char letters[5]) {
  char line[600];
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  *letters = 0;
  while (fgets(line, sizeof line, maps))
    if (strstr(line, path)) assert_int_equal(sscanf(line, "%*s %4s", letters), 1);
  fclose(maps);
}

TEST(mode_r_is_read_only_for_the_cpu) {
  Any ctx;
  char letters[5];
  make_file(100);
  open_any(&ctx, "r");
  permissions(letters);
  assert_string_equal(letters, "r--s");
  close_any(&ctx);
  open_any(&ctx, "a");
  permissions(letters);
  assert_string_equal(letters, "rw-s");
  close_any(&ctx);
  permissions(letters);
  assert_string_equal(letters, "");
}

TEST(copies_of_a_cut_file_do_not_fault) {
  Any ctx;
  static char bytes[20000];
  make_file(20000);
  open_any(&ctx, "r+");
  assert_int_equal(alloc(&ctx, 20000), 0);
  uintptr_t base = at(&ctx, 0);
  assert_int_equal(truncate(path, 0), 0);
  umemHost host;
  umemHost_ctor(&host);
  assert_int_equal(umem_copy_to(&ctx, base, &host, (uintptr_t)bytes, 20000), umemIOError);
  expect_failure(&ctx, umemIOError, "truncated by another process");
  assert_int_equal(umem_copy_to(&host, (uintptr_t)bytes, &ctx, base + 10000, 5), umemIOError);
  expect_failure(&ctx, umemIOError, "truncated by another process");
  umem_dtor(&host);
  close_any(&ctx);
}

TEST(the_mapping_ends_with_the_context) {
  Any ctx;
  unsigned char resident;
  open_any(&ctx, "w+");
  void *page = (void *)umem_alloc(&ctx, 1);
  assert_int_equal(mincore(page, 1, &resident), 0);
  close_any(&ctx);
  assert_int_equal(mincore(page, 1, &resident), -1);
  assert_int_equal(errno, ENOMEM);
}

/* ---- little address space ---- */

static uint64_t address_space_in_use(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  EXPECT(file && fscanf(file, "%lu", &pages) == 1);
  fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit_address_space(uint64_t more) {
  uint64_t limit = address_space_in_use() + more;
  EXPECT(setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}) == 0);
}

static void work_in_200_MiB(void *unused) {
  (void)unused;
  Any ctx;
  limit_address_space(200 * MiB);
  EXPECT(any_ctor(&ctx, path, "w+") == umemOK);
  EXPECT(alloc(&ctx, 1 * MiB) == 0);
  *(char *)at(&ctx, MiB - 1) = 1;
  EXPECT(alloc(&ctx, 200 * MiB) == none);
  EXPECT(umem_get_status(&ctx) == umemMemoryError);
  EXPECT(strstr(umem_get_message(&ctx), "bytes of address space that the mapping has"));
  EXPECT(length_of(path) == MiB);
  umem_clear_status(&ctx);
  EXPECT(alloc(&ctx, MiB) == MiB);
  umem_dtor(&ctx);
  EXPECT(umem_is_ok(&ctx));
}

static void too_long_for_200_MiB(void *unused) {
  (void)unused;
  Any ctx;
  limit_address_space(200 * MiB);
  EXPECT(any_ctor(&ctx, path, "r+") == umemMemoryError);
  EXPECT(strstr(umem_get_message(&ctx), "cannot map \""));
  EXPECT(strstr(umem_get_message(&ctx), "Cannot allocate memory"));
  EXPECT(alloc(&ctx, 1) == none);
}

TEST(little_address_space_is_halved_for) {
  assert_true(child_run(work_in_200_MiB, NULL));
  assert_int_equal(truncate(path, GiB), 0);
  assert_true(child_run(too_long_for_200_MiB, NULL));
  assert_int_equal(length_of(path), GiB);
}

/* The mapping may happen to begin at a multiple of more. */
TEST(alignments_end_at_a_gibibyte) {
  for (int i = 0; i < 64; i++) {
    Any ctx;
    open_any(&ctx, "w+");
    assert_true(umem_aligned_alloc(&ctx, 2 * GiB, 1) == 0);
    expect_failure(&ctx, umemMemoryError, "is mapped at a multiple of 1073741824");
    assert_true(umem_aligned_alloc(&ctx, (size_t)1 << 63, 1) == 0);
    expect_failure(&ctx, umemMemoryError, "is mapped at a multiple of 1073741824");
    assert_int_equal(length_of(path), 0);
    uintptr_t adr = umem_aligned_alloc(&ctx, GiB, 1);
    assert_true(adr && adr % GiB == 0);
    close_any(&ctx);
  }
}

static void align_in_200_MiB(void *unused) {
  (void)unused;
  Any ctx;
  limit_address_space(200 * MiB);
  EXPECT(any_ctor(&ctx, path, "w+") == umemOK);
  uintptr_t adr = umem_aligned_alloc(&ctx, 64 * KiB, 1);
  EXPECT(adr && adr % (64 * KiB) == 0);
  EXPECT(!umem_aligned_alloc(&ctx, 128 * KiB, 1));
  EXPECT(strstr(umem_get_message(&ctx), "is mapped at a multiple of 65536"));
  umem_dtor(&ctx);
}

TEST(little_address_space_aligns_less) {
  for (int i = 0; i < 16; i++) assert_true(child_run(align_in_200_MiB, NULL));
}

int main(void) {
  kind = kindMMap;
  return run_cases(NULL, NULL);
}
