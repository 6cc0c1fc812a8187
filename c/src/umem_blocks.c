/* umem_blocks.c - see umem_blocks.h. */
#include "umem_blocks.h"

#include <stdlib.h>

enum { first_capacity = 16 };

static uint64_t mix(uintptr_t adr) {
  return (uint64_t)adr * 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio: Knuth, TAOCP 6.4 */
}

static umemBlocksPart *part_of(umemBlocks *blocks, uintptr_t adr) {
  return &blocks->part[mix(adr) >> 60];
}

static umemBlock **chain_of(umemBlocksPart *part, uintptr_t adr) {
  return &part->chains[(mix(adr) >> 24) & (part->capacity - 1)];
}

/* The link to the entry of adr; that to NULL where there is none. */
static umemBlock **link_to(umemBlocksPart *part, uintptr_t adr) {
  umemBlock **link = chain_of(part, adr);
  while (*link && (*link)->adr != adr) link = &(*link)->next;
  return link;
}

/* Makes chains short again. Without memory for it they just become longer. */
static void spread(umemBlocksPart *part) {
  umemBlocksPart larger = {.capacity = part->capacity > 1 ? 2 * part->capacity : first_capacity};
  larger.chains = calloc(larger.capacity, sizeof(umemBlock *));
  if (!larger.chains) return;
  for (size_t i = 0; i < part->capacity; i++)
    for (umemBlock *block = part->chains[i], *next; block; block = next) {
      umemBlock **chain = chain_of(&larger, block->adr);
      next = block->next;
      block->next = *chain;
      *chain = block;
    }
  if (part->chains != &part->only) free(part->chains);
  part->chains = larger.chains;
  part->capacity = larger.capacity;
}

void umemBlocks_init(umemBlocks *blocks) {
  for (int i = 0; i < umemBlocksParts; i++) {
    umemBlocksPart *part = &blocks->part[i];
    umemLock_init(&part->lock);
    part->only = NULL;
    part->chains = &part->only;
    part->count = 0;
    part->capacity = 1;
  }
}

void umemBlocks_fini(umemBlocks *blocks) {
  for (int i = 0; i < umemBlocksParts; i++) {
    umemBlocksPart *part = &blocks->part[i];
    for (size_t k = 0; k < part->capacity; k++)
      for (umemBlock *block = part->chains[k], *next; block; block = next) {
        next = block->next;
        free(block);
      }
    if (part->chains != &part->only) free(part->chains);
    umemLock_destroy(&part->lock);
  }
}

umemBlock *umemBlocks_put(umemBlocks *blocks, umemBlock *block) {
  umemBlocksPart *part = part_of(blocks, block->adr);
  umemLock_acquire(&part->lock);
  umemBlock **link = link_to(part, block->adr), *old = *link;
  block->next = old ? old->next : NULL;
  *link = block;
  if (!old && ++part->count > part->capacity) spread(part);
  umemLock_release(&part->lock);
  return old;
}

bool umemBlocks_find(umemBlocks *blocks, uintptr_t adr, size_t *size) {
  umemBlocksPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  umemBlock *block = *link_to(part, adr);
  if (block) *size = block->size;
  umemLock_release(&part->lock);
  return block != NULL;
}

umemBlock *umemBlocks_take(umemBlocks *blocks, uintptr_t adr) {
  umemBlocksPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  umemBlock **link = link_to(part, adr), *block = *link;
  if (block) {
    *link = block->next;
    part->count--;
  }
  umemLock_release(&part->lock);
  return block;
}
