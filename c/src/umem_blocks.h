/* umem_blocks.h - the sizes of live blocks by their addresses, beside the memory.
 *
 * Entries are made before a block is allocated; entering and leaving cannot fail. Thread-safe: the
 * table is in parts, each with a lock of its own, which is held for one look-up and never while a
 * context is called. A look-up costs the lock and mostly two cache misses, however many blocks
 * there are: a hash table with chains, about one entry for each. Some 48 bytes a block.
 */
#ifndef UMEM_BLOCKS_H
#define UMEM_BLOCKS_H

#include "umem_lock.h"

#include <stddef.h>
#include <stdint.h>

/* An entry. Comes from malloc, is owned by the table while it is there and by whoever took it. */
typedef struct umemBlock {
  struct umemBlock *next;
  uintptr_t adr;
  size_t size;
} umemBlock;

typedef struct umemBlocksPart {
  umemLock lock;
  umemBlock **chains; /* owned, but for &only */
  size_t count, capacity;
  umemBlock *only; /* the first chain, that of a part which has no memory for more */
  char apart[40];  /* no two locks in a cache line */
} umemBlocksPart;

enum { umemBlocksParts = 16 };

/* Must not move: it holds locks. */
typedef struct umemBlocks {
  umemBlocksPart part[umemBlocksParts];
} umemBlocks;

void umemBlocks_init(umemBlocks *blocks);
void umemBlocks_fini(umemBlocks *blocks); /* frees all entries */

/* Enters block. Returns the entry that had the same address, whose place it takes, or NULL: a block
 * that was given back behind the back of whoever keeps the table. */
umemBlock *umemBlocks_put(umemBlocks *blocks, umemBlock *block);

/* Tells the size in the entry of adr; false where there is none. */
bool umemBlocks_find(umemBlocks *blocks, uintptr_t adr, size_t *size);

/* Takes the entry of adr out, or returns NULL where there is none. */
umemBlock *umemBlocks_take(umemBlocks *blocks, uintptr_t adr);

#endif
