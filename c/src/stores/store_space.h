/* store_space.h - allocates, frees and trims ranges of the file. */
#ifndef UMEM_STORE_SPACE_H
#define UMEM_STORE_SPACE_H

#include "stores/store.h"

/* A new block; all zero if zeroed. */
uint64_t umemStore_alloc(umemStore *store, size_t size, size_t alignment, bool zeroed);
bool umemStore_free(umemStore *store, uint64_t offset);
uint64_t umemStore_realloc(umemStore *store, uint64_t offset, size_t old_size, size_t new_size);

void umemStore_trim(umemStore *store, size_t keep);

#endif
