/* guarded_blocks.h - the blocks of a umemGuarded, each with pages of its own, and the report of
 * accesses that hit them.
 *
 *     | closed page | pages of the block, which ends with them | closed page |
 *
 * The functions that use blocks need the lock of their records. */
#ifndef UMEM_GUARDED_BLOCKS_H
#define UMEM_GUARDED_BLOCKS_H

#include "base/records.h"

#include <umem/guarded.h>

typedef struct umemGuardedBlock {
  umemRecord head;
  umemRecordName name;
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

/* Must not move. */
typedef struct umemGuardedBlocks {
  umemRecords records; /* umemGuardedBlocks, by their pages; first */
  size_t page;
  umemVirtual *ctx;
  struct umemGuardedBlocks *newer, *older; /* in the list of those that the report looks at */
} umemGuardedBlocks;

/* Makes *blocks, of ctx, empty. From now on the report of SIGSEGV looks at them. Returns false
 * without memory. */
bool umemGuardedBlocks_init(umemGuardedBlocks *blocks, umemVirtual *ctx);

/* Before the end, and before the last blocks are removed: the report does not look at them any
 * more. */
void umemGuardedBlocks_unlist(umemGuardedBlocks *blocks);

/* Computes how much of the upstream a block needs, and at a multiple of which alignment. Returns
 * false if it exceeds the address space. Needs no lock. */
bool umemGuardedBlocks_plan(umemGuardedBlocks const *blocks, size_t nbytes, size_t alignment,
                            size_t *total, size_t *origin_alignment);

/* Enters a block of nbytes in the memory at origin, which umemGuardedBlocks_plan has planned,
 * into room that was reserved in the records, and closes the pages on either side. Returns NULL,
 * with errno, and origin as it was, if the system refuses. */
umemGuardedBlock *umemGuardedBlocks_enter(umemGuardedBlocks *blocks, uintptr_t origin,
                                          size_t nbytes, size_t alignment);

/* Opens all pages of a block, and removes its record. Returns false, with errno, and keeps the
 * block, if the system refuses. */
bool umemGuardedBlocks_remove(umemGuardedBlocks *blocks, umemGuardedBlock *block);

/* Each returns a block, or NULL if there is none: that contains adr; that begins there; of this
 * name; any. */
umemGuardedBlock *umemGuardedBlocks_find(umemGuardedBlocks const *blocks, uintptr_t adr);
umemGuardedBlock *umemGuardedBlocks_at(umemGuardedBlocks const *blocks, uintptr_t adr);
umemGuardedBlock *umemGuardedBlocks_named(umemGuardedBlocks const *blocks, umemRecordName name);
umemGuardedBlock *umemGuardedBlocks_any(umemGuardedBlocks const *blocks);

/* Gives the pages of a block the access that the program and calls of umem need. Returns false,
 * with errno, and leaves the pages as they were, if the system refuses. */
bool umemGuardedBlock_apply(umemGuardedBlock *block);

#endif
