/* store_ahead.c - see store_ahead.h. */
#include "stores/store_ahead.h"
#include "base/ahead.h"
#include "base/number.h"
#include "stores/store.h"

#include <string.h>

enum { page = 4096, apart = 64, write_piece = 32 << 10, read_piece = 256 << 10 };

/* Where it is slow, reads to a place 64 bytes further on, and moves the bytes from there while the cache has them. */
ssize_t umemStore_pread_long(int fd, void *bytes, size_t size, off_t offset) {
  if (!umem_is_slow((uintptr_t)bytes, (uintptr_t)offset))
    return pread(fd, bytes, umem_lesser(size, umemStoreMostIO), offset);
  char *first = (char *)bytes + apart;
  ssize_t n = pread(fd, first, umem_lesser(size - apart, read_piece), offset);
  if (n > 0) memmove(bytes, first, (size_t)n);
  return n;
}

/* By way of a buffer that has the bytes 64 further on than the page cache, modulo the size of a page. */
static __attribute__((noinline)) ssize_t write_apart(int fd, void const *bytes, size_t size,
                                                     off_t offset) {
  _Alignas(page) char buffer[page + apart + write_piece];
  char *first = buffer + offset % page + apart;
  size_t n = umem_lesser(size, write_piece);
  memcpy(first, bytes, n);
  return pwrite(fd, first, n, offset);
}

ssize_t umemStore_pwrite_long(int fd, void const *bytes, size_t size, off_t offset) {
  return umem_is_slow((uintptr_t)offset, (uintptr_t)bytes)
             ? write_apart(fd, bytes, size, offset)
             : pwrite(fd, bytes, umem_lesser(size, umemStoreMostIO), offset);
}
