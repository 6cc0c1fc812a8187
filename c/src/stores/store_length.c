/* store_length.c - gives the file length and disk space, and takes them back. */
#include "stores/store_file.h"
#include "base/files.h"
#include "base/system.h"
#include "core/status.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ==== disk space by writing zeros ====
 *
 * Where the file system has no fallocate (ext2, vfat, NFS before 4.2). Behind the end of the file
 * zeros are appended: the kernel puts them behind what others append meanwhile. Into holes they are
 * written while no other process can have the file open, because it might write there too. */

enum { zero_page = 4096, zero_pages = 256, zero_chunk = zero_page * zero_pages };

/* Writes zeros, at most a chunk: behind the end with at UINT64_MAX. Returns how many, or -1 with
 * errno set. */
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

/* Takes the added bytes behind length away again. If others have appended as well, the file is
 * longer than that, and nothing is cut. */
static void take_back(umemStore *store, uint64_t length, uint64_t added) {
  uint64_t now;
  if (!added || !umemStore_isolate(store)) return;
  UMEM_FORGETTING(); /* a file that cannot be cut is only longer */
  if (umemStore_measure(store, &now) && now - length == added) umemStore_resize(store, length);
  umemStore_end_isolation(store);
}

/* Makes a file that ends before `to`, at *now, longer up to there, by a hole. Whether it did. */
static bool skip_to(umemStore *store, uint64_t to, uint64_t *now) {
  if (!umemStore_isolate(store)) return false;
  bool done = umemStore_measure(store, now) && *now < to && umemStore_resize(store, to) == 0;
  umemStore_end_isolation(store);
  return done;
}

/* Appends zeros until the file, now of *length bytes, reaches to `to`; a gap before from may become
 * a hole. If the file grows by more than that, others have appended. */
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

/* Makes the file, now of *length bytes, at least `to` bytes long without fallocate. */
static bool lengthen_by_zeros(umemStore *store, uint64_t to, uint64_t *length) {
  uint64_t now;
  if (!skip_to(store, to, &now)) return append_zeros(store, *length, to, length);
  if (now != *length) umemStore_note_others(store, now);
  *length = to;
  return true;
}

/* ---- holes ---- */

/* find_hole where the file system gives no map. One that reports a hole anywhere in the file
 * reports all of them. Otherwise the file may have blocks for all its bytes; or else all that this
 * context has added counts as a hole, and where the others are is not known: EOPNOTSUPP. */
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

/* Where the first piece of disk space in [from, to) is; its length is 0 where there is none. exact:
 * what was written through mappings and has no space yet gets it now. Returns an errno. */
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

/* Sets [*start, *end) to the first hole in [from, to); *start is `to` where there is none. Returns
 * an errno. */
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
    umemStore_end_isolation(store);
    if (error) return umemStore_fail_space(store, error);
  }
}

/* As umemStore_reserve, by writing zeros: into holes, and behind the end of the file, at *length,
 * which becomes the new one. */
static bool fill_up(umemStore *store, uint64_t from, uint64_t to, uint64_t *length) {
  if (from < *length && !fill_holes(store, from, umem_lesser(to, *length))) return false;
  return to <= *length || append_zeros(store, umem_greater(from, *length), to, length);
}

/* ==== length and disk space ====
 *
 * A block gets its disk space first, by a call that leaves length and bytes as they are (fallocate
 * with FALLOC_FL_KEEP_SIZE, which fills holes too); then the file is made longer by a call that can
 * only make it longer (fallocate of the last byte). So nothing has to be undone that another
 * process could have used. ftruncate, which would cut off what others append meanwhile, is called
 * only where no other process can have the file open.
 *
 * Space is reserved in whole pages: [first, reserved) is known to be there, so that small blocks,
 * and those that were freed, ask the system for nothing but the length of the file. */

enum { page_size = 4096 };              /* bytes: what space is reserved in multiples of */
static uint64_t const stat_block = 512; /* bytes: the unit of st_blocks, whatever the file system */

/* ---- the length ---- */

/* Measures the file, for a block at from, and notes what others have appended or cut off. */
static bool look(umemStore *store, uint64_t from, uint64_t *length) {
  if (!umemStore_measure_often(store, length)) return false;
  if (*length > store->length) {
    umemStore_note_others(store, *length);
    store->length = *length;
  }
  umemStore_note_cut(store, *length, from);
  return true;
}

static bool is_zero(umemStore *store, uint64_t from, uint64_t to) {
  char bytes[page_size] = {0};
  while (from < to) {
    struct iovec piece = {bytes, umem_lesser(to - from, sizeof bytes)};
    ssize_t n = UMEM_AGAIN(preadv(store->fd, &piece, 1, (off_t)from));
    if (n <= 0) return false;
    for (ssize_t i = 0; i < n; i++)
      if (bytes[i]) return false;
    from += (uint64_t)n;
  }
  return true;
}

/* Whether no process has written to [from, to), by which this context has just made the file
 * longer. Others append at the end of the file: what they wrote before is in this range, what they
 * write later is behind it. Some file systems report the piece with the last byte as data, so short
 * pieces are read. Moves the file offset, which only a descriptor that was taken over shares with
 * others. */
static bool is_blank(umemStore *store, uint64_t from, uint64_t to) {
  uint64_t const short_piece = 4 * page_size;
  if (store->scratch) return true;
  if (store->taken_over) return false;
  for (uint64_t end; from < to; from = end) {
    off_t data = lseek(store->fd, (off_t)from, SEEK_DATA);
    if (data < 0) return errno == ENXIO;
    if ((uint64_t)data >= to) return true;
    off_t hole = lseek(store->fd, data, SEEK_HOLE);
    if (hole < 0) return false;
    end = umem_lesser((uint64_t)hole, to);
    if (end - (uint64_t)data > short_piece || !is_zero(store, (uint64_t)data, end)) return false;
  }
  return true;
}

/* Makes the file, now of *length bytes or longer by others, at least `to` bytes long. */
static bool lengthen(umemStore *store, uint64_t to, uint64_t *length) {
  if (to <= *length) return true;
  int error = umem_change_space(store->fd, 0, to - 1, to);
  if (umemStore_lacks(error)) return lengthen_by_zeros(store, to, length);
  if (error) return umemStore_fail_space(store, error);
  if (!is_blank(store, *length, to)) umemStore_note_others(store, to);
  *length = to;
  return true;
}

/* ---- whether there is room ---- */

/* UINT64_MAX where the disk does not say. */
static bool free_on_disk(umemStore *store, uint64_t *bytes) {
  int error = umem_free_on_disk(store->fd, bytes);
  return !error || error == ENOSYS ||
         umemStore_fail(store, umemIOError, error, "cannot examine the disk of");
}

/* How many bytes of [from, to) may have their disk space already: all that the file has, but for
 * what is known to be elsewhere. */
static bool perhaps_there(umemStore *store, uint64_t from, uint64_t to, uint64_t *bytes) {
  struct stat st;
  if (fstat(store->fd, &st) != 0)
    return umemStore_fail(store, umemIOError, errno, "cannot measure");
  uint64_t all = (uint64_t)st.st_blocks * stat_block;
  uint64_t known = umem_lesser(from, store->reserved);
  uint64_t elsewhere = known > store->first ? known - store->first : 0;
  *bytes = umem_lesser(to - from, all > elsewhere ? all - elsewhere : 0);
  return true;
}

static bool fail_room(umemStore *store, int error, uint64_t needed, uint64_t available) {
  return UMEM_FAIL(store->ctx, umemMemoryError,
                   "cannot reserve space in %s: %s (%" PRIu64 " bytes needed, %" PRIu64 " free)",
                   store->label, UMEM_WORDS(error), needed, available);
}

/* A disk that reports no free space at all counts as unlimited: it may keep no count, and a
 * reservation that it refuses takes nothing. A file in memory grows until the kernel ends
 * processes, unless its file system has a limit. */
bool umemStore_may_fit(umemStore *store, uint64_t from, uint64_t to) {
  uint64_t available, there = 0, left;
  if (!free_on_disk(store, &available) || !perhaps_there(store, from, to, &there)) return false;
  uint64_t needed = to - from - there;
  if (needed > available) return fail_room(store, ENOSPC, needed, available);
  if (!store->takes_ram || umemMemory_has(needed, &left)) return true;
  return fail_room(store, ENOMEM, needed, left);
}

/* ---- reserving ---- */

/* Frees what a failed reservation has taken behind the end of the file. Where others may have the
 * file open it is kept until the blocks behind the end are wanted, or the file is trimmed. */
void umemStore_drop_leftover(umemStore *store) {
  uint64_t length;
  if (!store->leftover || !umemStore_isolate(store)) return;
  UMEM_FORGETTING(); /* nothing depends on it */
  if (umemStore_measure(store, &length) && umemStore_resize(store, length) == 0) {
    store->leftover = false;
    store->reserved = umem_lesser(store->reserved, length);
  }
  umemStore_end_isolation(store);
}

/* The end of what is reserved for a block that ends at `to`. */
static uint64_t reserved_end(uint64_t to) {
  uint64_t end = (to + page_size - 1) & ~(uint64_t)(page_size - 1);
  return end <= INT64_MAX ? end : to;
}

/* Takes disk space for [from, to) of a file of *length bytes, which writing zeros makes longer. */
static bool take_space(umemStore *store, uint64_t from, uint64_t to, uint64_t *length) {
  bool adjacent = from < store->reserved + umemStoreGranule;
  if (adjacent) from = store->reserved;
  uint64_t end = reserved_end(to);
  if (!umemStore_may_fit(store, from, end)) return false;
  int error = umem_change_space(store->fd, FALLOC_FL_KEEP_SIZE, from, end);
  if (umemStore_lacks(error)) {
    if (!fill_up(store, from, to, length)) return false;
    end = to;
  } else if (error) {
    store->leftover = true;
    umemStore_drop_leftover(store);
    return umemStore_fail_space(store, error);
  }
  if (adjacent) store->reserved = end;
  return true;
}

static bool has_space(umemStore const *store, uint64_t to) {
  return store->sparse || to <= store->reserved;
}

/* Also a block in what the context knows to be there needs a look, since others may have cut the
 * file. No other process knows a scratch file. */
bool umemStore_reserve(umemStore *store, uint64_t from, uint64_t to) {
  uint64_t length;
  if (store->scratch && has_space(store, to) && to <= store->length) return true;
  if (!look(store, from, &length)) return false;
  if (!has_space(store, to) && !take_space(store, from, to, &length)) return false;
  if (!lengthen(store, to, &length)) {
    store->leftover = true;
    umemStore_drop_leftover(store);
    return false;
  }
  store->length = umem_greater(store->length, to);
  return true;
}

/* ---- giving back ---- */

bool umemStore_punch(umemStore *store, uint64_t from, uint64_t to) {
  int error = umem_change_space(store->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to);
  if (umemStore_lacks(error)) return true; /* the space is kept */
  store->reserved = umem_lesser(store->reserved, from);
  return !error || umemStore_fail(store, umemIOError, error, "cannot punch a hole into");
}

static bool cut_alone(umemStore *store, uint64_t length) {
  uint64_t now;
  if (!umemStore_measure(store, &now)) return false;
  if (now != store->length) return true;
  int error = umemStore_resize(store, length);
  if (error) return umemStore_fail(store, umemIOError, error, "cannot cut");
  store->length = length;
  store->reserved = umem_lesser(store->reserved, length);
  store->used = umem_lesser(store->used, length);
  return true;
}

bool umemStore_cut(umemStore *store, uint64_t length) {
  if (!umemStore_isolate(store)) return true;
  bool done = cut_alone(store, length);
  umemStore_end_isolation(store);
  return done;
}

/* ==== the last step of construction ====
 *
 * umem_open constructs a file first and then the adaptors over it, which may fail. So the file
 * remains as it is until all of them are constructed. Then one call empties it in mode w. That is
 * the last call that can fail, unless blocks were allocated before; their disk space has been tried
 * by then. */

/* Reserves disk space for blocks up to `to` while the old bytes are there. Emptying the file frees
 * it, and hold_blocks reserves it again. */
static bool try_space(umemStore *store, uint64_t to) {
  if (!to || store->sparse) return true;
  if (!umemStore_may_fit(store, 0, to)) return false;
  int error = umem_change_space(store->fd, FALLOC_FL_KEEP_SIZE, 0, to);
  if (!error || umemStore_lacks(error)) return true;
  store->leftover = true;
  umemStore_drop_leftover(store);
  return umemStore_fail_space(store, error);
}

/* Reserves the space in the emptied file. If that fails after all, the file gets the length of the
 * blocks without it. */
static bool hold_blocks(umemStore *store, uint64_t from, uint64_t to) {
  umemAttempt held;
  umemAttempt_begin(&held);
  bool done = umemStore_reserve(store, from, to);
  umemAttempt_end(&held);
  if (done) return true;
  if (umemStore_resize(store, to) == 0)
    store->length = to;
  else
    umemAttempt_record(&held);
  return store->length == to;
}

static bool empty(umemStore *store, uint64_t from, uint64_t to) {
  if (!try_space(store, to)) return false;
  int error = umemStore_resize(store, 0);
  if (error) return umemStore_fail(store, umemIOError, error, "cannot empty");
  store->empties = false;
  return !to || hold_blocks(store, from, to);
}

static bool carry_out(umemStore *store) {
  uint64_t from, to;
  umemStore_span(store, &from, &to);
  bool done = true;
  if (store->empties)
    done = empty(store, from, to);
  else if (store->writable && to)
    done = umemStore_reserve(store, from, to);
  if (done) store->created = false;
  return done;
}

bool umemStore_commit(umemStore *store) {
  UMEM_STORE_LOCKED(store);
  bool done = !store->building || carry_out(store);
  if (done) __atomic_store_n(&store->building, false, __ATOMIC_RELEASE);
  return done;
}
