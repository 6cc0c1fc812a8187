/* guarded_blocks.h - the blocks of a umemGuarded, each with pages of its own.
 *
 *     | closed page | pages of the block, which ends with them | closed page |
 *
 * The functions that change blocks need the lock of the caller. */
#ifndef UMEM_GUARDED_BLOCKS_H
#define UMEM_GUARDED_BLOCKS_H

#include "base/range.h"
#include "base/table.h"

#include <umem/guarded.h>

typedef struct umemGuardedBlock {
  uintptr_t adr; /* of the program */
  size_t nbytes;
  uintptr_t origin;         /* of the upstream, by umem_aligned_alloc */
  uintptr_t first;          /* the first of its pages */
  size_t size;              /* bytes of its pages */
  umemGuardedAccess access; /* of the program */
  unsigned readers;         /* calls of umem that read it now */
  unsigned writers;
  int protection; /* that the pages have */
  char *label;    /* owned; NULL without one */
} umemGuardedBlock;

typedef struct umemGuardedBlocks {
  umemRange *ranges; /* of the pages of blocks */
  umemTable blocks;  /* the first page -> its umemGuardedBlock, owned */
  size_t page;
  size_t nbytes, peak; /* of all blocks, as requested */
} umemGuardedBlocks;

/* False without memory. */
bool umemGuardedBlocks_init(umemGuardedBlocks *blocks);
void umemGuardedBlocks_fini(umemGuardedBlocks *blocks); /* there is no block */

/* How much of the upstream a block needs, and at a multiple of which alignment. False if it exceeds the address
 * space. */
bool umemGuardedBlocks_plan(umemGuardedBlocks const *blocks, size_t nbytes, size_t alignment,
                            size_t *total, size_t *origin_alignment);

/* Makes a block of nbytes in the memory at origin, which umemGuardedBlocks_plan has planned, and closes the pages around it.
 * Returns NULL, with errno, and origin as it was, if the system refuses. */
umemGuardedBlock *umemGuardedBlocks_enter(umemGuardedBlocks *blocks, uintptr_t origin,
                                          size_t nbytes, size_t alignment);

/* Opens all pages of a block, and forgets it. Returns false, with errno, and keeps the block, if the system refuses. */
bool umemGuardedBlocks_remove(umemGuardedBlocks *blocks, umemGuardedBlock *block);

/* Forgets a block, and leaves its pages as they are. */
void umemGuardedBlocks_forget(umemGuardedBlocks *blocks, umemGuardedBlock *block);

/* The block whose pages, or the closed page on either side of them, contain adr; NULL if there is none. */
umemGuardedBlock *umemGuardedBlocks_around(umemGuardedBlocks const *blocks, uintptr_t adr);

/* The block that contains adr; the one that begins there. NULL if there is none. */
umemGuardedBlock *umemGuardedBlocks_find(umemGuardedBlocks const *blocks, uintptr_t adr);
umemGuardedBlock *umemGuardedBlocks_at(umemGuardedBlocks const *blocks, uintptr_t adr);

/* Any block; NULL if there is none. */
umemGuardedBlock *umemGuardedBlocks_any(umemGuardedBlocks const *blocks);

/* Gives the pages of a block the access that the program and calls of umem need. Returns false, with errno, and leaves
 * the pages as they were, if the system refuses. */
bool umemGuardedBlock_apply(umemGuardedBlock *block);

#endif
