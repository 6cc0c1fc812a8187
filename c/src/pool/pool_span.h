/* pool_span.h - spans: ranges that are cut into small blocks of one class. All under the lock but
 * what is said of small blocks by their address. */
#ifndef UMEM_POOL_SPAN_H
#define UMEM_POOL_SPAN_H

#include "pool/pool_core.h"

/* ---- spans ---- */

/* The descriptor of a span. Behind its bytes follow bits, at umemPoolSpan_bits: which blocks are
 * free. The page map holds its address, a multiple of 64, plus its class, which never changes.
 *
 * Each block has a byte. Threads that change bytes in one line of the processor's cache wait for
 * each other: so the bytes of larger blocks have a distance. A block of 128 bytes or more has a
 * byte for each 128, of which the first is in use; a smaller one has one or two. */
struct umemPoolSpan {
  struct umemPoolSpan *after, *before; /* in a list of spans with free blocks, or (after) of unused
                                          descriptors */
  umemPoolFreeList *list; /* the list of all its free blocks; NULL: the span is mixed */
  umemPoolFreeList *home; /* the list that has its range */
  uint64_t queues;        /* of a mixed span: queues to wait for, as bits of umemPoolQueue_bit */
  uint32_t room;          /* bytes in live */
  uint32_t free_count;
  uint64_t page;        /* the first one; atomic */
  uint64_t time;        /* when one of its blocks became free last: see pool_core.c */
  unsigned char live[]; /* atomic, one for each block; begins a line */
};
_Static_assert(sizeof(umemPoolSpan) == 64, "a line");

static inline umemPoolSpan *umemPoolSpan_of(uintptr_t word) {
  return (umemPoolSpan *)(word & ~(uintptr_t)umemPoolClassMask);
}

/* Whether spans of the class have several pages. */
static inline bool umemPoolClass_is_wide(unsigned class) {
  return class - umemPoolFirstWide < umemPoolClasses - umemPoolFirstWide;
}

static inline uint64_t *umemPoolSpan_bits(umemPoolSpan *span) {
  return (uint64_t *)(void *)(span->live + span->room);
}

/* Where adr is in the span of this word of the page map. */
static inline uint64_t umemPoolSpan_offset(uintptr_t word, uintptr_t adr) {
  if (!umemPoolClass_is_wide(umemPoolClass_of(word))) return (uint64_t)adr & (umemPoolPage - 1);
  uint64_t page = __atomic_load_n(&umemPoolSpan_of(word)->page, __ATOMIC_ACQUIRE);
  return (uint64_t)adr - (page << umemPageShift);
}

/* Sets shapes and class_of of a new core. */
void umemPoolSpan_init_classes(umemPoolCore *core);

/* Adds a span of the class to the list, from its free ranges. */
umemPoolResult umemPoolSpan_add(umemPoolFreeList *list, unsigned class);

/* Takes up to count blocks of the class that are free in the list's spans, the lowest address last.
 * Returns how many. */
uint32_t umemPoolSpan_take(umemPoolFreeList *list, unsigned class, umemPoolEntry *entries,
                           uint32_t count);

/* Makes blocks of any class free in their spans, in the order of the list. */
void umemPoolSpan_put(umemPoolFreeList *list, umemPoolEntry const *entries, uint32_t count);

/* Notes that the free blocks of a detached span become those of the list now. */
void umemPoolSpan_note(umemPoolFreeList *list, umemPoolSpan *span);

/* Frees the ranges of spans without live blocks that could not be freed before, because there was
 * no RAM. */
void umemPoolSpan_remove_whole(umemPoolFreeList *list);

/* Takes a span with free blocks out of its list. Then it is mixed, waits for no queue, and no list
 * takes blocks of it. */
void umemPoolSpan_detach(umemPoolCore *core, umemPoolSpan *span);

/* Puts a detached span into the list. If blocks of it were freed in the meantime, it
 * remains mixed. */
void umemPoolSpan_attach(umemPoolFreeList *list, umemPoolSpan *span);

/* ---- small blocks by their address ---- */

/* A small block that is, or may be, live. */
typedef struct umemPoolLocation {
  uintptr_t const *where; /* in the page map */
  uintptr_t word;         /* what was there */
  unsigned char *live;
} umemPoolLocation;

/* Whether a block of a span can begin at adr, and which one. Needs no lock. Reads as little memory
 * as possible, because with many live blocks a cache miss takes longer than all the rest. An offset
 * beyond the span is refused, because its index is not less than the count; the count of a large
 * block is 0. */
static inline bool umemPoolSpan_locate(umemPoolCore const *core, uintptr_t adr,
                                       umemPoolLocation *location) {
  uintptr_t const *where = umemPageMap_word(&core->map, adr);
  uintptr_t word = where ? __atomic_load_n(where, __ATOMIC_ACQUIRE) : 0;
  if (!word) return false;
  umemPoolShape const *shape = &core->shapes[umemPoolClass_of(word)];
  uint64_t offset = umemPoolSpan_offset(word, adr), index = offset * shape->magic >> 40;
  if (index >= shape->count || index * shape->size != offset) return false;
  *location = (umemPoolLocation){where, word, &umemPoolSpan_of(word)->live[offset >> shape->shift]};
  return true;
}

/* Makes a block no longer live. False, with nothing changed, when it was not: of two threads that
 * do this at once, one succeeds. In a process with one thread this needs no locked instruction,
 * which takes longer than all the rest of a free. */
static inline bool umemPoolSpan_end_life(unsigned char *live) {
  unsigned char expected = 1;
  if (!umem_is_single_threaded())
    return __atomic_compare_exchange_n(live, &expected, 0, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
  if (__atomic_load_n(live, __ATOMIC_RELAXED) != 1) return false;
  __atomic_store_n(live, 0, __ATOMIC_RELAXED);
  return true;
}

/* Where the small block that contains adr would begin. False outside of spans. */
static inline bool umemPoolSpan_start(umemPoolCore const *core, uintptr_t adr, uintptr_t *start) {
  uintptr_t word = umemPageMap_find(&core->map, adr);
  if (!word || umemPoolClass_of(word) == umemPoolLargeClass) return false;
  umemPoolShape const *shape = &core->shapes[umemPoolClass_of(word)];
  uint64_t offset = umemPoolSpan_offset(word, adr), index = offset * shape->magic >> 40;
  *start = (uintptr_t)(adr - (offset - index * shape->size));
  return index < shape->count;
}

/* Whether the location of adr still holds: otherwise the span was freed in the meantime, with all
 * its blocks. A wide one may have come back at another page. */
static inline bool umemPoolLocation_holds(umemPoolCore const *core, uintptr_t adr,
                                          umemPoolLocation const *location) {
  if (__atomic_load_n(location->where, __ATOMIC_RELAXED) != location->word) return false;
  unsigned class = umemPoolClass_of(location->word);
  if (!umemPoolClass_is_wide(class)) return true;
  uint64_t offset = umemPoolSpan_offset(location->word, adr);
  unsigned char const *first = umemPoolSpan_of(location->word)->live;
  return offset >> core->shapes[class].shift == (uint64_t)(location->live - first);
}

/* Makes the block at location no longer live. False, with nothing changed, when it was not, or when
 * other threads have freed the span since it was located. */
static inline bool umemPoolBlock_claim(umemPoolCore const *core, uintptr_t adr,
                                       umemPoolLocation const *location) {
  if (!umemPoolSpan_end_life(location->live)) return false;
  if (__builtin_expect(umemPoolLocation_holds(core, adr, location), 1)) return true;
  __atomic_store_n(location->live, 1, __ATOMIC_RELEASE);
  return false;
}

#endif
