/* fixed_free_list.c - the stack of free blocks of one size, and the chunks they are cut from. */
#include "pool/fixed_free_list.h"
#include "core/context.h"

#include <stdlib.h>
#include <string.h>

/* Values of links that are no numbers. no_block: the end of the stack. in_transit: a block that is
 * neither live nor in the stack. Above that: a block that is live at its first multiple of
 * 2^shift. */
static uint32_t const in_transit = UINT32_MAX - 64, no_block = UINT32_MAX - 65;

static uint32_t live_link(unsigned shift) { return UINT32_MAX - shift; }
static bool is_live(uint32_t link) { return link > in_transit; }

/* The address that take has returned for the live block that begins at start. */
static uintptr_t live_at(uintptr_t start, uint32_t link) {
  uintptr_t mask = ((uintptr_t)1 << (UINT32_MAX - link)) - 1;
  return (start + mask) & ~mask;
}

enum { map_page = 1 << umemPageShift };

/* ---- blocks by their numbers ---- */

static umemFixedChunk *chunk_of(umemFixedFreeList *list, uint32_t number) {
  umemFixedTable *table = __atomic_load_n(&list->table, __ATOMIC_ACQUIRE);
  return table->chunks[number >> list->shift];
}

static uint32_t *link_in(umemFixedChunk *chunk, uint32_t number) {
  return &chunk->links[number - chunk->first];
}

static uint32_t *link_of(umemFixedFreeList *list, uint32_t number) {
  return link_in(chunk_of(list, number), number);
}

static uint32_t block_below(umemFixedFreeList *list, uint32_t number) {
  return __atomic_load_n(link_of(list, number), __ATOMIC_RELAXED);
}

static uintptr_t start_of(umemFixedFreeList *list, umemFixedChunk *chunk, uint32_t number) {
  uintptr_t adr = __atomic_load_n(&chunk->adr, __ATOMIC_RELAXED);
  return adr + (uintptr_t)(number - chunk->first) * list->block_size;
}

/* ---- the stack ---- */

static bool exchange_head(umemFixedFreeList *list, uint64_t *head, uint32_t number) {
  return __atomic_compare_exchange_n(&list->head, head, ((*head >> 32) + 1) << 32 | number, true,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* The uppermost block, or no_block. */
static uint32_t pop_block(umemFixedFreeList *list) {
  uint64_t head = __atomic_load_n(&list->head, __ATOMIC_ACQUIRE);
  while ((uint32_t)head != no_block)
    if (exchange_head(list, &head, block_below(list, (uint32_t)head))) return (uint32_t)head;
  return no_block;
}

/* Puts blocks onto the stack that are linked from first down to the one whose link is last. */
static void push_blocks(umemFixedFreeList *list, uint32_t first, uint32_t *last) {
  uint64_t head = __atomic_load_n(&list->head, __ATOMIC_ACQUIRE);
  do __atomic_store_n(last, (uint32_t)head, __ATOMIC_RELAXED);
  while (!exchange_head(list, &head, first));
}

/* Takes the whole stack away; returns what was uppermost. */
static uint32_t pop_all(umemFixedFreeList *list) {
  uint64_t head = __atomic_load_n(&list->head, __ATOMIC_ACQUIRE);
  while (!exchange_head(list, &head, no_block)) {
  }
  return (uint32_t)head;
}

/* ---- chunks; under the lock ---- */

static bool refuse_for(umemFixedFailure *failure, umemFixedReason why) {
  failure->reason = why;
  return false;
}

/* Room in the table for count more slots. */
static bool has_room(umemFixedFreeList *list, uint64_t count) {
  umemFixedTable *table = list->table;
  size_t room = table->room, needed = list->slot_count + (size_t)count;
  if (needed <= room) return true;
  while (room < needed) room *= 2;
  umemFixedTable *larger = malloc(sizeof *larger + room * sizeof *larger->chunks);
  if (!larger) return false;
  memcpy(larger->chunks, table->chunks, table->room * sizeof *table->chunks);
  larger->older = table;
  larger->room = room;
  __atomic_store_n(&list->table, larger, __ATOMIC_RELEASE);
  return true;
}

/* How many slots of the table count blocks take up. */
static uint64_t slots_for(umemFixedFreeList const *list, uint64_t count) {
  return (count + ((uint64_t)1 << list->shift) - 1) >> list->shift;
}

static bool has_numbers(umemFixedFreeList const *list, uint64_t count) {
  return slots_for(list, count) <= (no_block >> list->shift) - list->slot_count;
}

/* An unused descriptor for so many blocks; NULL without memory or numbers. */
static umemFixedChunk *new_chunk(umemFixedFreeList *list, uint32_t count) {
  for (umemFixedChunk **link = &list->unused, *chunk; (chunk = *link); link = &chunk->next_unused)
    if (chunk->count == count) {
      *link = chunk->next_unused;
      return chunk;
    }
  uint64_t slots = slots_for(list, count);
  if (!has_numbers(list, count) || !has_room(list, slots)) return NULL;
  umemFixedChunk *chunk = malloc(sizeof *chunk + count * sizeof *chunk->links);
  if (!chunk) return NULL;
  memset(chunk, 0, sizeof *chunk);
  chunk->first = (uint32_t)list->slot_count << list->shift;
  chunk->count = count;
  for (uint32_t i = 0; i < count; i++) chunk->links[i] = in_transit;
  while (slots-- > 0) list->table->chunks[list->slot_count++] = chunk;
  chunk->older = list->newest;
  return list->newest = chunk;
}

static void put_chunk_away(umemFixedFreeList *list, umemFixedChunk *chunk) {
  chunk->next_unused = list->unused;
  list->unused = chunk;
}

static uint64_t pages_of(uintptr_t adr, size_t size) {
  return ((uint64_t)(adr + size - 1) >> umemPageShift) - ((uint64_t)adr >> umemPageShift) + 1;
}

/* Records a chunk of count blocks at adr. NULL without memory. */
static umemFixedChunk *record_chunk(umemFixedFreeList *list, uintptr_t adr, uint32_t count) {
  size_t size = count * list->block_size;
  uint64_t page = (uint64_t)adr >> umemPageShift, pages = pages_of(adr, size);
  if (!umemPageMap_prepare(&list->map, page, pages)) return NULL;
  umemFixedChunk *chunk = new_chunk(list, count);
  if (!chunk) return NULL;
  __atomic_store_n(&chunk->adr, adr, __ATOMIC_RELEASE);
  chunk->held = true;
  chunk->generation = umem_fork_count();
  umemPageMap_set(&list->map, page, pages, (uintptr_t)chunk);
  list->held_chunks++;
  list->held_blocks += chunk->count;
  if (list->held_blocks > list->held_peak) list->held_peak = list->held_blocks;
  return chunk;
}

static size_t chunk_alignment(umemFixedFreeList const *list) {
  return list->alignment > map_page ? list->alignment : map_page;
}

/* Calls the upstream, with the lock open. */
static uintptr_t request_chunk(umemFixedFreeList *list, uint32_t count, umemFixedFailure *failure) {
  umemGrowthRequest request;
  umemGrowth_open(&list->growth, &list->lock, &request, count, true, &failure->attempt);
  uintptr_t adr =
      umem_aligned_alloc(list->upstream, chunk_alignment(list), count * list->block_size);
  umemGrowth_close(&list->growth, &list->lock, &request, &failure->attempt);
  return adr;
}

static umemFixedChunk *add_chunk(umemFixedFreeList *list, uint32_t count,
                                 umemFixedFailure *failure) {
  uintptr_t adr = request_chunk(list, count, failure);
  if (adr == umem_null_of(list->upstream))
    return refuse_for(failure, umemFixedUpstreamFailed), NULL;
  umemFixedChunk *chunk = record_chunk(list, adr, count);
  if (chunk) return chunk;
  umemAttempt_begin(&failure->attempt);
  umem_aligned_free(list->upstream, adr);
  umemAttempt_end(&failure->attempt);
  return refuse_for(failure, umemFixedNoRecords), NULL;
}

/* How many blocks more the maximum allows. */
static uint64_t allowed_blocks(umemFixedFreeList const *list) {
  uint64_t most = list->maximum / list->block_size;
  uint64_t taken = list->held_blocks + umemGrowth_amount(&list->growth);
  return taken < most ? most - taken : 0;
}

/* A new chunk of next_count blocks; if the upstream has no such chunk, of half as many, and so on.
 * The next chunk is at most twice as large: when little memory is left, not each growth tries all
 * sizes. The lock is open meanwhile. */
static umemFixedChunk *grow_list(umemFixedFreeList *list, umemFixedFailure *failure) {
  for (uint32_t count = list->next_count;; count /= 2) {
    uint64_t most = allowed_blocks(list);
    if (count > most) count = (uint32_t)most;
    if (!count) return refuse_for(failure, umemFixedAtMaximum), NULL;
    umemFixedChunk *chunk = add_chunk(list, count, failure);
    if (!chunk && count > 1) continue;
    list->next_count = count < list->per_chunk / 2 ? 2 * count : list->per_chunk;
    return chunk;
  }
}

/* Makes the blocks of chunk free, except the first ones. */
static void make_free(umemFixedFreeList *list, umemFixedChunk *chunk, uint32_t but) {
  if (but == chunk->count) return;
  for (uint32_t i = but; i < chunk->count; i++)
    __atomic_store_n(&chunk->links[i], chunk->first + i + 1, __ATOMIC_RELAXED);
  push_blocks(list, chunk->first + but, &chunk->links[chunk->count - 1]);
}

/* Gives back a chunk all of whose blocks are free. If the upstream refuses, because its stream is
 * being captured for example, the chunk is kept. */
static void release_chunk(umemFixedFreeList *list, umemFixedChunk *chunk) {
  uintptr_t adr = chunk->adr;
  uint64_t before = umem_thread.failures;
  if (umem_is_of_parent(list->upstream, chunk->generation)) return;
  umem_aligned_free(list->upstream, adr);
  if (umem_thread.failures != before) return;
  size_t size = chunk->count * list->block_size;
  umemPageMap_set(&list->map, (uint64_t)adr >> umemPageShift, pages_of(adr, size), 0);
  __atomic_store_n(&chunk->adr, umem_null_of(list->upstream), __ATOMIC_RELEASE);
  chunk->held = false;
  list->held_chunks--;
  list->held_blocks -= chunk->count;
  put_chunk_away(list, chunk);
}

/* ---- taking ---- */

/* A block when the stack was empty. */
static __attribute__((noinline)) uint32_t take_slowly(umemFixedFreeList *list,
                                                      umemFixedFailure *failure) {
  UMEM_LOCKED(&list->lock);
  uint32_t number = pop_block(list);
  while (number == no_block && umemGrowth_await(&list->growth, &list->lock))
    number = pop_block(list);
  if (number == no_block) {
    umemFixedChunk *chunk = grow_list(list, failure);
    if (chunk) make_free(list, chunk, 1);
    number = chunk ? chunk->first : pop_block(list); /* freed meanwhile */
  }
  return number;
}

size_t umemFixedFreeList_pad(umemFixedFreeList const *list, size_t alignment) {
  size_t step = list->block_size & -list->block_size, chunk = chunk_alignment(list);
  if (step > chunk) step = chunk; /* blocks begin at its multiples */
  return alignment > step ? alignment - step : 0;
}

uintptr_t umemFixedFreeList_take(umemFixedFreeList *list, unsigned shift,
                                 umemFixedFailure *failure) {
  uint32_t number = pop_block(list);
  if (__builtin_expect(number == no_block, 0)) {
    number = take_slowly(list, failure);
    if (number == no_block) return umem_null_of(list->upstream);
  }
  umemFixedChunk *chunk = chunk_of(list, number);
  uint32_t link = live_link(shift);
  __atomic_store_n(link_in(chunk, number), link, __ATOMIC_RELEASE);
  return live_at(start_of(list, chunk, number), link);
}

bool umemFixedFreeList_reserve(umemFixedFreeList *list, uint64_t count, umemFixedFailure *failure) {
  if (!count) return true;
  UMEM_LOCKED(&list->lock);
  umemFixedChunk *chunk = NULL;
  if (has_numbers(list, count))
    chunk = add_chunk(list, (uint32_t)count, failure);
  else
    refuse_for(failure, umemFixedNoNumbers);
  if (chunk) make_free(list, chunk, 0);
  return chunk;
}

uint64_t umemFixedFreeList_count(umemFixedFreeList *list) {
  uint64_t count = 0;
  for (umemFixedChunk *chunk = list->newest; chunk; chunk = chunk->older)
    for (uint32_t i = 0; chunk->held && i < chunk->count; i++)
      count += is_live(__atomic_load_n(&chunk->links[i], __ATOMIC_RELAXED));
  return count;
}

/* ---- giving back ---- */

/* The block that contains an address. */
typedef struct Location {
  umemFixedChunk *chunk;
  uintptr_t base; /* of the chunk */
  uintptr_t start;
  uint32_t number, link;
} Location;

/* Whether a block that contains adr is, or was until now, live. */
static bool locate_containing(umemFixedFreeList *list, uintptr_t adr, Location *location) {
  umemFixedChunk *chunk = (umemFixedChunk *)umemPageMap_find(&list->map, adr);
  if (!chunk) return false;
  uintptr_t base = __atomic_load_n(&chunk->adr, __ATOMIC_ACQUIRE);
  size_t index = (adr - base) / list->block_size;
  if (adr < base || index >= chunk->count) return false;
  location->chunk = chunk;
  location->base = base;
  location->start = base + index * list->block_size;
  location->number = chunk->first + (uint32_t)index;
  location->link = __atomic_load_n(&chunk->links[index], __ATOMIC_ACQUIRE);
  return is_live(location->link);
}

/* Whether a block is, or was until now, live at adr. */
static bool locate_block(umemFixedFreeList *list, uintptr_t adr, Location *location) {
  return locate_containing(list, adr, location) && live_at(location->start, location->link) == adr;
}

/* Whether the chunk is still where it was when the location was found: a trim may have been faster
 * than the free of a block that was not live. */
static bool still_holds(Location const *location) {
  return __atomic_load_n(&location->chunk->adr, __ATOMIC_ACQUIRE) == location->base;
}

bool umemFixedFreeList_find(umemFixedFreeList *list, uintptr_t adr, uintptr_t *start) {
  Location location;
  if (!locate_block(list, adr, &location) || !still_holds(&location)) return false;
  *start = location.start;
  return true;
}

bool umemFixedFreeList_find_containing(umemFixedFreeList *list, uintptr_t adr, uintptr_t *start,
                                       size_t *nbytes) {
  Location location;
  if (!locate_containing(list, adr, &location) || !still_holds(&location)) return false;
  *start = live_at(location.start, location.link);
  *nbytes = list->block_size - (*start - location.start);
  return adr >= *start;
}

bool umemFixedFreeList_put(umemFixedFreeList *list, uintptr_t adr) {
  Location location;
  if (!locate_block(list, adr, &location)) return false;
  uint32_t *link = link_in(location.chunk, location.number), expected = location.link;
  if (!__atomic_compare_exchange_n(link, &expected, in_transit, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED))
    return false;
  if (__builtin_expect(!still_holds(&location), 0)) {
    __atomic_store_n(link, location.link, __ATOMIC_RELEASE);
    return false;
  }
  push_blocks(list, location.number, link);
  return true;
}

/* ---- giving chunks back ---- */

/* Whether all blocks of chunk are in the stack that was taken away, and it may go. */
static bool may_go(umemFixedFreeList *list, umemFixedChunk *chunk, size_t keep) {
  if (!chunk->held || chunk->free_count != chunk->count) return false;
  return (list->held_blocks - chunk->count) * list->block_size >= keep;
}

static void count_free(umemFixedFreeList *list, uint32_t top) {
  for (umemFixedChunk *chunk = list->newest; chunk; chunk = chunk->older) chunk->free_count = 0;
  for (; top != no_block; top = block_below(list, top)) chunk_of(list, top)->free_count++;
}

/* Puts back, in its order, what is left of the stack that began at top. */
static void restore_stack(umemFixedFreeList *list, uint32_t top) {
  uint32_t first = no_block, *last = &first, next;
  for (; top != no_block; top = next) {
    next = block_below(list, top);
    if (!chunk_of(list, top)->held) continue;
    __atomic_store_n(last, top, __ATOMIC_RELAXED);
    last = link_of(list, top);
  }
  if (first != no_block) push_blocks(list, first, last);
}

/* Threads that need a block meanwhile find the stack empty, and wait for the lock. */
void umemFixedFreeList_trim(umemFixedFreeList *list, size_t keep, umemAttempt *held) {
  UMEM_LOCKED(&list->lock);
  umemAttempt_begin(held);
  list->next_count = list->per_chunk;
  uint32_t top = pop_all(list);
  count_free(list, top);
  for (umemFixedChunk *chunk = list->newest; chunk; chunk = chunk->older)
    if (may_go(list, chunk, keep)) release_chunk(list, chunk);
  restore_stack(list, top);
  umemAttempt_end(held);
}

/* ---- beginning and end ---- */

enum { first_room = 16 };

bool umemFixedFreeList_init(umemFixedFreeList *list) {
  list->head = no_block;
  list->next_count = list->per_chunk;
  if (!umemPageMap_init(&list->map)) return false;
  list->table = calloc(1, sizeof *list->table + first_room * sizeof *list->table->chunks);
  if (!list->table) {
    umemPageMap_fini(&list->map);
    return false;
  }
  list->table->room = first_room;
  umemLock_init(&list->lock);
  umemGrowth_init(&list->growth);
  return true;
}

void umemFixedFreeList_fini(umemFixedFreeList *list) {
  for (umemFixedChunk *chunk = list->newest, *older; chunk; chunk = older) {
    older = chunk->older;
    if (chunk->held) umem_end_block(list->upstream, chunk->adr, true, false, chunk->generation);
    free(chunk);
  }
  for (umemFixedTable *table = list->table, *older; table; table = older) {
    older = table->older;
    free(table);
  }
  umemPageMap_fini(&list->map);
  umemGrowth_fini(&list->growth);
  umemLock_destroy(&list->lock);
}
