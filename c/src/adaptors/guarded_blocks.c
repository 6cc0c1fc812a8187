/* guarded_blocks.c - see guarded_blocks.h. */
#include "adaptors/guarded_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { open_protection = PROT_READ | PROT_WRITE };

static size_t larger(size_t one, size_t other) { return one > other ? one : other; }

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) & ~(unit - 1); }

bool umemGuardedBlocks_init(umemGuardedBlocks *blocks) {
  blocks->page = (size_t)sysconf(_SC_PAGESIZE);
  blocks->ranges = umemRange_create(blocks->page);
  return blocks->ranges != NULL;
}

void umemGuardedBlocks_fini(umemGuardedBlocks *blocks) {
  umemRange_destroy(blocks->ranges);
  umemTable_clear(&blocks->blocks);
}

bool umemGuardedBlocks_plan(umemGuardedBlocks const *blocks, size_t nbytes, size_t alignment,
                            size_t *total, size_t *origin_alignment) {
  *origin_alignment = larger(alignment, blocks->page);
  return !__builtin_add_overflow(nbytes, *origin_alignment, total) &&
         !__builtin_add_overflow(*total, 2 * blocks->page, total) && *total <= PTRDIFF_MAX;
}

/* ---- coming and going ---- */

/* Both or none. */
static bool close_around(umemGuardedBlock const *block, size_t page) {
  void *before = (void *)(block->first - page), *behind = (void *)(block->first + block->size);
  if (mprotect(before, page, PROT_NONE) != 0) return false;
  if (mprotect(behind, page, PROT_NONE) == 0) return true;
  int error = errno;
  mprotect(before, page, open_protection); /* joins pages that were one: this cannot lack memory */
  errno = error;
  return false;
}

static bool list(umemGuardedBlocks *blocks, umemGuardedBlock *block) {
  if (!umemRange_enter(blocks->ranges, block->first, block->size)) return false;
  if (umemTable_insert(&blocks->blocks, block->first, (uintptr_t)block)) return true;
  umemRange_drop(blocks->ranges, block->first);
  return false;
}

static void unlist(umemGuardedBlocks *blocks, umemGuardedBlock *block) {
  umemRange_drop(blocks->ranges, block->first);
  umemTable_remove(&blocks->blocks, umemTable_find(&blocks->blocks, block->first));
}

umemGuardedBlock *umemGuardedBlocks_enter(umemGuardedBlocks *blocks, uintptr_t origin,
                                          size_t nbytes, size_t alignment) {
  umemGuardedBlock *block = calloc(1, sizeof *block);
  if (!block) return NULL;
  bool by_pages = alignment >= blocks->page;
  block->first = origin + (by_pages ? alignment : blocks->page);
  block->size = round_up(nbytes, blocks->page);
  block->adr = by_pages ? block->first : block->first + block->size - round_up(nbytes, alignment);
  block->nbytes = nbytes;
  block->origin = origin;
  block->access = umemGuardedWrite;
  block->protection = open_protection;
  if (list(blocks, block)) {
    if (close_around(block, blocks->page)) {
      blocks->nbytes += nbytes;
      if (blocks->nbytes > blocks->peak) blocks->peak = blocks->nbytes;
      return block;
    }
    unlist(blocks, block);
  } else {
    errno = ENOMEM;
  }
  int error = errno;
  free(block);
  errno = error;
  return NULL;
}

bool umemGuardedBlocks_remove(umemGuardedBlocks *blocks, umemGuardedBlock *block) {
  size_t page = blocks->page;
  if (mprotect((void *)(block->first - page), block->size + 2 * page, open_protection) != 0) {
    int error = errno; /* some of the pages may be open */
    mprotect((void *)block->first, block->size, block->protection);
    close_around(block, page);
    errno = error;
    return false;
  }
  umemGuardedBlocks_forget(blocks, block);
  return true;
}

void umemGuardedBlocks_forget(umemGuardedBlocks *blocks, umemGuardedBlock *block) {
  blocks->nbytes -= block->nbytes;
  unlist(blocks, block);
  free(block->label);
  free(block);
}

/* ---- looking ---- */

static umemGuardedBlock *with_page(umemGuardedBlocks const *blocks, uintptr_t adr) {
  umemRangeItem item;
  if (!umemRange_find(blocks->ranges, adr, &item) || !item.live) return NULL;
  umemTableCell *cell = umemTable_find(&blocks->blocks, (uintptr_t)item.start);
  return cell ? (umemGuardedBlock *)cell->value : NULL;
}

umemGuardedBlock *umemGuardedBlocks_around(umemGuardedBlocks const *blocks, uintptr_t adr) {
  umemGuardedBlock *block = with_page(blocks, adr);
  if (!block && adr >= blocks->page) block = with_page(blocks, adr - blocks->page);
  if (!block && adr <= UINTPTR_MAX - blocks->page) block = with_page(blocks, adr + blocks->page);
  return block;
}

umemGuardedBlock *umemGuardedBlocks_find(umemGuardedBlocks const *blocks, uintptr_t adr) {
  umemGuardedBlock *block = with_page(blocks, adr);
  return block && adr - block->adr < block->nbytes ? block : NULL;
}

umemGuardedBlock *umemGuardedBlocks_at(umemGuardedBlocks const *blocks, uintptr_t adr) {
  umemGuardedBlock *block = with_page(blocks, adr);
  return block && adr == block->adr ? block : NULL;
}

umemGuardedBlock *umemGuardedBlocks_any(umemGuardedBlocks const *blocks) {
  size_t from = 0;
  umemTableCell *cell = umemTable_next(&blocks->blocks, &from);
  return cell ? (umemGuardedBlock *)cell->value : NULL;
}

/* ---- access ---- */

bool umemGuardedBlock_apply(umemGuardedBlock *block) {
  int protection = PROT_NONE;
  if (block->access == umemGuardedRead || block->readers) protection = PROT_READ;
  if (block->access == umemGuardedWrite || block->writers) protection = open_protection;
  if (protection == block->protection) return true;
  if (mprotect((void *)block->first, block->size, protection) != 0) return false;
  block->protection = protection;
  return true;
}
