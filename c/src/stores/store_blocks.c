/* store_blocks.c - see store_blocks.h. */
#include "stores/store_blocks.h"
#include "core/status.h"

#include <inttypes.h>
#include <unistd.h>

bool umemStore_fail_find(umemStore *store, uint64_t offset) {
  return UMEM_FAIL(store->ctx, umemValueError, "no live block of %s begins at offset %" PRIu64,
                   store->label, offset);
}

bool umemStore_begins(umemStore *store, uint64_t offset) {
  umemAttempt held;
  umemRangeItem block;
  umemStore_begin(store, &held);
  bool begins = umemStore_find(store, offset, &block);
  umemStore_end(store, &held);
  return begins;
}

/* The block that has all of the range. */
static bool find_around(umemStore *store, uint64_t offset, size_t size, umemRangeItem *block) {
  umemLock_acquire(&store->lock);
  bool found = umemRange_find(store->range, offset, block) && block->live;
  umemLock_release(&store->lock);
  if (found) {
    uint64_t inside = offset - block->start;
    if (inside < block->size && size <= block->size - inside) return true;
  }
  return UMEM_FAIL(store->ctx, umemIndexError,
                   "%zu bytes at offset %" PRIu64 " of %s are not inside one live block", size,
                   offset, store->label);
}

bool umemStore_owns(umemStore *store, uint64_t offset, size_t size) {
  umemRangeItem block;
  return find_around(store, offset, size, &block);
}

/* lseek takes a third of the time of fstat. Nobody but the context uses the position of a descriptor that it has opened. */
bool umemStore_measure_often(umemStore *store, uint64_t *length) {
  off_t end = store->taken_over ? -1 : lseek(store->fd, 0, SEEK_END);
  *length = (uint64_t)end;
  return end >= 0 || umemStore_measure(store, length);
}

/* ---- bytes that others have cut off ---- */

static void lose(umemStore *store, uint64_t block, uint64_t from) {
  umemTableCell *cell = umemTable_find(&store->lost, block);
  if (cell)
    cell->value = umem_lesser(cell->value, from);
  else if (!umemTable_insert(&store->lost, block, from))
    store->lost_from = umem_lesser(store->lost_from, from);
}

/* Before the commit nothing was in the blocks. */
void umemStore_note_cut(umemStore *store, uint64_t length, uint64_t but) {
  umemRangeItem item;
  uint64_t had = store->length;
  if (length >= had) return;
  store->before_cut = umem_greater(store->before_cut, had);
  store->length = length;
  store->reserved = umem_lesser(store->reserved, length);
  for (uint64_t at = 0; !store->building && umemRange_next(store->range, at, &item);
       at = item.start + item.extent) {
    if (!item.live || item.start == but || item.start >= had || item.start + item.size <= length)
      continue;
    lose(store, item.start, umem_greater(item.start, length));
    __atomic_store_n(&store->cut, true, __ATOMIC_RELEASE);
  }
}

/* The first lost byte of a block with lost bytes in the range; UMEM_STORE_NONE: there is no such block. */
static uint64_t find_lost(umemStore *store, uint64_t offset, uint64_t end) {
  umemRangeItem item;
  bool found =
      umemRange_find(store->range, offset, &item) || umemRange_next(store->range, offset, &item);
  for (; found && item.start < end;
       found = umemRange_next(store->range, item.start + item.extent, &item)) {
    umemTableCell *cell = item.live ? umemTable_find(&store->lost, item.start) : NULL;
    if (cell && end > cell->value && offset < item.start + item.size) return cell->value;
  }
  return end > store->lost_from ? store->lost_from : UMEM_STORE_NONE;
}

bool umemStore_keeps_lost(umemStore *store, char const *what, uint64_t offset, size_t size) {
  umemLock_acquire(&store->lock);
  uint64_t lost = find_lost(store, offset, offset + size);
  umemLock_release(&store->lock);
  return lost == UMEM_STORE_NONE ||
         UMEM_FAIL(store->ctx, umemIOError,
                   "%s was truncated by another process: %s of %zu bytes at %" PRIu64
                   ", but the block has lost its bytes from %" PRIu64 " on",
                   store->label, what, size, offset, lost);
}

void umemStore_forget_lost(umemStore *store, uint64_t offset) {
  umemTableCell *cell = umemTable_find(&store->lost, offset);
  if (cell) umemTable_remove(&store->lost, cell);
}

/* Nobody else knows a scratch file. */
bool umemStore_may_write(umemStore *store, uint64_t offset, size_t size) {
  umemRangeItem block;
  uint64_t length;
  if (!find_around(store, offset, size, &block)) return false;
  if (store->scratch || __atomic_load_n(&store->building, __ATOMIC_ACQUIRE)) return true;
  if (!umemStore_measure_often(store, &length)) return false;
  if (length < block.start + block.size) {
    umemLock_acquire(&store->lock);
    umemStore_note_cut(store, length, UMEM_STORE_NONE);
    umemLock_release(&store->lock);
  }
  return umemStore_is_whole(store, "write", offset, size);
}

/* ---- other questions ---- */

bool umemStore_may_touch(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                         uint64_t *length) {
  umemAttempt ignored;
  if (__atomic_load_n(&store->building, __ATOMIC_ACQUIRE)) return false;
  umemAttempt_begin(&ignored);
  bool good = umemStore_measure_often(store, length) && size <= *length &&
              offset <= *length - size &&
              (access == umemReadable || umemStore_owns(store, offset, size)) &&
              umemStore_is_whole(store, "access", offset, size);
  umemAttempt_end(&ignored);
  return good;
}

umemSearch umemStore_search(umemStore *store, uint64_t offset, umemFound *found) {
  umemRangeItem block;
  if (!umemLock_try(&store->lock)) return umemSearchBusy;
  bool has = umemRange_find(store->range, offset, &block) && block.live;
  umemLock_release(&store->lock);
  if (!has || offset - block.start >= block.size) return umemSearchNone;
  found->adr = (uintptr_t)block.start;
  found->nbytes = (size_t)block.size;
  return umemSearchFound;
}

void umemStore_span(umemStore const *store, uint64_t *from, uint64_t *to) {
  umemRangeItem item;
  *from = *to = 0;
  for (uint64_t at = 0; umemRange_next(store->range, at, &item); at = item.start + item.extent) {
    if (!item.live) continue;
    if (!*to) *from = item.start;
    *to = item.start + item.size;
  }
}
