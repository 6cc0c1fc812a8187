/* store_zeros.h - disk space by writing zeros. Under the lock. */
#ifndef UMEM_STORE_ZEROS_H
#define UMEM_STORE_ZEROS_H

#include "stores/store.h"

/* As umemStore_reserve, by writing zeros: into holes, and behind the end of the file, at *length, which
 * becomes the new one. */
bool umemStore_fill_up(umemStore *store, uint64_t from, uint64_t to, uint64_t *length);

/* Makes the file, now of *length bytes, at least `to` bytes long without fallocate. */
bool umemStore_lengthen(umemStore *store, uint64_t to, uint64_t *length);

#endif
