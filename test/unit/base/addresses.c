/* addresses.c - a file is mapped at a multiple, and what another thread maps meanwhile stays. */
#include "base/system.h"

#include "cases.h"
#include "wrap.h"

enum { page = 4096, MiB = 1 << 20 };

/* What the next mapping of a file meets: another thread takes the first page, and then, where it
 * fails, the system refuses as Linux before 6.12 does, which gives the addresses up first. */
static struct {
  bool comes, fails;
  char *taken;
} other;

WRAPPED(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset)) {
  if (fd < 0 || !other.comes) return __real_mmap(at, size, protection, flags, fd, offset);
  other.comes = false;
  munmap(at, size);
  other.taken =
      __real_mmap(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  other.taken[0] = 'x';
  if (!other.fails) return __real_mmap(at, size, protection, flags, fd, offset);
  errno = ENODEV;
  return MAP_FAILED;
}

static bool other_is_whole(void) {
  unsigned char there;
  return mincore(other.taken, page, &there) == 0 && other.taken[0] == 'x';
}

static FILE *open_file(void) {
  FILE *file = tmpfile();
  assert_non_null(file);
  assert_int_equal(ftruncate(fileno(file), MiB), 0);
  return file;
}

TEST_CASE(a_refused_mapping_unmaps_nothing_of_another_thread) {
  FILE *file = open_file();
  other.comes = other.fails = true;
  assert_null(umem_map_aligned(fileno(file), MiB, MiB, true, 0));
  assert_int_equal(errno, ENODEV);
  assert_true(other_is_whole());
  munmap(other.taken, page);
  fclose(file);
}

TEST_CASE(a_mapping_replaces_nothing_of_another_thread) {
  FILE *file = open_file();
  other.comes = true;
  other.fails = false;
  char *at = umem_map_aligned(fileno(file), MiB, MiB, true, 0);
  assert_non_null(at);
  assert_int_equal((uintptr_t)at % MiB, 0);
  assert_true(other_is_whole());
  at[0] = 'y';
  assert_int_equal(pread(fileno(file), &at[1], 1, 0), 1);
  assert_int_equal(at[1], 'y');
  munmap(at, MiB);
  munmap(other.taken, page);
  fclose(file);
}
