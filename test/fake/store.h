/* store.h - the memory of a fake device: blocks under addresses that mean nothing to the CPU.
 *
 * The real bytes of each block lie elsewhere. Addresses are handed out in rising order and never
 * again, with a gap after each block, so that every use after free and every step past an end is
 * found. (A store of real pointers, like managed memory, leaves that to the sanitizers.)
 * Thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct FakeStore FakeStore;

typedef struct FakeBlock {
  uintptr_t start;
  size_t size;
  unsigned char *bytes; /* owned; NULL: no block */
} FakeBlock;

/* No address: what fake_store_alloc returns when there is no room. */
#define FAKE_NOWHERE UINTPTR_MAX

/* Asks for a store whose addresses are pointers. */
#define FAKE_REAL_POINTERS UINTPTR_MAX

/* Returns a store whose addresses begin at first, or NULL without memory. */
FakeStore *fake_store_create(uintptr_t first, uint64_t capacity);
void fake_store_destroy(FakeStore *store);

/* Returns the address, a multiple of alignment, of a new block full of junk. */
uintptr_t fake_store_alloc(FakeStore *store, size_t nbytes, size_t alignment);

/* Takes the block that begins at adr out of the records; the caller releases it. */
FakeBlock fake_store_take(FakeStore *store, uintptr_t adr);
void fake_block_release(FakeBlock *block);

/* The real place of [adr, adr + nbytes), or NULL when that is not inside one live block. */
unsigned char *fake_store_at(FakeStore *store, uintptr_t adr, size_t nbytes);

size_t fake_store_blocks(FakeStore *store);
uint64_t fake_store_available(FakeStore *store);
