/* blocks.h - the sizes of live blocks by their addresses, beside the memory.
 *
 * A place is reserved before a block is asked for; entering and leaving cannot fail. Thread-safe: the
 * table is in parts, each with a lock of its own, which is held for one look-up and never while a
 * context is called. A part is a hash table with open addressing, at most three quarters full: a
 * look-up costs the lock and mostly one cache miss, however many blocks there are. 16 bytes an entry:
 * 8 KiB for the first block, 64 KiB for a thousand, 21 to 43 bytes a block for many. A table shrinks
 * when nearly all blocks go.
 */
#ifndef UMEM_BLOCKS_H
#define UMEM_BLOCKS_H

#include "base/lock.h"
#include "base/table.h"

typedef struct umemBlocksPart {
  umemLock lock;
  umemTable table; /* address to size */
  size_t taken;    /* entries that were taken and not put back: their places are kept */
  size_t dropped;  /* atomic: those of them whose places are not kept any more */
  bool tight;      /* it has no room for all that may be reserved, and no memory for more */
  char apart[128 - sizeof(umemLock) - sizeof(umemTable) - 3 * sizeof(size_t)];
} umemBlocksPart;

/* Places that some of the threads have reserved. */
typedef struct umemBlocksShare {
  unsigned reserved; /* atomic */
  char apart[60];
} umemBlocksShare;

/* The upper bits of a hash choose the part. */
enum {
  umemBlocksPartBits = umemTableSkip,
  umemBlocksParts = 1 << umemBlocksPartBits,
  umemBlocksShares = 16
};

/* Must not move: it holds locks. */
typedef struct umemBlocks {
  umemBlocksPart part[umemBlocksParts];
  umemBlocksShare share[umemBlocksShares];
  unsigned each; /* atomic: places that may be reserved in each share */
  unsigned
      slack; /* atomic: places that each part keeps free for them: at least those of all shares */
  unsigned tight; /* atomic: parts that cannot */
} umemBlocks;

void umemBlocks_init(umemBlocks *blocks);
void umemBlocks_fini(umemBlocks *blocks);

/* Reserves a place, for put or release. False, with nothing changed, without memory. */
bool umemBlocks_reserve(umemBlocks *blocks);
void umemBlocks_release(umemBlocks *blocks);

/* Enters a block of size bytes into a place that this thread has reserved. Whether there was an entry
 * of the same address, of *old bytes, whose place it takes: a block that was given back behind the
 * back of whoever keeps the table. */
bool umemBlocks_put(umemBlocks *blocks, uintptr_t adr, size_t size, size_t *old);

/* Tells the size in the entry of adr; false where there is none. */
bool umemBlocks_find(umemBlocks *blocks, uintptr_t adr, size_t *size);

/* Takes the entry of adr out, which had *size; false where there is none. Its place is kept until it
 * is dropped, or put back as by put. */
bool umemBlocks_take(umemBlocks *blocks, uintptr_t adr, size_t *size);
void umemBlocks_drop(umemBlocks *blocks, uintptr_t adr);
bool umemBlocks_put_back(umemBlocks *blocks, uintptr_t adr, size_t size, size_t *old);

#endif
