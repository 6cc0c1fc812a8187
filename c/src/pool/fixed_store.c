/* fixed_store.c - see umem_fixed_store.h. */
#include "pool/fixed_store.h"

#include <stdlib.h>
#include <string.h>

/* What stands for no number of a block: the end of the stack; in links, a block that is neither
 * live nor in the stack, and above that live ones: at their first multiple of 2^shift. */
static uint32_t const between = UINT32_MAX - 64, nobody = UINT32_MAX - 65;

static uint32_t live_link(unsigned shift) { return UINT32_MAX - shift; }
static bool is_live(uint32_t link) { return link > between; }

/* Where a block that begins at start is live. */
static uintptr_t live_at(uintptr_t start, uint32_t link) {
  uintptr_t mask = ((uintptr_t)1 << (UINT32_MAX - link)) - 1;
  return (start + mask) & ~mask;
}

enum { map_page = 1 << umemPageShift };

/* ---- blocks by their numbers ---- */

static umemFixedChunk *chunk_of(umemFixedStore *store, uint32_t number) {
  umemFixedTable *table = __atomic_load_n(&store->table, __ATOMIC_ACQUIRE);
  return table->chunks[number >> store->shift];
}

static uint32_t *link_in(umemFixedChunk *chunk, uint32_t number) {
  return &chunk->links[number - chunk->first];
}

static uint32_t *link_of(umemFixedStore *store, uint32_t number) {
  return link_in(chunk_of(store, number), number);
}

static uint32_t below(umemFixedStore *store, uint32_t number) {
  return __atomic_load_n(link_of(store, number), __ATOMIC_RELAXED);
}

static uintptr_t start_of(umemFixedStore *store, umemFixedChunk *chunk, uint32_t number) {
  uintptr_t adr = __atomic_load_n(&chunk->adr, __ATOMIC_RELAXED);
  return adr + (uintptr_t)(number - chunk->first) * store->block_size;
}

/* ---- the stack ---- */

/* What the head becomes when number is uppermost. */
static uint64_t next_head(uint64_t head, uint32_t number) {
  return ((head >> 32) + 1) << 32 | number;
}

static bool exchange_head(umemFixedStore *store, uint64_t *head, uint32_t number) {
  return __atomic_compare_exchange_n(&store->head, head, next_head(*head, number), true,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* The uppermost block, or nobody. */
static uint32_t pop(umemFixedStore *store) {
  uint64_t head = __atomic_load_n(&store->head, __ATOMIC_ACQUIRE);
  while ((uint32_t)head != nobody)
    if (exchange_head(store, &head, below(store, (uint32_t)head))) return (uint32_t)head;
  return nobody;
}

/* Puts the blocks that are linked from first down to the one whose link is last upon the stack. */
static void push(umemFixedStore *store, uint32_t first, uint32_t *last) {
  uint64_t head = __atomic_load_n(&store->head, __ATOMIC_ACQUIRE);
  do __atomic_store_n(last, (uint32_t)head, __ATOMIC_RELAXED);
  while (!exchange_head(store, &head, first));
}

/* Takes the whole stack away; returns what was uppermost. */
static uint32_t pop_all(umemFixedStore *store) {
  uint64_t head = __atomic_load_n(&store->head, __ATOMIC_ACQUIRE);
  while (!exchange_head(store, &head, nobody)) {
  }
  return (uint32_t)head;
}

/* ---- growing; under the lock ---- */

/* In a child of fork nobody grows or waits: the parent's other threads are not here. What they left
 * in the condition variable would hold up its end. */
static void leave_parent(umemFixedStore *store) {
  if (store->lineage == umem_fork_count()) return;
  store->lineage = umem_fork_count();
  store->growth = (umemFixedGrowth){0};
  pthread_cond_init(&store->grown, NULL);
}

/* Whether this is the thread that grows: in a function of the program that the upstream calls. */
static bool grows_here(umemFixedStore const *store) {
  return store->growth.running && pthread_equal(store->growth.thread, pthread_self());
}

/* Waits for another thread that grows. Whether there was one: then there may be blocks. */
static bool wait_for_growth(umemFixedStore *store) {
  leave_parent(store);
  if (!store->growth.running || grows_here(store)) return false;
  umemLock_wait(&store->lock, &store->grown);
  return true;
}

/* ---- chunks; under the lock ---- */

static bool lacks(umemFixedLack *lack, umemFixedWhy why) {
  lack->why = why;
  return false;
}

/* Room in the table for count more slots. */
static bool has_room(umemFixedStore *store, uint64_t count) {
  umemFixedTable *table = store->table;
  size_t room = table->room, needed = store->slot_count + (size_t)count;
  if (needed <= room) return true;
  while (room < needed) room *= 2;
  umemFixedTable *larger = malloc(sizeof *larger + room * sizeof *larger->chunks);
  if (!larger) return false;
  memcpy(larger->chunks, table->chunks, table->room * sizeof *table->chunks);
  larger->older = table;
  larger->room = room;
  __atomic_store_n(&store->table, larger, __ATOMIC_RELEASE);
  return true;
}

/* How many slots of the table count blocks take up. */
static uint64_t slots_for(umemFixedStore const *store, uint64_t count) {
  return (count + ((uint64_t)1 << store->shift) - 1) >> store->shift;
}

static bool has_numbers(umemFixedStore const *store, uint64_t count) {
  return slots_for(store, count) <= (nobody >> store->shift) - store->slot_count;
}

/* A descriptor for so many blocks that is not in use; NULL without memory or numbers. */
static umemFixedChunk *new_chunk(umemFixedStore *store, uint32_t count) {
  for (umemFixedChunk **link = &store->unused, *chunk; (chunk = *link); link = &chunk->next_unused)
    if (chunk->count == count) {
      *link = chunk->next_unused;
      return chunk;
    }
  uint64_t slots = slots_for(store, count);
  if (!has_numbers(store, count) || !has_room(store, slots)) return NULL;
  umemFixedChunk *chunk = malloc(sizeof *chunk + count * sizeof *chunk->links);
  if (!chunk) return NULL;
  memset(chunk, 0, sizeof *chunk);
  chunk->first = (uint32_t)store->slot_count << store->shift;
  chunk->count = count;
  for (uint32_t i = 0; i < count; i++) chunk->links[i] = between;
  while (slots-- > 0) store->table->chunks[store->slot_count++] = chunk;
  chunk->older = store->newest;
  return store->newest = chunk;
}

static void shelve(umemFixedStore *store, umemFixedChunk *chunk) {
  chunk->next_unused = store->unused;
  store->unused = chunk;
}

static uint64_t pages_of(uintptr_t adr, size_t size) {
  return ((uint64_t)(adr + size - 1) >> umemPageShift) - ((uint64_t)adr >> umemPageShift) + 1;
}

/* Writes a chunk of count blocks at adr down. NULL without memory. */
static umemFixedChunk *note(umemFixedStore *store, uintptr_t adr, uint32_t count) {
  size_t size = count * store->block_size;
  uint64_t page = (uint64_t)adr >> umemPageShift, pages = pages_of(adr, size);
  if (!umemPageMap_prepare(&store->map, page, pages)) return NULL;
  umemFixedChunk *chunk = new_chunk(store, count);
  if (!chunk) return NULL;
  __atomic_store_n(&chunk->adr, adr, __ATOMIC_RELEASE);
  chunk->held = true;
  umemPageMap_set(&store->map, page, pages, (uintptr_t)chunk);
  store->held_chunks++;
  store->held_blocks += chunk->count;
  if (store->held_blocks > store->held_peak) store->held_peak = store->held_blocks;
  return chunk;
}

static size_t chunk_alignment(umemFixedStore const *store) {
  return store->alignment > map_page ? store->alignment : map_page;
}

/* Asks the upstream, with the lock open. */
static uintptr_t ask(umemFixedStore *store, uint32_t count, umemFixedLack *lack) {
  umemFixedGrowth around = {0};
  if (grows_here(store)) around = store->growth;
  unsigned lineage = store->lineage;
  store->growth = (umemFixedGrowth){true, pthread_self(), around.blocks + count};
  umemLock_release(&store->lock);
  umemAttempt_begin(&lack->attempt);
  uintptr_t adr =
      umem_aligned_alloc(store->upstream, chunk_alignment(store), count * store->block_size);
  umemAttempt_end(&lack->attempt);
  umemLock_acquire(&store->lock);
  leave_parent(store);
  if (store->lineage == lineage && grows_here(store)) store->growth = around;
  if (!store->growth.running) pthread_cond_broadcast(&store->grown);
  return adr;
}

static umemFixedChunk *add_chunk(umemFixedStore *store, uint32_t count, umemFixedLack *lack) {
  uintptr_t adr = ask(store, count, lack);
  if (adr == umem_null_of(store->upstream)) return lacks(lack, umemFixedUpstream), NULL;
  umemFixedChunk *chunk = note(store, adr, count);
  if (chunk) return chunk;
  umemAttempt_begin(&lack->attempt);
  umem_aligned_free(store->upstream, adr);
  umemAttempt_end(&lack->attempt);
  return lacks(lack, umemFixedBooks), NULL;
}

/* How many blocks more the maximum allows. */
static uint64_t allowed(umemFixedStore const *store) {
  uint64_t most = store->maximum / store->block_size;
  uint64_t taken = store->held_blocks + store->growth.blocks;
  return taken < most ? most - taken : 0;
}

/* A new chunk: as large as it should be, or if that is not to be had half of it, and so on. The
 * next one is tried at most twice as large, lest each asks for all sizes where little is left. The
 * lock is open meanwhile. */
static umemFixedChunk *grow(umemFixedStore *store, umemFixedLack *lack) {
  for (uint32_t count = store->next_count;; count /= 2) {
    uint64_t most = allowed(store);
    if (count > most) count = (uint32_t)most;
    if (!count) return lacks(lack, umemFixedMaximum), NULL;
    umemFixedChunk *chunk = add_chunk(store, count, lack);
    if (!chunk && count > 1) continue;
    store->next_count = count < store->per_chunk / 2 ? 2 * count : store->per_chunk;
    return chunk;
  }
}

/* Makes the blocks of chunk free, but for the first ones. */
static void offer(umemFixedStore *store, umemFixedChunk *chunk, uint32_t but) {
  if (but == chunk->count) return;
  for (uint32_t i = but; i < chunk->count; i++)
    __atomic_store_n(&chunk->links[i], chunk->first + i + 1, __ATOMIC_RELAXED);
  push(store, chunk->first + but, &chunk->links[chunk->count - 1]);
}

/* Gives chunk back, all of whose blocks are free. Where the upstream refuses, as one may whose
 * stream is being captured, the chunk stays for another day. */
static void release(umemFixedStore *store, umemFixedChunk *chunk) {
  uintptr_t adr = chunk->adr;
  uint64_t before = umem_thread.failures;
  umem_aligned_free(store->upstream, adr);
  if (umem_thread.failures != before) return;
  size_t size = chunk->count * store->block_size;
  umemPageMap_set(&store->map, (uint64_t)adr >> umemPageShift, pages_of(adr, size), 0);
  __atomic_store_n(&chunk->adr, umem_null_of(store->upstream), __ATOMIC_RELEASE);
  chunk->held = false;
  store->held_chunks--;
  store->held_blocks -= chunk->count;
  shelve(store, chunk);
}

/* ---- taking ---- */

/* A block when the stack was empty. */
static __attribute__((noinline)) uint32_t take_slowly(umemFixedStore *store, umemFixedLack *lack) {
  umemLock_acquire(&store->lock);
  uint32_t number = pop(store);
  while (number == nobody && wait_for_growth(store)) number = pop(store);
  if (number == nobody) {
    umemFixedChunk *chunk = grow(store, lack);
    if (chunk) offer(store, chunk, 1);
    number = chunk ? chunk->first : pop(store); /* freed meanwhile */
  }
  umemLock_release(&store->lock);
  return number;
}

size_t umemFixedStore_pad(umemFixedStore const *store, size_t alignment) {
  size_t step = store->block_size & -store->block_size, chunk = chunk_alignment(store);
  if (step > chunk) step = chunk; /* blocks begin at its multiples */
  return alignment > step ? alignment - step : 0;
}

uintptr_t umemFixedStore_take(umemFixedStore *store, unsigned shift, umemFixedLack *lack) {
  uint32_t number = pop(store);
  if (__builtin_expect(number == nobody, 0)) {
    number = take_slowly(store, lack);
    if (number == nobody) return umem_null_of(store->upstream);
  }
  umemFixedChunk *chunk = chunk_of(store, number);
  uint32_t link = live_link(shift);
  __atomic_store_n(link_in(chunk, number), link, __ATOMIC_RELEASE);
  return live_at(start_of(store, chunk, number), link);
}

bool umemFixedStore_reserve(umemFixedStore *store, uint64_t count, umemFixedLack *lack) {
  if (!count) return true;
  umemLock_acquire(&store->lock);
  umemFixedChunk *chunk = NULL;
  if (has_numbers(store, count))
    chunk = add_chunk(store, (uint32_t)count, lack);
  else
    lacks(lack, umemFixedNumbers);
  if (chunk) offer(store, chunk, 0);
  umemLock_release(&store->lock);
  return chunk;
}

uint64_t umemFixedStore_count(umemFixedStore *store) {
  uint64_t count = 0;
  for (umemFixedChunk *chunk = store->newest; chunk; chunk = chunk->older)
    for (uint32_t i = 0; chunk->held && i < chunk->count; i++)
      count += is_live(__atomic_load_n(&chunk->links[i], __ATOMIC_RELAXED));
  return count;
}

/* ---- giving back ---- */

/* The block in which adr lies. */
typedef struct Place {
  umemFixedChunk *chunk;
  uintptr_t base; /* of the chunk */
  uintptr_t start;
  uint32_t number, link;
} Place;

/* Whether adr is where a block is, or just was, live. */
static bool locate(umemFixedStore *store, uintptr_t adr, Place *place) {
  umemFixedChunk *chunk = (umemFixedChunk *)umemPageMap_find(&store->map, adr);
  if (!chunk) return false;
  uintptr_t base = __atomic_load_n(&chunk->adr, __ATOMIC_ACQUIRE);
  size_t index = (adr - base) / store->block_size;
  if (adr < base || index >= chunk->count) return false;
  place->chunk = chunk;
  place->base = base;
  place->start = base + index * store->block_size;
  place->number = chunk->first + (uint32_t)index;
  place->link = __atomic_load_n(&chunk->links[index], __ATOMIC_ACQUIRE);
  return is_live(place->link) && live_at(place->start, place->link) == adr;
}

/* Whether the chunk lies where it lay when place was found: a trim may have overtaken a free of
 * what was no live block. */
static bool is_still(Place const *place) {
  return __atomic_load_n(&place->chunk->adr, __ATOMIC_ACQUIRE) == place->base;
}

bool umemFixedStore_find(umemFixedStore *store, uintptr_t adr, uintptr_t *start) {
  Place place;
  if (!locate(store, adr, &place) || !is_still(&place)) return false;
  *start = place.start;
  return true;
}

bool umemFixedStore_put(umemFixedStore *store, uintptr_t adr) {
  Place place;
  if (!locate(store, adr, &place)) return false;
  uint32_t *link = link_in(place.chunk, place.number), expected = place.link;
  if (!__atomic_compare_exchange_n(link, &expected, between, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED))
    return false;
  if (__builtin_expect(!is_still(&place), 0)) {
    __atomic_store_n(link, place.link, __ATOMIC_RELEASE);
    return false;
  }
  push(store, place.number, link);
  return true;
}

/* ---- giving chunks back ---- */

/* Whether all blocks of chunk are in the stack that was taken away, and it may go. */
static bool may_go(umemFixedStore *store, umemFixedChunk *chunk, size_t keep) {
  if (!chunk->held || chunk->free_count != chunk->count) return false;
  return (store->held_blocks - chunk->count) * store->block_size >= keep;
}

static void count_free(umemFixedStore *store, uint32_t top) {
  for (umemFixedChunk *chunk = store->newest; chunk; chunk = chunk->older) chunk->free_count = 0;
  for (; top != nobody; top = below(store, top)) chunk_of(store, top)->free_count++;
}

/* Puts what is left of the stack that began at top back in its order. */
static void restore(umemFixedStore *store, uint32_t top) {
  uint32_t first = nobody, *last = &first, next;
  for (; top != nobody; top = next) {
    next = below(store, top);
    if (!chunk_of(store, top)->held) continue;
    __atomic_store_n(last, top, __ATOMIC_RELAXED);
    last = link_of(store, top);
  }
  if (first != nobody) push(store, first, last);
}

/* Threads that need a block meanwhile find the stack empty, and wait for the lock. */
void umemFixedStore_trim(umemFixedStore *store, size_t keep, umemAttempt *held) {
  umemLock_acquire(&store->lock);
  umemAttempt_begin(held);
  store->next_count = store->per_chunk;
  uint32_t top = pop_all(store);
  count_free(store, top);
  for (umemFixedChunk *chunk = store->newest; chunk; chunk = chunk->older)
    if (may_go(store, chunk, keep)) release(store, chunk);
  restore(store, top);
  umemAttempt_end(held);
  umemLock_release(&store->lock);
}

/* ---- beginning and end ---- */

enum { first_room = 16 };

bool umemFixedStore_init(umemFixedStore *store) {
  store->head = nobody;
  store->next_count = store->per_chunk;
  if (!umemPageMap_init(&store->map)) return false;
  store->table = calloc(1, sizeof *store->table + first_room * sizeof *store->table->chunks);
  if (!store->table) {
    umemPageMap_fini(&store->map);
    return false;
  }
  store->table->room = first_room;
  umemLock_init(&store->lock);
  pthread_cond_init(&store->grown, NULL);
  store->lineage = umem_fork_count();
  return true;
}

void umemFixedStore_fini(umemFixedStore *store) {
  for (umemFixedChunk *chunk = store->newest, *older; chunk; chunk = older) {
    older = chunk->older;
    if (chunk->held) umem_aligned_free(store->upstream, chunk->adr);
    free(chunk);
  }
  for (umemFixedTable *table = store->table, *older; table; table = older) {
    older = table->older;
    free(table);
  }
  umemPageMap_fini(&store->map);
  leave_parent(store);
  pthread_cond_destroy(&store->grown);
  umemLock_destroy(&store->lock);
}
