/* sizes.h - the sizes of live blocks by their addresses, beside the memory.
 *
 * An adaptor reserves room before it asks for a block; then entering and leaving cannot fail. Thread-safe:
 * there are several parts, each with a lock of its own, which is held for one look-up and never while a
 * context is called. A part is a hash table that is at most three quarters full: a look-up costs the lock
 * and mostly one cache miss, however many blocks there are. An entry has 16 bytes: the first block takes
 * 8 KiB, a thousand take 64 KiB, and many take 21 to 43 bytes each. A part shrinks when nearly all of its
 * blocks are gone.
 */
#ifndef UMEM_SIZES_H
#define UMEM_SIZES_H

#include "base/lock.h"
#include "base/table.h"

typedef struct umemSizesPart {
  umemLock lock;
  umemTable table; /* address to size */
  size_t taken;    /* entries that were taken and not put back: their places are kept */
  size_t dropped;  /* atomic: those of them whose places are not kept any more */
  bool tight;      /* it has no room for all that may be reserved, and no memory for more */
  char apart[128 - sizeof(umemLock) - sizeof(umemTable) - 3 * sizeof(size_t)];
} umemSizesPart;

/* The room that some of the threads have reserved. */
typedef struct umemSizesShare {
  unsigned reserved; /* atomic */
  char apart[60];
} umemSizesShare;

/* The upper bits of a hash choose the part. */
enum {
  umemSizesPartBits = umemTableSkip,
  umemSizesParts = 1 << umemSizesPartBits,
  umemSizesShares = 16
};

/* Must not move: it holds locks. */
typedef struct umemSizes {
  umemSizesPart part[umemSizesParts];
  umemSizesShare share[umemSizesShares];
  unsigned each; /* atomic: places that may be reserved in each share */
  unsigned
      slack; /* atomic: places that each part keeps free for them: at least those of all shares */
  unsigned tight; /* atomic: parts that cannot */
} umemSizes;

void umemSizes_init(umemSizes *blocks);
void umemSizes_fini(umemSizes *blocks);

/* Reserves room for an entry, to be used by put or released. False, with nothing changed, without memory. */
bool umemSizes_reserve(umemSizes *blocks);
void umemSizes_release(umemSizes *blocks);

/* Enters a block of size bytes into room that this thread has reserved. Whether it replaces an entry of the
 * same address, of *old bytes: a block that was given back without the adaptor. */
bool umemSizes_put(umemSizes *blocks, uintptr_t adr, size_t size, size_t *old);

/* Writes the size in the entry of adr to *size; false where there is none. */
bool umemSizes_find(umemSizes *blocks, uintptr_t adr, size_t *size);

/* The same without waiting: *busy is true if it would have to wait, and then the result is false. */
bool umemSizes_try_find(umemSizes *blocks, uintptr_t adr, size_t *size, bool *busy);

/* Takes the entry of adr, of *size bytes, out; false where there is none. Its room is kept until the caller
 * drops it, or puts the entry back as by put. */
bool umemSizes_take(umemSizes *blocks, uintptr_t adr, size_t *size);
void umemSizes_drop(umemSizes *blocks, uintptr_t adr);
bool umemSizes_put_back(umemSizes *blocks, uintptr_t adr, size_t size, size_t *old);

#endif
