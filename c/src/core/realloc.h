/* realloc.h - for contexts with a method realloc. */
#ifndef UMEM_REALLOC_H
#define UMEM_REALLOC_H

#include <stddef.h>
#include <umem/base.h>

/* Whether a block at adr of at least size bytes may have the old_size that realloc was given. If
 * not, records umemValueError on ctx. */
bool umem_has_size(umemVirtual *ctx, uintptr_t adr, uint64_t size, size_t old_size);

/* The default of the method realloc. */
uintptr_t umem_move_unknown(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

/* realloc by a new block, a copy and a free, for contexts that know that adr is a block of old_size
 * bytes. */
uintptr_t umem_move_block(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

#endif
