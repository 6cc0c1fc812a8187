/* mmap.c - what a MMap has beside a File: pointers. The rest is in file.c, file_owner.c,
 * file_space.c, file_reserve.c and file_io.c. */
#include "file_help.h"

#include <sys/resource.h>

/* ---- the pointers ---- */

TEST(pointers_reach_the_file_and_back) {
  make_file(1000);
  open_any(&any, "r+");
  unsigned char *bytes = (unsigned char *)umem_alloc(&any, 5000);
  check_pattern(bytes, 1000, 0);
  for (size_t i = 1000; i < 5000; i++) {
    assert_int_equal(bytes[i], 0);
    bytes[i] = pattern(i);
  }
  expect_pattern(0, 5000); /* others see it at once */
  unsigned char copied[5000];
  assert_int_equal(get(&any, 0, copied, 5000), umemOK); /* and so do copies */
  assert_memory_equal(copied, bytes, 5000);
  assert_int_equal(umem_set(&any, (uintptr_t)bytes + 10, 9, 1), umemOK);
  assert_int_equal(bytes[10], 9);
  assert_int_equal(umem_flush(&any), umemOK);
}

TEST(blocks_never_move_when_the_file_grows) {
  open_any(&any, "w+");
  int *first = (int *)umem_alloc(&any, sizeof *first);
  *first = 42;
  for (size_t size = 1; size <= GiB / 4; size *= 16) {
    char *block = (char *)umem_alloc(&any, size);
    assert_non_null(block);
    assert_int_equal(umemMMap_offset(&any.mmap, (uintptr_t)block) % 16, 0);
    block[0] = block[size - 1] = 1;
  }
  assert_int_equal(*first, 42);
  assert_int_equal(umemMMap_offset(&any.mmap, (uintptr_t)first), 0);
}

TEST(offsets_and_addresses_answer_each_other) {
  make_file(1000);
  open_any(&any, "r");
  uintptr_t base = umemMMap_address(&any.mmap, 0);
  assert_true(base != 0 && base % (size_t)sysconf(_SC_PAGESIZE) == 0);
  assert_true(umemMMap_address(&any.mmap, 999) == base + 999);
  assert_true(umemMMap_offset(&any.mmap, base + 999) == 999);
  assert_true(umemMMap_address(&any.mmap, 1000) == 0);
  expect_failure(&any, umemIndexError, "umemMMap_address: offset 1000 is past the end of ");
  assert_true(umemMMap_address(&any.mmap, UINTPTR_MAX) == 0);
  expect_failure(&any, umemIndexError, "(1000 bytes)");
  uintptr_t const elsewhere[] = {0, base - 1, (uintptr_t)&any, UINTPTR_MAX};
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
    assert_true(umemMMap_offset(&any.mmap, elsewhere[i]) == UINTPTR_MAX);
    expect_failure(&any, umemIndexError, "is not in the mapping of ");
  }
  assert_true(umemMMap_offset(NULL, base) == UINTPTR_MAX);
  assert_true(umemMMap_address(NULL, 0) == 0);
  umem_thread_clear();
}

TEST(pointers_that_are_not_its_own_are_refused) {
  char foreign[16] = "abc";
  open_any(&any, "w+");
  assert_int_equal(alloc(&any, 100), 0);
  umem_free(&any, (uintptr_t)foreign);
  expect_failure(&any, umemValueError, "is not in the mapping of ");
  assert_true(umem_aligned_origin(&any, (uintptr_t)foreign) == 0);
  expect_failure(&any, umemValueError, "is not in the mapping of ");
  assert_true(umem_realloc(&any, (uintptr_t)foreign, 3, 100) == 0);
  expect_failure(&any, umemValueError, "is not in the mapping of ");
  assert_int_equal(umem_set(&any, (uintptr_t)foreign, 0, 3), umemIndexError);
  expect_failure(&any, umemIndexError, "is not in the mapping of ");
  char byte = 1;
  expect_status(&any, umem_copy_to(&any, (uintptr_t)foreign, &host, (uintptr_t)&byte, 1),
                umemIndexError, "is not in the mapping of ");
  expect_status(&any, umem_copy_from(&any, (uintptr_t)foreign, &host, (uintptr_t)&byte, 1),
                umemIndexError, "is not in the mapping of ");
  assert_string_equal(foreign, "abc");
}

TEST(a_plain_host_shares_the_memory) {
  make_file(100);
  open_any(&any, "r");
  uintptr_t adr = umem_alloc(&any, 100);
  assert_true(umem_connect(&any, adr, 100, &host, 64) == adr);
  assert_int_equal(umem_disconnect(&any, adr, &host, adr, 64), umemOK);
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
  char letters[5];
  make_file(100);
  open_any(&any, "r");
  permissions(letters);
  assert_string_equal(letters, "r--s");
  close_any(&any);
  open_any(&any, "a");
  permissions(letters);
  assert_string_equal(letters, "rw-s");
  close_any(&any);
  permissions(letters);
  assert_string_equal(letters, "");
}

TEST(copies_of_a_cut_file_do_not_fault) {
  static char bytes[20000];
  make_file(20000);
  open_any(&any, "r+");
  assert_int_equal(alloc(&any, 20000), 0);
  uintptr_t base = at(&any, 0);
  assert_int_equal(truncate(path, 0), 0);
  assert_int_equal(umem_copy_to(&any, base, &host, (uintptr_t)bytes, 20000), umemIOError);
  expect_failure(&any, umemIOError, "truncated by another process");
  assert_int_equal(umem_copy_to(&host, (uintptr_t)bytes, &any, base + 10000, 5), umemIOError);
  expect_failure(&any, umemIOError, "truncated by another process");
}

TEST(the_mapping_ends_with_the_context) {
  unsigned char resident;
  open_any(&any, "w+");
  void *page = (void *)umem_alloc(&any, 1);
  assert_int_equal(mincore(page, 1, &resident), 0);
  close_any(&any);
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

static void work_in_200_MiB(void *unused UNUSED) {
  limit_address_space(200 * MiB);
  EXPECT(any_ctor(&any, path, "w+") == umemOK);
  EXPECT(alloc(&any, 1 * MiB) == 0);
  *(char *)at(&any, MiB - 1) = 1;
  EXPECT(alloc(&any, 200 * MiB) == none);
  EXPECT(umem_get_status(&any) == umemMemoryError);
  EXPECT(strstr(umem_get_message(&any), "bytes of address space that the mapping has"));
  EXPECT(length_of(path) == MiB);
  umem_clear_status(&any);
  EXPECT(alloc(&any, MiB) == MiB);
  umem_dtor(&any);
  EXPECT(umem_is_ok(&any));
}

static void too_long_for_200_MiB(void *unused UNUSED) {
  limit_address_space(200 * MiB);
  EXPECT(any_ctor(&any, path, "r+") == umemMemoryError);
  EXPECT(strstr(umem_get_message(&any), "cannot map \""));
  EXPECT(strstr(umem_get_message(&any), strerror(ENOMEM)));
  EXPECT(alloc(&any, 1) == none);
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
    open_any(&any, "w+");
    assert_true(umem_aligned_alloc(&any, 2 * GiB, 1) == 0);
    expect_failure(&any, umemMemoryError, "is mapped at a multiple of 1073741824");
    assert_true(umem_aligned_alloc(&any, (size_t)1 << 63, 1) == 0);
    expect_failure(&any, umemMemoryError, "is mapped at a multiple of 1073741824");
    assert_int_equal(length_of(path), 0);
    uintptr_t adr = umem_aligned_alloc(&any, GiB, 1);
    assert_true(adr && adr % GiB == 0);
    close_any(&any);
  }
}

static void align_in_200_MiB(void *unused UNUSED) {
  limit_address_space(200 * MiB);
  EXPECT(any_ctor(&any, path, "w+") == umemOK);
  uintptr_t adr = umem_aligned_alloc(&any, 64 * KiB, 1);
  EXPECT(adr && adr % (64 * KiB) == 0);
  EXPECT(!umem_aligned_alloc(&any, 128 * KiB, 1));
  EXPECT(strstr(umem_get_message(&any), "is mapped at a multiple of 65536"));
  umem_dtor(&any);
}

TEST(little_address_space_aligns_less) {
  for (int i = 0; i < 16; i++) assert_true(child_run(align_in_200_MiB, NULL));
}

int main(void) {
  kind = kindMMap;
  return run_cases(NULL, NULL);
}
