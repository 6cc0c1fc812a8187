/* runs_help.h - what the tests of runs of bytes that lie far apart in files share: how often the
 * file is read, and files that the cache lacks.
 *
 * Programs are linked with --wrap=pread,--wrap=pread64. */
#pragma once

#include "file_help.h"
#include "wrap.h"

static size_t reads; /* atomic: calls that read the file */

WRAPPED(ssize_t, pread, (int fd, void *bytes, size_t size, off_t offset)) {
  __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
  return __real_pread(fd, bytes, size, offset);
}
WRAPPED(ssize_t, pread64, (int fd, void *bytes, size_t size, off_t offset)) {
  __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
  return __real_pread64(fd, bytes, size, offset);
}

/* How many pages of the file at path the cache has. */
static inline size_t cached_pages(size_t size) {
  size_t const page = 4096, pages = (size + page - 1) / page;
  SCOPED(free_bytes) unsigned char *present = malloc(pages);
  int fd = open_path(O_RDONLY);
  void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  assert_true(present && bytes != MAP_FAILED && mincore(bytes, size, present) == 0);
  size_t count = 0;
  for (size_t i = 0; i < pages; i++) count += present[i] & 1;
  munmap(bytes, size);
  close(fd);
  return count;
}

/* Takes the file out of the cache. False where the file system keeps all of it there. */
static inline bool make_cold(size_t size) {
  int fd = open_path(O_RDWR);
  bool dropped = fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  close(fd);
  return dropped && cached_pages(size) == 0;
}

static size_t const far_size = 16 * MiB;
