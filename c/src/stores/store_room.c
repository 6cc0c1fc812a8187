/* store_room.c - the length of the file, and the disk space behind its bytes.
 *
 * A block gets its disk space first, by a call that leaves length and bytes as they are (fallocate with
 * FALLOC_FL_KEEP_SIZE, which fills holes too); then the file is made longer by a call that can only make
 * it longer (fallocate of the last byte). So nothing has to be undone that somebody else could have
 * used. ftruncate, which would cut off what others append meanwhile, is called only where nobody else
 * can have the file open.
 *
 * Space is reserved in whole pages: [first, reserved) is known to be there, so that small blocks, and
 * those that were freed, ask the system for nothing but the length of the file. */
#include "base/again.h"
#include "base/disk.h"
#include "base/memory_left.h"
#include "base/number.h"
#include "core/status.h"
#include "stores/store_blocks.h"
#include "stores/store_room.h"
#include "stores/store_zeros.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

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

/* Whether nobody has written to [from, to), by which this context has just made the file longer. Others
 * append at the end of the file: what they wrote before is in this range, what they write later is behind it.
 * Some file systems report the piece with the last byte as data, so short pieces are read.
 * Moves the file offset, which only a descriptor that was taken over shares with others. */
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
  if (umemStore_lacks(error)) return umemStore_lengthen(store, to, length);
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

/* How many bytes of [from, to) may have their disk space already: all that the file has, but for what is
 * known to be elsewhere. */
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
  char words[128];
  return UMEM_FAIL(store->ctx, umemMemoryError,
                   "cannot reserve space in %s: %s (%" PRIu64 " bytes needed, %" PRIu64 " free)",
                   store->label, umem_system_words(error, words, sizeof words), needed, available);
}

/* A disk that reports no free space at all counts as unlimited: it may keep no count, and a reservation that
 * it refuses takes nothing. A file in memory grows until the kernel ends processes, unless its file system has a limit. */
bool umemStore_may_fit(umemStore *store, uint64_t from, uint64_t to) {
  uint64_t available, there = 0, left;
  if (!free_on_disk(store, &available) || !perhaps_there(store, from, to, &there)) return false;
  uint64_t needed = to - from - there;
  if (needed > available) return fail_room(store, ENOSPC, needed, available);
  if (!store->takes_ram || umemMemory_has(needed, &left)) return true;
  return fail_room(store, ENOMEM, needed, left);
}

/* ---- reserving ---- */

/* Frees what a failed reservation has taken behind the end of the file. Where others may have the file
 * open it stays until the blocks behind the end are wanted, or the file is trimmed. */
void umemStore_drop_leftover(umemStore *store) {
  uint64_t length;
  if (!store->leftover || !umemStore_isolate(store)) return;
  umemAttempt ignored; /* nothing depends on it */
  umemAttempt_begin(&ignored);
  if (umemStore_measure(store, &length) && umemStore_resize(store, length) == 0) {
    store->leftover = false;
    store->reserved = umem_lesser(store->reserved, length);
  }
  umemAttempt_end(&ignored);
  umemStore_share(store);
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
    if (!umemStore_fill_up(store, from, to, length)) return false;
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

/* Also a block in what the context knows to be there needs a look, since others may have cut the file. Nobody else knows a
 * scratch file. */
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
  if (umemStore_lacks(error)) return true; /* the space just stays */
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
  umemStore_share(store);
  return done;
}
