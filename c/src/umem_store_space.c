/* umem_store_space.c - which bytes of the file belong to whom, and the disk space behind them.
 *
 * Placement is the range allocator's alone and knows nothing of the file, so that it is the same in
 * all modes. What the file must provide for a block is asked for afterwards; when it cannot, the
 * block is given back.
 *
 * Disk space is reserved past the length that the file had when it was opened; below it nothing but a
 * write ever touches the file. [original, reserved) is known to be there, so that reusing a freed
 * block asks the system for nothing. */
#include "umem_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

static inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- the lock ---- */

static void begin(umemStore *store, umemAttempt *held) {
  umemAttempt_begin(held);
  umemLock_acquire(&store->lock);
}

static void end(umemStore *store, umemAttempt *held) {
  umemLock_release(&store->lock);
  umemAttempt_end(held);
  umemAttempt_record(held);
}

/* ---- reserving ---- */

/* Passing RLIMIT_FSIZE sends SIGXFSZ, which kills. */
static bool within_limit(umemStore *store, uint64_t to) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      to <= limit.rlim_cur)
    return true;
  umemVirtual_fail(store->ctx, umemMemoryError,
                   "a block up to %" PRIu64 " of %s passes the %" PRIu64
                   " bytes that this process may write to (RLIMIT_FSIZE)",
                   to, store->label, (uint64_t)limit.rlim_cur);
  return false;
}

/* A file that is only read may have been made longer by its writer since we looked. */
static bool within_file(umemStore *store, uint64_t from, uint64_t to) {
  uint64_t length;
  if (to <= store->length) return true;
  if (!umemStore_measure(store, &length)) return false;
  if (length > store->length) store->length = length;
  if (to <= store->length) return true;
  umemVirtual_fail(store->ctx, umemMemoryError,
                   "%" PRIu64 " bytes at offset %" PRIu64 " do not fit into %s, which has %" PRIu64
                   " bytes and is only read",
                   to - from, from, store->label, store->length);
  return false;
}

int umemStore_resize(umemStore *store, uint64_t length) {
  int result;
  do result = ftruncate(store->fd, (off_t)length);
  while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

/* fallocate of [from, to). Returns an errno. */
static int change_space(umemStore *store, int how, uint64_t from, uint64_t to) {
  int result;
  do result = fallocate(store->fd, how, (off_t)from, (off_t)(to - from));
  while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

/* Makes the file, now of length bytes, reach to `to`, with disk space behind [from, to) where the file
 * system can. Returns an errno. */
static int make_room(umemStore *store, uint64_t length, uint64_t from, uint64_t to) {
  int error = change_space(store, 0, from, to);
  if (error != EOPNOTSUPP && error != ENOSYS) return error;
  return to > length ? umemStore_resize(store, to) : 0;
}

/* Takes back what a failed make_room has made of a file of length bytes. A file that cannot be cut
 * is only longer than it was. */
static void undo_room(umemStore *store, uint64_t length) {
  uint64_t now;
  if (umemStore_measure(store, &now) && now > length) umemStore_resize(store, length);
}

static bool reserve(umemStore *store, uint64_t from, uint64_t to) {
  if (to <= store->reserved) return true;
  bool adjacent = from < store->reserved + umemStoreGranule;
  if (adjacent) from = store->reserved;
  uint64_t length;
  if (!umemStore_measure(store, &length)) return false;
  int error = make_room(store, length, from, to);
  if (error) {
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM;
    undo_room(store, length);
    return umemStore_fail(store, full ? umemMemoryError : umemIOError, error,
                          "cannot reserve space in");
  }
  if (adjacent) store->reserved = to;
  store->length = most(store->length, to);
  return true;
}

/* Makes the file hold a block that the allocator has placed at [from, to). */
static bool provide(umemStore *store, uint64_t from, uint64_t to) {
  if (to > store->limit) {
    umemVirtual_fail(store->ctx, umemMemoryError,
                     "a block up to %" PRIu64 " of %s is beyond the %" PRIu64
                     " bytes of address space that were to be had",
                     to, store->label, store->limit);
    return false;
  }
  if (!store->writable) return within_file(store, from, to);
  return within_limit(store, to) && reserve(store, from, to);
}

/* ---- allocate ---- */

static uint64_t place(umemStore *store, size_t size, size_t alignment) {
  uint64_t offset = umemRange_alloc(store->range, size, alignment);
  if (offset == UMEM_STORE_NONE) {
    umemVirtual_fail(store->ctx, umemMemoryError,
                     "no room for %zu bytes at a multiple of %zu in %s", size, alignment,
                     store->label);
    return UMEM_STORE_NONE;
  }
  if (provide(store, offset, offset + size)) return offset;
  umemRange_free(store->range, offset);
  return UMEM_STORE_NONE;
}

uint64_t umemStore_alloc(umemStore *store, size_t size, size_t alignment, bool zeroed) {
  umemAttempt held;
  begin(store, &held);
  uint64_t offset = place(store, size, alignment);
  uint64_t used = store->used;
  if (offset != UMEM_STORE_NONE) store->used = most(used, offset + size);
  end(store, &held);

  if (offset == UMEM_STORE_NONE || !zeroed || offset >= used) return offset;
  if (umemStore_fill(store, offset, 0, (size_t)least(size, used - offset))) return offset;
  umemStore_free(store, offset);
  return UMEM_STORE_NONE;
}

/* ---- questions ---- */

static bool find_block(umemStore *store, uint64_t offset, umemRangeItem *block) {
  if (umemRange_find(store->range, offset, block) && block->live && block->start == offset)
    return true;
  umemVirtual_fail(store->ctx, umemValueError, "no live block of %s begins at offset %" PRIu64,
                   store->label, offset);
  return false;
}

bool umemStore_begins(umemStore *store, uint64_t offset) {
  umemAttempt held;
  umemRangeItem block;
  begin(store, &held);
  bool begins = find_block(store, offset, &block);
  end(store, &held);
  return begins;
}

bool umemStore_owns(umemStore *store, uint64_t offset, size_t size) {
  umemRangeItem block;
  umemLock_acquire(&store->lock);
  bool found = umemRange_find(store->range, offset, &block) && block.live;
  umemLock_release(&store->lock);
  if (found) {
    uint64_t inside = offset - block.start;
    if (inside < block.size && size <= block.size - inside) return true;
  }
  umemVirtual_fail(store->ctx, umemIndexError,
                   "%zu bytes at offset %" PRIu64 " of %s are not inside one live block", size,
                   offset, store->label);
  return false;
}

/* ---- free, trim ---- */

/* Gives the disk space of [from, to), which reads as zero from now on, back to the system. */
static bool punch(umemStore *store, uint64_t from, uint64_t to) {
  store->reserved = least(store->reserved, from);
  int error = change_space(store, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to);
  if (!error || error == EOPNOTSUPP || error == ENOSYS) return true; /* the space just stays */
  return umemStore_fail(store, umemIOError, error, "cannot punch a hole into");
}

/* What a forked child has freed may still be in use by its parent, and the other way round. */
static bool may_give_back(umemStore *store) { return store->writable && store->owner == getpid(); }

/* The hole is punched first: as soon as the range is free, another thread may write there. */
bool umemStore_free(umemStore *store, uint64_t offset) {
  umemAttempt held;
  umemRangeItem block;
  begin(store, &held);
  bool freed = find_block(store, offset, &block);
  if (freed && store->scratch && may_give_back(store))
    punch(store, block.start, block.start + block.extent);
  if (freed) umemRange_free(store->range, offset);
  end(store, &held);
  return freed;
}

/* Cuts the file to length, unless others have made it longer meanwhile: their bytes are not ours. */
static bool cut(umemStore *store, uint64_t length) {
  uint64_t now;
  if (!umemStore_measure(store, &now)) return false;
  if (now != store->length) return true;
  int error = umemStore_resize(store, length);
  if (error) return umemStore_fail(store, umemIOError, error, "cannot cut");
  store->length = length;
  store->reserved = least(store->reserved, length);
  store->used = least(store->used, length);
  return true;
}

/* Walks over what is free between the original length and the end; *keep bytes of it stay. */
static bool give_back(umemStore *store, uint64_t from, uint64_t to, uint64_t *keep) {
  bool last = to >= store->length;
  from = most(from, store->original);
  to = least(to, store->length);
  if (from >= to) return true;
  uint64_t kept = least(*keep, to - from);
  *keep -= kept;
  if (from + kept == to) return true;
  return last ? cut(store, from + kept) : punch(store, from + kept, to);
}

void umemStore_trim(umemStore *store, size_t keep) {
  umemAttempt held;
  umemRangeItem item;
  uint64_t left = keep, live_end = 0;
  if (!may_give_back(store)) return;
  begin(store, &held);
  for (uint64_t at = 0; umemRange_next(store->range, at, &item); at = item.start + item.extent) {
    if (item.live)
      live_end = item.start + item.size;
    else if (!give_back(store, live_end, item.start + item.extent, &left))
      break;
  }
  end(store, &held);
}

/* ---- realloc ---- */

/* Whether the block at offset, told in *block, has old_size bytes and could be moved. */
static bool can_realloc(umemStore *store, uint64_t offset, size_t old_size, umemRangeItem *block) {
  if (!find_block(store, offset, block)) return false;
  if (old_size > block->size)
    umemVirtual_fail(store->ctx, umemValueError,
                     "the block at offset %" PRIu64 " of %s has %" PRIu64 " bytes, not %zu", offset,
                     store->label, block->size, old_size);
  else if (!store->readable)
    umemVirtual_fail(store->ctx, umemNotSupportedError,
                     "%s is open for writing only: its blocks cannot be moved", store->label);
  else
    return true;
  return false;
}

/* A block that shrinks by less than a half stays where it is. A file that is only read holds the
 * moved bytes already: whoever wrote it has moved them. */
uint64_t umemStore_realloc(umemStore *store, uint64_t offset, size_t old_size, size_t new_size) {
  umemAttempt held;
  umemRangeItem block;
  begin(store, &held);
  bool possible = can_realloc(store, offset, old_size, &block);
  end(store, &held);
  if (!possible) return UMEM_STORE_NONE;
  if (new_size <= block.size && new_size > block.size / 2) return offset;

  uint64_t moved = umemStore_alloc(store, new_size, umemStoreGranule, false);
  if (moved == UMEM_STORE_NONE) return moved;
  if (store->writable && !umemStore_move(store, offset, moved, (size_t)least(old_size, new_size))) {
    umemStore_free(store, moved);
    return UMEM_STORE_NONE;
  }
  umemAttempt ignored; /* the block has moved, whether or not the disk takes its old place back */
  umemAttempt_begin(&ignored);
  umemStore_free(store, offset);
  umemAttempt_end(&ignored);
  return moved;
}
