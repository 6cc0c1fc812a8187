/* store_ahead.c - see store_ahead.h. */
#include "stores/store_ahead.h"
#include "base/number.h"

#include <string.h>

enum { page = 4096, apart = 64, write_piece = 32 << 10, read_piece = 256 << 10 };

/* Other processors copy at all distances alike. */
static bool is_slow(void) {
#ifdef __x86_64__
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

/* Reads to a place 64 bytes further on, and moves the bytes from there while the cache has them. */
ssize_t umemStore_pread_ahead(int fd, void *bytes, size_t size, off_t offset) {
  if (!is_slow()) return pread(fd, bytes, size, offset);
  char *first = (char *)bytes + apart;
  ssize_t n = pread(fd, first, umem_lesser(size - apart, read_piece), offset);
  if (n > 0) memmove(bytes, first, (size_t)n);
  return n;
}

/* By way of a buffer that has the bytes 64 further on than the page cache, modulo the size of a page. */
ssize_t umemStore_pwrite_ahead(int fd, void const *bytes, size_t size, off_t offset) {
  if (!is_slow()) return pwrite(fd, bytes, size, offset);
  _Alignas(page) char buffer[page + apart + write_piece];
  char *first = buffer + offset % page + apart;
  size_t n = umem_lesser(size, write_piece);
  memcpy(first, bytes, n);
  return pwrite(fd, first, n, offset);
}
