#include "store.h"
#include "scoped.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

struct FakeStore {
  pthread_mutex_t mutex;
  bool real;      /* addresses are pointers */
  uintptr_t next; /* the lowest address not handed out yet */
  uint64_t capacity, used;
  FakeBlock *blocks; /* by rising address */
  size_t count, room;
};

enum {
  gap = 64, /* bytes that belong to nobody after each block */
  mapped_from =
      16 << 20,        /* larger blocks are mapped, so that huge ones cost only what is touched */
  junk_size = 64 << 10 /* bytes of a new block that are filled with junk */
};

FakeStore *fake_store_create(uintptr_t first, uint64_t capacity) {
  FakeStore *store = calloc(1, sizeof *store);
  if (!store) return NULL;
  pthread_mutex_init(&store->mutex, NULL);
  store->real = first == FAKE_REAL_POINTERS;
  store->next = first;
  store->capacity = capacity;
  return store;
}

void fake_store_destroy(FakeStore *store) {
  if (!store) return;
  for (size_t i = 0; i < store->count; i++) fake_block_release(&store->blocks[i]);
  free(store->blocks);
  pthread_mutex_destroy(&store->mutex);
  free(store);
}

static unsigned char *bytes_create(size_t nbytes, size_t alignment) {
  if (nbytes < mapped_from) {
    void *bytes = NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    return posix_memalign(&bytes, alignment, nbytes) ? NULL : bytes;
  }
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *bytes = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return bytes == MAP_FAILED ? NULL : bytes;
}

void fake_block_release(FakeBlock *block) {
  if (block->size < mapped_from)
    free(block->bytes);
  else
    munmap(block->bytes, block->size);
  block->bytes = NULL;
}

static bool grow(FakeStore *store) {
  if (store->count < store->room) return true;
  size_t room = store->room ? 2 * store->room : 64;
  FakeBlock *blocks = realloc(store->blocks, room * sizeof *blocks);
  if (!blocks) return false;
  store->blocks = blocks;
  store->room = room;
  return true;
}

/* The last block that begins at or before adr, or NULL. */
static FakeBlock *block_before(FakeStore *store, uintptr_t adr) {
  size_t low = 0, high = store->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (store->blocks[middle].start <= adr)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? &store->blocks[low - 1] : NULL;
}

/* Where a block of nbytes would begin, or FAKE_NOWHERE. */
static uintptr_t next_start(FakeStore const *store, size_t nbytes, size_t alignment) {
  uintptr_t start = (store->next + alignment - 1) & ~(uintptr_t)(alignment - 1);
  return start < store->next || nbytes + gap > UINTPTR_MAX - start ? FAKE_NOWHERE : start;
}

static void insert(FakeStore *store, FakeBlock block) {
  FakeBlock *before = block_before(store, block.start);
  FakeBlock *at = before ? before + 1 : store->blocks;
  memmove(at + 1, at, (size_t)(store->blocks + store->count - at) * sizeof *at);
  *at = block;
  store->count++;
  store->used += block.size;
}

static uintptr_t alloc_locked(FakeStore *store, size_t nbytes, size_t alignment) {
  if (nbytes > store->capacity - store->used || !grow(store)) return FAKE_NOWHERE;
  uintptr_t start = store->real ? 0 : next_start(store, nbytes, alignment);
  unsigned char *bytes = start == FAKE_NOWHERE ? NULL : bytes_create(nbytes, alignment);
  if (!bytes) return FAKE_NOWHERE;
  memset(bytes, 0xCD, nbytes < junk_size ? nbytes : junk_size);
  if (store->real) start = (uintptr_t)bytes;
  insert(store, (FakeBlock){start, nbytes, bytes});
  store->next = start + nbytes + gap;
  return start;
}

uintptr_t fake_store_alloc(FakeStore *store, size_t nbytes, size_t alignment) {
  LOCKED(&store->mutex);
  return alloc_locked(store, nbytes, alignment);
}

FakeBlock fake_store_take(FakeStore *store, uintptr_t adr) {
  FakeBlock taken = {0};
  LOCKED(&store->mutex);
  FakeBlock *block = block_before(store, adr);
  if (block && block->start == adr) {
    taken = *block;
    size_t after = store->count - (size_t)(block - store->blocks) - 1;
    memmove(block, block + 1, after * sizeof *block);
    store->count--;
    store->used -= taken.size;
  }
  return taken;
}

unsigned char *fake_store_at(FakeStore *store, uintptr_t adr, size_t nbytes) {
  unsigned char *bytes = NULL;
  LOCKED(&store->mutex);
  FakeBlock *block = block_before(store, adr);
  if (block && adr - block->start <= block->size && nbytes <= block->size - (adr - block->start))
    bytes = block->bytes + (adr - block->start);
  return bytes;
}

size_t fake_store_blocks(FakeStore *store) {
  LOCKED(&store->mutex);
  return store->count;
}

uint64_t fake_store_available(FakeStore *store) {
  LOCKED(&store->mutex);
  return store->capacity - store->used;
}
