/* store_cached.h - what the page cache has of the file. */
#ifndef UMEM_STORE_CACHED_H
#define UMEM_STORE_CACHED_H

#include "stores/store.h"

/* Whether the page cache has the page of the file at offset; true where the system does not say. Starts no
 * I/O, and records nothing. */
bool umemStore_is_cached(umemStore *store, uint64_t offset);

/* How a store on a file system with this f_type asks at first: its member asks. */
int umemStore_way_to_ask(uint32_t magic);

#endif
