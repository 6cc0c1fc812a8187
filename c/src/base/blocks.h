/* blocks.h - the sizes of live blocks by their addresses, beside the memory.
 *
 * An adaptor reserves room before it asks for a block; then entering and leaving cannot fail. Thread-safe:
 * there are several parts, each with a lock of its own, which is held for one look-up and never while a
 * context is called. A part is a hash table that is at most three quarters full: a look-up costs the lock
 * and mostly one cache miss, however many blocks there are. An entry has 16 bytes: the first block takes
 * 8 KiB, a thousand take 64 KiB, and many take 21 to 43 bytes each. A part shrinks when nearly all of its
 * blocks are gone.
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

/* The room that some of the threads have reserved. */
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

/* Reserves room for an entry, to be used by put or released. False, with nothing changed, without memory. */
bool umemBlocks_reserve(umemBlocks *blocks);
void umemBlocks_release(umemBlocks *blocks);

/* Enters a block of size bytes into room that this thread has reserved. Whether it replaces an entry of the
 * same address, of *old bytes: a block that was given back without the adaptor. */
bool umemBlocks_put(umemBlocks *blocks, uintptr_t adr, size_t size, size_t *old);

/* Writes the size in the entry of adr to *size; false where there is none. */
bool umemBlocks_find(umemBlocks *blocks, uintptr_t adr, size_t *size);

/* Takes the entry of adr, of *size bytes, out; false where there is none. Its room is kept until the caller
 * drops it, or puts the entry back as by put. */
bool umemBlocks_take(umemBlocks *blocks, uintptr_t adr, size_t *size);
void umemBlocks_drop(umemBlocks *blocks, uintptr_t adr);
bool umemBlocks_put_back(umemBlocks *blocks, uintptr_t adr, size_t size, size_t *old);

#endif
