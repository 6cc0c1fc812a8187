/* store_lend.h - the file, for devices that transfer bytes themselves. */
#ifndef UMEM_STORE_LEND_H
#define UMEM_STORE_LEND_H

#include "stores/store.h"

/* See the method direct_file in umem/virtual.h. The file is lent where the option direct lets transfers of so many
 * bytes go around the page cache: with umemDirectAuto only to readers, of bytes that are not cached. */
bool umemStore_lend(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                    umemDirectFile *file);

#endif
