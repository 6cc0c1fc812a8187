/* store_ahead.h - pread and pwrite, but for addresses where the processor copies slowly: see base/ahead.h. The pages of
 * the page cache have the position in a page that the bytes have in the file. */
#ifndef UMEM_STORE_AHEAD_H
#define UMEM_STORE_AHEAD_H

#include "base/ahead.h"

#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

enum { umemStoreAheadFrom = 2 << 10 }; /* bytes; for fewer, another copy costs more */

/* The same by way of other addresses, of a part of the bytes. */
ssize_t umemStore_pread_ahead(int fd, void *bytes, size_t size, off_t offset);
ssize_t umemStore_pwrite_ahead(int fd, void const *bytes, size_t size, off_t offset);

static inline ssize_t umemStore_pread(int fd, void *bytes, size_t size, off_t offset) {
  if (size >= umemStoreAheadFrom && umem_is_ahead((uintptr_t)bytes, (uintptr_t)offset))
    return umemStore_pread_ahead(fd, bytes, size, offset);
  return pread(fd, bytes, size, offset);
}

static inline ssize_t umemStore_pwrite(int fd, void const *bytes, size_t size, off_t offset) {
  if (size >= umemStoreAheadFrom && umem_is_ahead((uintptr_t)offset, (uintptr_t)bytes))
    return umemStore_pwrite_ahead(fd, bytes, size, offset);
  return pwrite(fd, bytes, size, offset);
}

#endif
