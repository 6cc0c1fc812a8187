/* segment.c - see segment.h. */
#include "share/segment.h"

#include "base/again.h"

#include <string.h>
#include <unistd.h>

enum { granule = 64 << 10 /* bytes: a multiple of the pages of any machine */ };

_Static_assert(sizeof(umemShmHeader) <= umemSegmentHeader, "the header has a page");
_Static_assert(sizeof(umemShmExtent) == 64, "an extent is a line of the cache");

char const umemSegment_magic[16] = "umem segment\r\n";

/* ---- the layout ---- */

uint64_t umemSegment_page(uint32_t pages) {
  if (pages == umemSegment1G) return UINT64_C(1) << 30;
  return pages == umemSegment2M || pages == umemSegmentAdvised ? 2 << 20 : granule;
}

uint64_t umemSegment_data(uint32_t blocks, uint32_t pages) {
  uint64_t extents = (uint64_t)umemShmTable_count(blocks) * sizeof(umemShmExtent);
  uint64_t heads = (uint64_t)umemShmTable_heads(blocks) * sizeof(uint32_t);
  return umemSegment_round_up(umemSegmentHeader + extents + heads, umemSegment_page(pages));
}

/* ---- the lock ---- */

int umemSegment_make_lock(pthread_mutex_t *lock) {
  pthread_mutexattr_t how;
  int error = pthread_mutexattr_init(&how);
  if (error) return error;
  error = pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
  if (!error) error = pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  if (!error) error = pthread_mutex_init(lock, &how);
  pthread_mutexattr_destroy(&how);
  return error;
}

/* Whether the lock in a segment that others have made is one of this kind: libc does what its kind says. */
static bool is_our_kind(pthread_mutex_t const *lock) {
#ifdef __GLIBC__
  pthread_mutex_t fresh;
  if (umemSegment_make_lock(&fresh) != 0) return false;
  bool same = fresh.__data.__kind == lock->__data.__kind;
  pthread_mutex_destroy(&fresh);
  return same;
#else
  (void)lock;
  return true;
#endif
}

/* ---- checking ---- */

char const *umemSegment_check(int fd, umemShmHeader *header, uint64_t length) {
  memset(header, 0, sizeof *header);
  if (length < umemSegmentHeader) return "it is too short";
  ssize_t got = UMEM_AGAIN(pread(fd, header, sizeof *header, 0));
  if (got != (ssize_t)sizeof *header) return "its beginning cannot be read";
  if (memcmp(header->magic, umemSegment_magic, sizeof umemSegment_magic) != 0)
    return "it is no segment of umem";
  if (header->version != umemSegmentVersion) return "another version of umem has made it";
  if (header->ready != 1) return "it is not complete";
  if (header->lock_size != sizeof(pthread_mutex_t) || header->extent_size != sizeof(umemShmExtent))
    return "a program for another machine has made it";
  if (!header->blocks || header->blocks > umemSegmentMostBlocks || header->pages > umemSegment1G ||
      !header->capacity || header->capacity > UMEM_SEGMENT_MOST ||
      header->capacity % umemSegment_page(header->pages) != 0 ||
      header->total != umemSegment_data(header->blocks, header->pages) + header->capacity)
    return "the sizes in it are wrong";
  if (header->total != length) return "it has not the length that it says";
  return is_our_kind(&header->lock) ? NULL : "its lock is of another kind";
}
