/* store_zeros.c - disk space by writing zeros, where the file system has no fallocate (ext2, vfat,
 * NFS before 4.2).
 *
 * Behind the end of the file zeros are appended: the kernel puts them behind what others append
 * meanwhile. Into holes they are written while nobody else can have the file open, because somebody else
 * may write there too. */
#include "stores/store_zeros.h"
#include "core/status.h"
#include "base/again.h"
#include "base/number.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { zero_page = 4096, zero_pages = 256, zero_chunk = zero_page * zero_pages };

/* Writes zeros, at most a chunk: behind the end with at UINT64_MAX. Returns how many, or -1 with errno
 * set. */
static ssize_t write_zeros(umemStore *store, uint64_t at, uint64_t size) {
  static char const zeros[zero_page];
  struct iovec pieces[zero_pages];
  int count = 0;
  for (uint64_t left = umem_lesser(size, zero_chunk); left; count++) {
    pieces[count] = (struct iovec){(void *)(uintptr_t)zeros, umem_lesser(left, zero_page)};
    left -= pieces[count].iov_len;
  }
  bool behind = at == UINT64_MAX;
  ssize_t n = UMEM_AGAIN(
      pwritev2(store->fd, pieces, count, behind ? 0 : (off_t)at, behind ? RWF_APPEND : 0));
  if (n == 0) errno = EIO;
  return n > 0 ? n : -1;
}

/* ---- behind the end ---- */

/* Takes the added bytes behind length away again. If others have appended as well, the file is longer than
 * that, and nothing is cut. */
static void take_back(umemStore *store, uint64_t length, uint64_t added) {
  uint64_t now;
  if (!added || !umemStore_isolate(store)) return;
  umemAttempt ignored; /* a file that cannot be cut is only longer */
  umemAttempt_begin(&ignored);
  if (umemStore_measure(store, &now) && now - length == added) umemStore_resize(store, length);
  umemAttempt_end(&ignored);
  umemStore_share(store);
}

/* Makes a file that ends before `to`, at *now, longer up to there, by a hole. Whether it did. */
static bool skip_to(umemStore *store, uint64_t to, uint64_t *now) {
  if (!umemStore_isolate(store)) return false;
  bool done = umemStore_measure(store, now) && *now < to && umemStore_resize(store, to) == 0;
  umemStore_share(store);
  return done;
}

/* Appends zeros until the file, now of *length bytes, reaches to `to`; a gap before from may become a
 * hole. If the file grows by more than that, others have appended. */
static bool append_zeros(umemStore *store, uint64_t from, uint64_t to, uint64_t *length) {
  uint64_t now = *length, added = 0;
  if (from > now && skip_to(store, from, &now)) added = from - now;
  while (umemStore_measure(store, &now)) {
    if (now >= to) {
      if (now - *length != added) umemStore_note_others(store, now);
      *length = now;
      return true;
    }
    ssize_t n = write_zeros(store, UINT64_MAX, to - now);
    if (n < 0) {
      umemStore_fail_space(store, errno);
      break;
    }
    added += (uint64_t)n;
  }
  take_back(store, *length, added);
  return false;
}

bool umemStore_lengthen(umemStore *store, uint64_t to, uint64_t *length) {
  uint64_t now;
  if (!skip_to(store, to, &now)) return append_zeros(store, *length, to, length);
  if (now != *length) umemStore_note_others(store, now);
  *length = to;
  return true;
}

/* ---- holes ---- */

/* find_hole where the file system gives no map. One that reports a hole anywhere in the file reports all
 * of them. Otherwise the file may have blocks for all its bytes; or else all that this context has added
 * counts as a hole, and where the others are is not known: EOPNOTSUPP. */
static int seek_hole(umemStore *store, uint64_t to, uint64_t *start, uint64_t *end) {
  struct stat st;
  if (fstat(store->fd, &st) != 0) return errno;
  off_t first = store->taken_over ? -1 : lseek(store->fd, 0, SEEK_HOLE);
  if (first >= 0 && first < st.st_size) {
    off_t hole = lseek(store->fd, (off_t)*start, SEEK_HOLE);
    *start = hole < 0 ? to : umem_lesser((uint64_t)hole, to);
    off_t data = lseek(store->fd, (off_t)*start, SEEK_DATA);
    *end = data < 0 ? to : umem_lesser((uint64_t)data, to);
    return 0;
  }
  bool full = (uint64_t)st.st_blocks >= ((uint64_t)st.st_size + 511) / 512;
  if (full) *start = to;
  return full || *start >= store->original ? 0 : EOPNOTSUPP;
}

/* Where the first piece of disk space in [from, to) is; its length is 0 where there is none. exact: what
 * was written through mappings and has no space yet gets it now. Returns an errno. */
static int find_extent(umemStore *store, uint64_t from, uint64_t to, bool exact, uint64_t *start,
                       uint64_t *length) {
  union {
    struct fiemap head;
    char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
  } map;
  struct fiemap_extent extent = {.fe_length = 0};
  int result;
  do {
    memset(&map, 0, sizeof map);
    map.head.fm_start = from;
    map.head.fm_length = to - from;
    map.head.fm_flags = exact ? FIEMAP_FLAG_SYNC : 0;
    map.head.fm_extent_count = 1;
    result = ioctl(store->fd, FS_IOC_FIEMAP, &map);
  } while (result != 0 && errno == EINTR);
  if (result == 0 && map.head.fm_mapped_extents)
    memcpy(&extent, map.room + sizeof(struct fiemap), sizeof extent);
  *start = extent.fe_logical;
  *length = extent.fe_length;
  return result == 0 ? 0 : errno;
}

/* Sets [*start, *end) to the first hole in [from, to); *start is `to` where there is none. Returns an
 * errno. */
static int find_hole(umemStore *store, uint64_t from, uint64_t to, bool exact, uint64_t *start,
                     uint64_t *end) {
  *end = to;
  for (*start = from; *start < to;) {
    uint64_t extent, length;
    int error = find_extent(store, *start, to, exact, &extent, &length);
    if (umemStore_lacks(error) || error == ENOTTY || error == EBADR)
      return seek_hole(store, to, start, end);
    if (error || !length) return error;
    if (extent > *start) {
      *end = umem_lesser(extent, to);
      return 0;
    }
    *start = umem_lesser(extent + length, to);
  }
  return 0;
}

/* Fills a chunk of the first hole in [*from, to) and moves *from behind it. Returns an errno. */
static int fill_hole(umemStore *store, uint64_t *from, uint64_t to) {
  uint64_t start, end;
  int error = find_hole(store, *from, to, true, &start, &end);
  if (error) return error;
  ssize_t n = start < to ? write_zeros(store, start, end - start) : 0;
  if (n < 0) return errno;
  *from = start + (uint64_t)n;
  return 0;
}

static bool refuse_holes(umemStore *store) {
  return UMEM_FAIL(store->ctx, umemNotSupportedError,
                   "cannot reserve space in the holes of %s: its file system has no fallocate, and "
                   "others may write there; umemReserveNone (reserve=none) does without",
                   store->label);
}

/* Looks without FIEMAP_FLAG_SYNC first, which costs less. */
static bool fill_holes(umemStore *store, uint64_t from, uint64_t to) {
  for (;;) {
    uint64_t end;
    int error = find_hole(store, from, to, false, &from, &end);
    if (umemStore_lacks(error)) return refuse_holes(store);
    if (error) return umemStore_fail_space(store, error);
    if (from >= to) return true;
    if (!umemStore_isolate(store)) return refuse_holes(store);
    error = fill_hole(store, &from, to);
    umemStore_share(store);
    if (error) return umemStore_fail_space(store, error);
  }
}

bool umemStore_fill_up(umemStore *store, uint64_t from, uint64_t to, uint64_t *length) {
  if (from < *length && !fill_holes(store, from, umem_lesser(to, *length))) return false;
  return to <= *length || append_zeros(store, umem_greater(from, *length), to, length);
}
