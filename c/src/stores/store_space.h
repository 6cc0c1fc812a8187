/* store_space.h - allocates, frees and trims ranges of the file, and lends their bytes. */
#ifndef UMEM_STORE_SPACE_H
#define UMEM_STORE_SPACE_H

#include "stores/store_file.h"

/* A new block; all zero if zeroed. */
uint64_t umemStore_alloc(umemStore *store, size_t size, size_t alignment, bool zeroed);
bool umemStore_free(umemStore *store, uint64_t offset);
uint64_t umemStore_realloc(umemStore *store, uint64_t offset, size_t old_size, size_t new_size);

void umemStore_trim(umemStore *store, size_t keep);

/* See the method window in umem/virtual.h. */
bool umemStore_window(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                      umemWindow *window);

/* See the method direct_file in umem/virtual.h. The file is lent where the option direct lets
 * transfers of so many bytes go around the page cache: with umemDirectAuto only to readers, of
 * bytes that are not cached. */
bool umemStore_lend(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                    umemDirectFile *file);

/* Fills in the handle of nbytes at offset, and the descriptor. False with a status. */
bool umemStore_describe(umemStore *store, uint64_t offset, size_t nbytes, umemHandle *handle,
                        int *fd);

/* Whether the bytes of handle are in this file. Records nothing. */
bool umemStore_has(umemStore *store, umemHandle const *handle);

#endif
