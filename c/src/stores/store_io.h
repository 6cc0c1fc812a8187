/* store_io.h - reads and writes. */
#ifndef UMEM_STORE_IO_H
#define UMEM_STORE_IO_H

#include "base/number.h"
#include "stores/store_file.h"

/* Reads [offset, offset + size) into bytes. */
bool umemStore_read(umemStore *store, uint64_t offset, void *bytes, size_t size);

/* Whether reads of store go around the cache for what the cache lacks. */
bool umemStore_bypasses_cache(umemStore *store);

/* How many of size bytes one call writes at offset through the cache. The kernel keeps what one
 * call has written in pages (folios) as long as that, up to 2 MiB. Later writes of a part are slow
 * in a long one, because ext4 looks at all blocks of it (Linux 6.18). Mappings gain by long
 * ones. */
static inline size_t umemStore_write_most(umemStore const *store, uint64_t offset, size_t size) {
  size_t const unit = 512 << 10;
  if (store->base) return umem_lesser(size, umemStoreMostIO);
  return size <= unit ? size : unit - (size_t)(offset % unit);
}

/* Inside one live block only. */
bool umemStore_write(umemStore *store, uint64_t offset, void const *bytes, size_t size);
bool umemStore_set(umemStore *store, uint64_t offset, int c, size_t size);

/* As umemStore_set, for a range that the caller knows to be inside a block. */
bool umemStore_fill(umemStore *store, uint64_t offset, int c, size_t size);

/* Copies size bytes between two blocks of the file. */
bool umemStore_move(umemStore *store, uint64_t from, uint64_t to, size_t size);

bool umemStore_flush(umemStore *store);

#endif
