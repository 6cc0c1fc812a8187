/* segment.c - the layout of a segment, whom it may belong to, and whether a file is one. */
#include "share/segment.h"

#include "base/again.h"

#include <stdlib.h>
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

uint64_t umemSegment_tables(uint32_t blocks) {
  uint64_t extents = (uint64_t)umemShmTable_count(blocks) * sizeof(umemShmExtent);
  uint64_t heads = (uint64_t)umemShmTable_heads(blocks) * sizeof(uint32_t);
  return umemSegmentHeader + extents + heads;
}

uint64_t umemSegment_data(uint32_t blocks, uint32_t pages) {
  return umemSegment_round_up(umemSegment_tables(blocks), umemSegment_page(pages));
}

/* ---- trust ---- */

/* Without memory for the list no other group is one of the process. */
static bool is_own_group(gid_t group) {
  if (group == getegid()) return true;
  int count = getgroups(0, NULL);
  gid_t *groups = count > 0 ? malloc((size_t)count * sizeof *groups) : NULL;
  bool found = false;
  if (groups) count = getgroups(count, groups);
  for (int i = 0; groups && i < count && !found; i++) found = groups[i] == group;
  free(groups);
  return found;
}

/* Access lists need no look: if one lets somebody write, the bit of the group says so. A further name of the file may
 * be the work of another user. */
char const *umemSegment_distrust(struct stat const *st, umemTrust trust) {
  bool own = st->st_uid == geteuid();
  if (!S_ISREG(st->st_mode)) return "it is no file in memory";
  if (trust == umemTrustAll) return NULL;
  if (st->st_nlink > 1)
    return "it has a second name, which another user may have made (option trust)";
  if (trust == umemTrustGroup && !own && !is_own_group(st->st_gid))
    return "it belongs to a user who is not in a group of this one (option trust)";
  if (trust != umemTrustGroup && !own) return "it belongs to another user (option trust)";
  mode_t others = trust == umemTrustGroup ? S_IWOTH : S_IWGRP | S_IWOTH;
  return st->st_mode & others ? "other users may write it (option trust)" : NULL;
}

/* ---- checking ---- */

char const *umemSegment_check(int fd, umemShmHeader *header, uint64_t length) {
  memset(header, 0, sizeof *header);
  if (length < umemSegmentHeader) return "it is too short";
  ssize_t got = UMEM_AGAIN(pread(fd, header, sizeof *header, 0));
  if (got != (ssize_t)sizeof *header) return "its beginning cannot be read";
  if (memcmp(header->magic, umemSegment_magic, sizeof umemSegment_magic) != 0)
    return "it is no segment of umem";
  if (header->version != umemSegmentVersion)
    return "another version of umem has made it, with other tables";
  if (header->ready != 1) return "it is not complete";
  if (header->lock_size != sizeof(umemShmLock) || header->extent_size != sizeof(umemShmExtent))
    return "a program for another machine has made it";
  if (!header->blocks || header->blocks > umemSegmentMostBlocks || header->pages > umemSegment1G ||
      !header->capacity || header->capacity > UMEM_SEGMENT_MOST ||
      header->capacity % umemSegment_page(header->pages) != 0 ||
      header->total != umemSegment_data(header->blocks, header->pages) + header->capacity)
    return "the sizes in it are wrong";
  return header->total == length ? NULL : "it has not the length that it says";
}

/* The number in the segment is that of the handle, which nobody can know who never had it. */
char const *umemSegment_check_handle(umemHandle const *handle, uint64_t const id[2], uint64_t data,
                                     uint64_t total) {
  if (handle->identity[2] != id[0] || handle->identity[3] != id[1])
    return "it is not there any more, and another segment has its name";
  if (handle->size != total) return "its size is not that of the segment";
  return handle->offset >= data ? NULL : "its bytes are those of the tables";
}
