/* store_read.h - reads from the file. */
#ifndef UMEM_STORE_READ_H
#define UMEM_STORE_READ_H

#include "stores/store.h"

/* Reads [offset, offset + size) into bytes. */
bool umemStore_read(umemStore *store, uint64_t offset, void *bytes, size_t size);

#endif
