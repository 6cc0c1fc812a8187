/* store_ahead.h - pread and pwrite of any size, but for addresses where the processor copies slowly: see base/ahead.h. The pages of
 * the page cache have the position in a page that the bytes have in the file. */
#ifndef UMEM_STORE_AHEAD_H
#define UMEM_STORE_AHEAD_H

#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

enum { umemStoreAheadFrom = 2 << 10 }; /* bytes; for fewer, another copy costs more */

/* The same for that many bytes and more, of which one call may transfer a part. */
ssize_t umemStore_pread_long(int fd, void *bytes, size_t size, off_t offset);
ssize_t umemStore_pwrite_long(int fd, void const *bytes, size_t size, off_t offset);

static inline ssize_t umemStore_pread(int fd, void *bytes, size_t size, off_t offset) {
  return size < umemStoreAheadFrom ? pread(fd, bytes, size, offset)
                                   : umemStore_pread_long(fd, bytes, size, offset);
}

static inline ssize_t umemStore_pwrite(int fd, void const *bytes, size_t size, off_t offset) {
  return size < umemStoreAheadFrom ? pwrite(fd, bytes, size, offset)
                                   : umemStore_pwrite_long(fd, bytes, size, offset);
}

#endif
