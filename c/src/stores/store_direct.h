/* store_direct.h - transfers around the page cache (O_DIRECT).
 *
 * They use a descriptor of their own, opened for one call, because the flag would change what every other user of
 * the store's descriptor does, and because umemStore_isolate needs a file that nobody else has open.
 *
 * The kernel keeps the order with the cache: before a direct read it writes the changed pages of the range to the
 * disk, those of mappings too, and a direct write drops the pages of its range. */
#ifndef UMEM_STORE_DIRECT_H
#define UMEM_STORE_DIRECT_H

#include "core/watch.h"
#include "stores/store.h"

enum {
  umemDirectUnit = 4096, /* offsets and sizes of direct transfers are multiples of it */
  umemDirectAddress =
      512, /* the same for addresses in memory, where the device does not ask for more */
  umemDirectBuffer = 4 << 20,  /* bytes of a buffer, which Host puts on huge pages */
  umemDirectHugePage = 2 << 20 /* what it is aligned to */
};

/* One thread's way around the cache, for one call. */
typedef struct umemDirectPath {
  umemStore *store;
  int fd;        /* -1: there is none */
  bool refused;  /* the file system does not do it: the caller goes through the cache */
  bool buffered; /* the addresses of the caller do not suit the device */
  char *buffer;  /* owned; NULL until it is needed */
} umemDirectPath;

/* Opens the descriptor for reading or writing. Records nothing: where that fails, path is refused. */
void umemDirectPath_open(umemDirectPath *path, umemStore *store, bool writes);
void umemDirectPath_close(umemDirectPath *path);

/* Transfers between the file and memory, as pread and pwrite do: returns the bytes transferred, which may be fewer
 * than size; -1 with errno otherwise. offset and size are multiples of umemDirectUnit. Sets path->refused, and
 * returns -1, where the file system does not do it, or there is no memory for a buffer. */
ssize_t umemDirectPath_read(umemDirectPath *path, uint64_t offset, char *bytes, size_t size);
ssize_t umemDirectPath_write(umemDirectPath *path, uint64_t offset, char const *bytes, size_t size);

/* What such a transfer is for the route of a copy: a file without a disk is read and written in the page cache. */
umemWay umemStore_direct_way(umemStore const *store);

/* Whether the file system opens the file for direct transfers; else umemNotSupportedError. For a store that is
 * constructed with umemDirectOn. */
bool umemStore_check_direct(umemStore *store);

#endif
