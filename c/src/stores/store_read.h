/* store_read.h - reads from the file. */
#ifndef UMEM_STORE_READ_H
#define UMEM_STORE_READ_H

#include "stores/store.h"

/* Reads [offset, offset + size) into bytes. */
bool umemStore_read(umemStore *store, uint64_t offset, void *bytes, size_t size);

/* Whether reads of store go around the cache for what the cache lacks. */
bool umemStore_goes_around(umemStore *store);

#endif
