/* disk.h - what limits the length of files. */
#ifndef UMEM_DISK_H
#define UMEM_DISK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* fallocate of [from, to), with its flags. Signals do not keep it from ending, however often they come.
 * Returns an errno; part of it may be done then. */
int umem_change_space(int fd, int how, uint64_t from, uint64_t to);

/* Whether the process may make a file this long. Passing the limit (RLIMIT_FSIZE), which is stored in *limit,
 * sends SIGXFSZ, which kills. */
static inline bool umem_may_write_to(uint64_t length, uint64_t *limit) {
  struct rlimit allowed;
  *limit = getrlimit(RLIMIT_FSIZE, &allowed) == 0 ? allowed.rlim_cur : RLIM_INFINITY;
  return length <= *limit;
}
_Static_assert(RLIM_INFINITY == UINT64_MAX, "no length passes it");

/* Whether error says that there is no room: on the disk, in a quota, in memory. */
static inline bool umem_is_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM;
}

/* The bytes of the disk of fd that this process may still take; UINT64_MAX where the disk does not say.
 * Returns an errno. */
int umem_free_on_disk(int fd, uint64_t *bytes);

#endif
