/* store_share.h - bytes of the file in handles for other processes. */
#ifndef UMEM_STORE_SHARE_H
#define UMEM_STORE_SHARE_H

#include "stores/store.h"

/* Fills in the handle of nbytes at offset, and the descriptor. False with a status. */
bool umemStore_describe(umemStore *store, uint64_t offset, size_t nbytes, umemHandle *handle,
                        int *fd);

/* Whether the bytes of handle are in this file. Records nothing. */
bool umemStore_has(umemStore *store, umemHandle const *handle);

#endif
