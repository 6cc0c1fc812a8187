/* store_room.h - the length of the file and the disk space behind it, and the last step of
 * construction. */
#ifndef UMEM_STORE_ROOM_H
#define UMEM_STORE_ROOM_H

#include "stores/store_file.h"

/* Makes the file hold [from, to), with disk space unless it is sparse; changes no bytes, and never
 * makes the file shorter. */
bool umemStore_reserve(umemStore *store, uint64_t from, uint64_t to);

/* Whether the disk may have room for [from, to). False with a umemMemoryError if it cannot have
 * it. */
bool umemStore_may_fit(umemStore *store, uint64_t from, uint64_t to);

/* Gives the disk space of [from, to), which reads as zero from now on, back to the system. */
bool umemStore_punch(umemStore *store, uint64_t from, uint64_t to);

/* Cuts the file to length if no other process can have added bytes; else leaves it as it is. */
bool umemStore_cut(umemStore *store, uint64_t length);

/* Frees the disk space behind the end that a failed reservation left, if no other process can have
 * the file open. */
void umemStore_drop_leftover(umemStore *store);

/* ==== the last step of construction ==== */

/* The last step of construction, of a context alone or of all contexts over it. Until then blocks
 * are placed, and the file remains as it is; now it is emptied where the mode says so, and made to
 * hold the blocks. When this fails the file has its old bytes. Does nothing later. */
bool umemStore_commit(umemStore *store);

/* umemStore_commit for calls that need the file before all layers are there. */
static inline bool umemStore_settle(umemStore *store) {
  return __builtin_expect(!__atomic_load_n(&store->building, __ATOMIC_ACQUIRE), 1) ||
         umemStore_commit(store);
}

#endif
