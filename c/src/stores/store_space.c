/* store_space.c - which bytes of the file belong to whom.
 *
 * The range allocator alone places blocks. It knows nothing of the file, so that placement is the same in all
 * modes. Then the file must get length and space for the block (store_room.c); if it cannot, the block is freed
 * again. */
#include "stores/store_space.h"
#include "core/status.h"
#include "base/disk.h"
#include "base/number.h"
#include "stores/store_blocks.h"
#include "stores/store_commit.h"
#include "stores/store_io.h"
#include "stores/store_room.h"
#include "stores/store_window.h"

#include <inttypes.h>
#include <unistd.h>

/* ---- what the file must provide ---- */

static bool within_limit(umemStore *store, uint64_t to) {
  uint64_t limit;
  return umem_may_write_to(to, &limit) ||
         UMEM_FAIL(store->ctx, umemMemoryError,
                   "a block up to %" PRIu64 " of %s passes the %" PRIu64
                   " bytes that this process may write to (RLIMIT_FSIZE)",
                   to, store->label, limit);
}

/* A file that is only read may have been made longer by its writer since we looked. */
static bool within_file(umemStore *store, uint64_t from, uint64_t to) {
  uint64_t length;
  if (to <= store->length) return true;
  if (!umemStore_measure(store, &length)) return false;
  if (length > store->length) store->length = length;
  if (to <= store->length) return true;
  return UMEM_FAIL(store->ctx, umemMemoryError,
                   "%" PRIu64 " bytes at offset %" PRIu64 " do not fit into %s, which has %" PRIu64
                   " bytes and is only read",
                   to - from, from, store->label, store->length);
}

/* Before the commit: refuses only blocks that the disk cannot have room for. */
static bool may_have_all(umemStore *store) {
  uint64_t from, to;
  umemStore_span(store, &from, &to); /* the new block is one of them */
  return store->sparse || umemStore_may_fit(store, from, to);
}

/* Makes the file hold a block that the allocator has placed at [from, to). */
static bool provide(umemStore *store, uint64_t from, uint64_t to) {
  if (to > store->limit)
    return UMEM_FAIL(store->ctx, umemMemoryError,
                     "a block up to %" PRIu64 " of %s is beyond the %" PRIu64
                     " bytes of address space that the mapping has",
                     to, store->label, store->limit);
  if (!store->writable) return within_file(store, from, to);
  if (!within_limit(store, to)) return false;
  return store->building ? may_have_all(store) : umemStore_reserve(store, from, to);
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
  umemStore_begin(store, &held);
  uint64_t offset = place(store, size, alignment);
  uint64_t used = store->used;
  if (offset != UMEM_STORE_NONE) store->used = umem_greater(used, offset + size);
  umemStore_end(store, &held);

  if (offset == UMEM_STORE_NONE || !zeroed || offset >= used) return offset;
  if (umemStore_fill(store, offset, 0, (size_t)umem_lesser(size, used - offset))) return offset;
  umemStore_free(store, offset);
  return UMEM_STORE_NONE;
}

/* ---- free, trim ---- */

/* What a forked child has freed may still be in use by its parent, and the other way round. */
static bool may_give_back(umemStore *store) { return store->writable && store->owner == getpid(); }

/* The hole is punched first: as soon as the range is free, another thread may write there. */
bool umemStore_free(umemStore *store, uint64_t offset) {
  umemAttempt held;
  umemRangeItem block;
  umemStore_begin(store, &held);
  bool freed = umemStore_find(store, offset, &block);
  if (freed && store->scratch && may_give_back(store))
    umemStore_punch(store, block.start, block.start + block.extent);
  if (freed) {
    umemStore_forget_lost(store, offset);
    umemRange_free(store->range, offset);
  }
  umemStore_end(store, &held);
  return freed;
}

/* Gives back the disk space of the free range [from, to), but not that of bytes of others, or past the end
 * that the context knows. The first *keep bytes stay, and *keep becomes what is left of them. */
static bool give_back(umemStore *store, uint64_t from, uint64_t to, uint64_t *keep) {
  bool last = to >= store->length;
  from = umem_greater(from, store->original);
  to = umem_lesser(to, store->length);
  if (from >= to) return true;
  uint64_t kept = umem_lesser(*keep, to - from);
  *keep -= kept;
  if (from + kept == to) return true;
  return umemStore_punch(store, from + kept, to) && (!last || umemStore_cut(store, from + kept));
}

void umemStore_trim(umemStore *store, size_t keep) {
  umemAttempt held;
  umemRangeItem item;
  uint64_t left = keep, live_end = 0;
  umemStore_drop_window(store);
  bool shared =
      store->taken_over; /* by contexts on duplicates, whose blocks are free in this table */
  if (shared || !may_give_back(store) || !umemStore_settle(store)) return;
  umemStore_begin(store, &held);
  for (uint64_t at = 0; umemRange_next(store->range, at, &item); at = item.start + item.extent) {
    if (item.live)
      live_end = item.start + item.size;
    else if (!give_back(store, live_end, item.start + item.extent, &left))
      break;
  }
  umemStore_drop_leftover(store);
  umemStore_end(store, &held);
}

/* ---- realloc ---- */

/* Whether the block at offset, stored in *block, has old_size bytes and could be moved. */
static bool can_realloc(umemStore *store, uint64_t offset, size_t old_size, umemRangeItem *block) {
  if (!umemStore_find(store, offset, block)) return false;
  if (old_size > block->size)
    return UMEM_FAIL(store->ctx, umemValueError,
                     "the block at offset %" PRIu64 " of %s has %" PRIu64 " bytes, not %zu", offset,
                     store->label, block->size, old_size);
  if (!store->readable)
    return UMEM_FAIL(store->ctx, umemNotSupportedError,
                     "%s is open for writing only: its blocks cannot be moved", store->label);
  return true;
}

/* A block that shrinks by less than a half stays where it is. In a file that is only read nothing is copied: the writer of the file has moved the bytes. */
uint64_t umemStore_realloc(umemStore *store, uint64_t offset, size_t old_size, size_t new_size) {
  umemAttempt held;
  umemRangeItem block;
  umemStore_begin(store, &held);
  bool possible = can_realloc(store, offset, old_size, &block);
  umemStore_end(store, &held);
  if (!possible) return UMEM_STORE_NONE;
  if (new_size <= block.size && new_size > block.size / 2) return offset;

  uint64_t moved = umemStore_alloc(store, new_size, umemStoreGranule, false);
  if (moved == UMEM_STORE_NONE) return moved;
  if (store->writable &&
      !umemStore_move(store, offset, moved, (size_t)umem_lesser(old_size, new_size))) {
    umemStore_free(store, moved);
    return UMEM_STORE_NONE;
  }
  umemAttempt ignored; /* the block has moved, whether or not the disk takes its old place back */
  umemAttempt_begin(&ignored);
  umemStore_free(store, offset);
  umemAttempt_end(&ignored);
  return moved;
}
