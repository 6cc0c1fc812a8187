/* store_blocks.h - which bytes of the file are whose. */
#ifndef UMEM_STORE_BLOCKS_H
#define UMEM_STORE_BLOCKS_H

#include "stores/store.h"

/* Takes the lock, and holds failures until it is released. */
static inline void umemStore_begin(umemStore *store, umemAttempt *held) {
  umemAttempt_begin(held);
  umemLock_acquire(&store->lock);
}

static inline void umemStore_end(umemStore *store, umemAttempt *held) {
  umemLock_release(&store->lock);
  umemAttempt_end(held);
  umemAttempt_record(held);
}

/* The live block that begins at offset; false with a umemValueError otherwise. Under the lock. */
bool umemStore_fail_find(umemStore *store, uint64_t offset);
static inline bool umemStore_find(umemStore *store, uint64_t offset, umemRangeItem *block) {
  bool found = umemRange_find(store->range, offset, block) && block->live && block->start == offset;
  return found || umemStore_fail_find(store, offset);
}

/* Whether there is one. */
bool umemStore_begins(umemStore *store, uint64_t offset);

/* Whether [offset, offset + size) is inside one live block; else records umemIndexError. */
bool umemStore_owns(umemStore *store, uint64_t offset, size_t size);

/* Sets *length to the length of the file now, as umemStore_measure, for calls that are frequent. */
bool umemStore_measure_often(umemStore *store, uint64_t *length);

/* Notes that others have cut the file to length bytes: what live blocks had beyond is lost, even if the file grows again.
 * but: a new block, or UMEM_STORE_NONE. Under the lock. */
void umemStore_note_cut(umemStore *store, uint64_t length, uint64_t but);

/* Whether none of the bytes is lost; else records umemIOError. */
bool umemStore_keeps_lost(umemStore *store, char const *what, uint64_t offset, size_t size);
static inline bool umemStore_is_whole(umemStore *store, char const *what, uint64_t offset,
                                      size_t size) {
  return __builtin_expect(!__atomic_load_n(&store->cut, __ATOMIC_ACQUIRE), 1) ||
         umemStore_keeps_lost(store, what, offset, size);
}

/* Forgets what the block at offset has lost. Under the lock. */
void umemStore_forget_lost(umemStore *store, uint64_t offset);

/* As umemStore_owns, and no byte of the range is lost. Notices when the file has been cut below the block: writing would
 * make it longer again, with zeros. */
bool umemStore_may_write(umemStore *store, uint64_t offset, size_t size);

/* Whether the bytes are there, in a file of *length bytes, and may be written if that is asked for. False too
 * before the commit. Records nothing. */
bool umemStore_may_touch(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                         uint64_t *length);

/* The live block that contains offset, at offsets. */
umemSearch umemStore_search(umemStore *store, uint64_t offset, umemFound *found);

/* The bytes from the first live block to the end of the last one; both 0 without any. Under the lock. */
void umemStore_span(umemStore const *store, uint64_t *from, uint64_t *to);

#endif
