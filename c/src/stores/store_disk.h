/* store_disk.h - which file systems are refused, what the page cache has, and transfers around
 * it. */
#ifndef UMEM_STORE_DISK_H
#define UMEM_STORE_DISK_H

#include "watch/watch.h"
#include "stores/store_file.h"

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* ==== file systems ==== */

/* Whether mode, as of fstat, is that of a regular file; else an umemIOError. */
bool umemStore_check_mode(umemStore const *store, mode_t mode);

/* Records that another user has put the file, or a link to it, into a folder of all users. Returns
 * false. */
bool umemStore_fail_planted(umemStore const *store);

/* Whether the open file is a regular file of a file system that stores files; else an
 * umemIOError. */
bool umemStore_check_kind(umemStore *store);

/* Whether path, or where it does not exist the folder that it would be created in, is on such a
 * file system; else an umemIOError. Opens nothing. What cannot be examined passes: opening it says
 * why. */
bool umemStore_check_place(umemStore *store, char const *path);

/* ==== the page cache ==== */

/* Whether the page cache has the page of the file at offset; true where the system does not say.
 * Starts no I/O, and records nothing. */
bool umemStore_is_cached(umemStore *store, uint64_t offset);

/* The first value of the member query, for a file system with this f_type. */
int umemStore_first_query(uint32_t magic);

/* ==== transfers around it ==== */

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

/* Opens the descriptor for reading or writing. Records nothing: where that fails, path is
 * refused. */
void umemDirectPath_open(umemDirectPath *path, umemStore *store, bool writes);
void umemDirectPath_close(umemDirectPath *path);

/* Transfers between the file and memory, as pread and pwrite do: returns the bytes transferred,
 * which may be fewer than size; -1 with errno otherwise. offset and size are multiples of
 * umemDirectUnit. Sets path->refused, and returns -1, where the file system does not do it, or
 * there is no memory for a buffer. */
ssize_t umemDirectPath_read(umemDirectPath *path, uint64_t offset, char *bytes, size_t size);
ssize_t umemDirectPath_write(umemDirectPath *path, uint64_t offset, char const *bytes, size_t size);

/* What such a transfer is for the route of a copy: a file without a disk is read and written in the
 * page cache. */
umemWay umemStore_direct_way(umemStore const *store);

/* Whether the file system opens the file for direct transfers; else umemNotSupportedError. For a
 * store that is constructed with umemDirectOn. */
bool umemStore_check_direct(umemStore *store);

#endif
