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

bool umemStore_owns(umemStore *store, uint64_t offset, size_t size) {
  umemRangeItem block;
  umemLock_acquire(&store->lock);
  bool found = umemRange_find(store->range, offset, &block) && block.live;
  umemLock_release(&store->lock);
  if (found) {
    uint64_t inside = offset - block.start;
    if (inside < block.size && size <= block.size - inside) return true;
  }
  return UMEM_FAIL(store->ctx, umemIndexError,
                   "%zu bytes at offset %" PRIu64 " of %s are not inside one live block", size,
                   offset, store->label);
}

/* The length of the file now: lseek takes a third of the time of fstat. Nobody but the context uses the position of a
 * descriptor that it has opened. */
static bool measure(umemStore *store, uint64_t *length) {
  off_t end = store->taken_over ? -1 : lseek(store->fd, 0, SEEK_END);
  *length = (uint64_t)end;
  return end >= 0 || umemStore_measure(store, length);
}

bool umemStore_may_touch(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                         uint64_t *length) {
  umemAttempt ignored;
  if (__atomic_load_n(&store->building, __ATOMIC_ACQUIRE)) return false;
  umemAttempt_begin(&ignored);
  bool good = measure(store, length) && size <= *length && offset <= *length - size &&
              (access == umemReadable || umemStore_owns(store, offset, size));
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
