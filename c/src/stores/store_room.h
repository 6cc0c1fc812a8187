/* store_room.h - the length of the file and the disk space behind it. All under the lock. */
#ifndef UMEM_STORE_ROOM_H
#define UMEM_STORE_ROOM_H

#include "stores/store.h"

/* Makes the file hold [from, to), with disk space unless it is sparse; changes no bytes, and never makes
 * the file shorter. */
bool umemStore_reserve(umemStore *store, uint64_t from, uint64_t to);

/* Whether the disk may have room for [from, to). False with a umemMemoryError if it cannot have it. */
bool umemStore_may_fit(umemStore *store, uint64_t from, uint64_t to);

/* Gives the disk space of [from, to), which reads as zero from now on, back to the system. */
bool umemStore_punch(umemStore *store, uint64_t from, uint64_t to);

/* Cuts the file to length if nobody else can have added bytes; else leaves it as it is. */
bool umemStore_cut(umemStore *store, uint64_t length);

/* Frees the disk space behind the end that a failed reservation left, if nobody else can have the file
 * open. */
void umemStore_drop_leftover(umemStore *store);

#endif
