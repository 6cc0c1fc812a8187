/* store_ahead.c - see store_ahead.h. */
#include "stores/store_ahead.h"
#include "base/number.h"

#include <string.h>

enum { page = 4096, piece = 32 << 10, apart = 64 };

/* Bytes at the file's offset start in the buffer 64 bytes behind their position in a page. So neither the system nor
 * memcpy has the slow distance: the latter's is 64 less than that of the caller's bytes. */
typedef struct Buffer {
  _Alignas(page) char bytes[page + apart + piece];
} Buffer;

static char *begin(Buffer *buffer, off_t offset) { return buffer->bytes + offset % page + apart; }

/* Other processors copy at all distances alike. */
static bool is_slow(void) {
#ifdef __x86_64__
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

ssize_t umemStore_pread_ahead(int fd, void *bytes, size_t size, off_t offset) {
  if (!is_slow()) return pread(fd, bytes, size, offset);
  Buffer buffer;
  char *first = begin(&buffer, offset);
  ssize_t n = pread(fd, first, umem_lesser(size, piece), offset);
  if (n > 0) memcpy(bytes, first, (size_t)n);
  return n;
}

ssize_t umemStore_pwrite_ahead(int fd, void const *bytes, size_t size, off_t offset) {
  if (!is_slow()) return pwrite(fd, bytes, size, offset);
  Buffer buffer;
  char *first = begin(&buffer, offset);
  size_t n = umem_lesser(size, piece);
  memcpy(first, bytes, n);
  return pwrite(fd, first, n, offset);
}
