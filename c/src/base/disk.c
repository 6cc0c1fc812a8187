/* disk.c - see disk.h. */
#include "base/disk.h"
#include "base/again.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The end of a piece that begins at `at`: a multiple of the least one, so that pieces share no page. */
static uint64_t end_of_piece(uint64_t at, uint64_t piece, uint64_t least, uint64_t to) {
  if (to - at <= piece) return to;
  return (at + piece) / least * least;
}

/* In one call, if signals let it end: some file systems undo all that a call has done when one comes
 * (tmpfs). Then in ever smaller pieces. */
int umem_change_space(int fd, int how, uint64_t from, uint64_t to) {
  uint64_t const least = 1 << 16;
  uint64_t piece = to - from;
  do {
    uint64_t end = end_of_piece(from, piece, least, to);
    if (fallocate(fd, how, (off_t)from, (off_t)(end - from)) == 0)
      from = end;
    else if (errno != EINTR)
      return errno;
    else if (piece > least)
      piece = piece / 2 > least ? piece / 2 : least;
  } while (from < to);
  return 0;
}

/* What a disk keeps back for root is nobody else's. */
int umem_free_on_disk(int fd, uint64_t *bytes) {
  struct statvfs disk;
  *bytes = UINT64_MAX;
  if (UMEM_AGAIN(fstatvfs(fd, &disk)) != 0) return errno;
  uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  bool known = disk.f_blocks && disk.f_frsize && (disk.f_bfree || disk.f_bavail);
  if (known && __builtin_mul_overflow(blocks, (uint64_t)disk.f_frsize, bytes)) *bytes = UINT64_MAX;
  return 0;
}
