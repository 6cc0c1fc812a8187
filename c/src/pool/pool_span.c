/* pool_span.c - spans of small blocks of one class. See umem_pool.h. */
#include "pool/pool.h"

#include <stdlib.h>
#include <string.h>

enum { line = 64, slab_size = 4096 };

/* ---- classes ---- */

/* The blocks that a thread moves at once: few bytes, but enough to make the lock cheap. */
static uint32_t batch_of(uint32_t size) {
  uint32_t const bytes = 32 << 10, least = 2;
  uint32_t batch = bytes / size;
  return batch > umemPoolBatchMost ? (uint32_t)umemPoolBatchMost : batch < least ? least : batch;
}

/* 16, 32, ..., 128, then four to each power of two: a block is at most a quarter larger than asked for.
 * Spans of a page hold eight blocks at least, those of eight pages likewise. */
static umemPoolShape shape_of(unsigned class) {
  uint32_t size =
      class < 8 ? umemPoolGrain * (class + 1) : (5 + (class - 8) % 4) << (5 + (class - 8) / 4);
  uint32_t pages = class < umemPoolFirstWide ? 1 : 8;
  return (umemPoolShape){size, pages * umemPoolPage / size, pages, batch_of(size),
                         ((UINT64_C(1) << 40) + size - 1) / size};
}

/* Sizes are rounded up to multiples of the alignment, and blocks of such a size are aligned in a span,
 * which is. */
void umemPool_init_classes(umemPoolCore *core) {
  umemPoolShape *shapes = core->shapes;
  for (unsigned i = 0; i < umemPoolClasses; i++) shapes[i] = shape_of(i);
  shapes[umemPoolLargeClass].pages = 1; /* and no block: what is large is located in no span */
  unsigned fit = 0;
  for (uint32_t size = 0; size <= umemPoolSmall; size += umemPoolGrain) {
    while (fit < umemPoolClasses && (shapes[fit].size < size || shapes[fit].size % core->alignment))
      fit++;
    core->class_of[size / umemPoolGrain] = (uint8_t)fit;
  }
}

/* ---- descriptors ---- */

struct umemPoolSlab {
  struct umemPoolSlab *next;
};

void *umemPool_new_slab(umemPoolCore *core, size_t size) {
  umemPoolSlab *slab = aligned_alloc(line, line + size);
  if (!slab) return NULL;
  memset(slab, 0, line + size);
  slab->next = core->slabs;
  core->slabs = slab;
  return (char *)slab + line;
}

/* Bytes of a descriptor: whole lines of the processor's cache, of which those of most spans are few. */
static size_t descriptor_size(uint32_t room) {
  size_t size = sizeof(umemPoolSpan) + room + (room + 63) / 64 * sizeof(uint64_t);
  return (size + line - 1) & ~(size_t)(line - 1);
}

static void put_away(umemPoolClass *class, umemPoolSpan *span) {
  span->after = class->unused;
  class->unused = span;
}

static bool add_descriptors(umemPoolCore *core, unsigned class) {
  uint32_t room = (core->shapes[class].count + 7) & ~(uint32_t)7;
  size_t size = descriptor_size(room);
  size_t count = size < slab_size ? (slab_size - line) / size : 1;
  char *slab = umemPool_new_slab(core, count * size);
  if (!slab) return false;
  while (count--) {
    umemPoolSpan *span = (umemPoolSpan *)(void *)(slab + count * size);
    span->room = room;
    put_away(&core->classes[class], span);
  }
  return true;
}

/* A descriptor with no live block: whoever has put it away has left all bytes 0. NULL without memory. */
static umemPoolSpan *new_descriptor(umemPoolCore *core, unsigned class) {
  umemPoolClass *self = &core->classes[class];
  if (!self->unused && !add_descriptors(core, class)) return NULL;
  umemPoolSpan *span = self->unused;
  self->unused = span->after;
  return span;
}

void umemPool_end_spans(umemPoolCore *core) {
  while (core->slabs) {
    umemPoolSlab *slab = core->slabs;
    core->slabs = slab->next;
    free(slab);
  }
}

/* ---- the lists of a class ---- */

/* Where a span with free blocks is. */
static umemPoolSpan **list_of(umemPoolCore *core, unsigned class, umemPoolSpan const *span) {
  return span->lane ? &span->lane->shelves[class].spans : &core->classes[class].mixed;
}

static void link_span(umemPoolCore *core, unsigned class, umemPoolSpan *span) {
  umemPoolSpan **list = list_of(core, class, span);
  span->before = NULL;
  span->after = *list;
  if (*list) (*list)->before = span;
  *list = span;
}

static void unlink_span(umemPoolCore *core, unsigned class, umemPoolSpan *span) {
  if (span->before)
    span->before->after = span->after;
  else
    *list_of(core, class, span) = span->after;
  if (span->after) span->after->before = span->before;
}

static unsigned class_of(umemPoolCore *core, umemPoolSpan const *span) {
  uintptr_t adr = (uintptr_t)(span->page << umemPageShift);
  return umemPoolClass_of(umemPageMap_find(&core->map, adr));
}

void umemPool_lift_span(umemPoolCore *core, umemPoolSpan *span) {
  unlink_span(core, class_of(core, span), span);
  span->lane = NULL;
  span->orders = 0;
}

static void free_all_bits(umemPoolSpan *span, uint32_t count) {
  uint64_t *bits = umemPoolSpan_bits(span);
  memset(bits, 0xFF, count / 64 * sizeof *bits);
  if (count % 64) bits[count / 64] = (UINT64_C(1) << count % 64) - 1;
}

bool umemPool_add_span(umemPoolLane *lane, unsigned class, umemPoolGrowth growth,
                       umemPoolLack *lack) {
  umemPoolCore *core = lane->core;
  umemPoolShape const *shape = &core->shapes[class];
  size_t size = (size_t)shape->pages << umemPageShift;
  uintptr_t adr;
  if (!umemPool_reserve(lane, size, umemPoolPage, growth, &adr, lack)) return false;
  uint64_t page = (uint64_t)adr >> umemPageShift;
  umemPoolSpan *span = NULL;
  if (umemPageMap_prepare(&core->map, page, shape->pages)) span = new_descriptor(core, class);
  if (!span) {
    lack->why = umemPoolBooks;
    umemPool_unreserve(lane, lane, adr);
    return false;
  }
  free_all_bits(span, shape->count);
  span->free_count = shape->count;
  span->lane = span->home = lane;
  __atomic_store_n(&span->page, page, __ATOMIC_RELEASE);
  umemPageMap_set(&core->map, page, shape->pages, (uintptr_t)span | class);
  link_span(core, class, span);
  return true;
}

/* Gives a span back to its lane whose blocks are all free. Without memory for the books it stays as it
 * is, for another try. */
static void remove_span(umemPoolLane *lane, unsigned class, umemPoolSpan *span) {
  umemPoolCore *core = lane->core;
  uint64_t page = span->page;
  if (!umemPool_unreserve(lane, span->home, (uintptr_t)(page << umemPageShift))) {
    lane->has_whole = true;
    return;
  }
  unlink_span(core, class, span);
  umemPageMap_set(&core->map, page, core->shapes[class].pages, 0);
  put_away(&core->classes[class], span);
}

void umemPool_remove_whole(umemPoolLane *lane) {
  if (!lane->has_whole) return;
  lane->has_whole = false;
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolSpan *span = lane->shelves[i].spans, *after; span; span = after) {
      after = span->after;
      if (span->free_count == lane->core->shapes[i].count) remove_span(lane, i, span);
    }
}

/* Who has freed a block to a lifted span may have ended since: then the pool's own lane is ordered after
 * it. */
void umemPool_lay_span(umemPoolLane *lane, umemPoolSpan *span) {
  umemPoolCore *core = lane->core;
  unsigned class = class_of(core, span);
  if (span->orders)
    span->orders |= umemPoolLane_bit(lane) | umemPoolLane_bit(core->own);
  else
    span->lane = lane;
  link_span(core, class, span);
  if (span->lane && span->free_count == core->shapes[class].count) remove_span(lane, class, span);
}

/* ---- blocks ---- */

/* Takes up to count blocks of one span, in rising order. */
static uint32_t take_from(umemPoolShape const *shape, umemPoolSpan *span, umemPoolEntry *entries,
                          uint32_t count) {
  uintptr_t base = (uintptr_t)(span->page << umemPageShift);
  uint64_t *bits = umemPoolSpan_bits(span);
  uint32_t taken = 0;
  if (count > span->free_count) count = span->free_count;
  for (uint32_t word = 0; taken < count; word++)
    for (; bits[word] && taken < count; bits[word] &= bits[word] - 1) {
      uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bits[word]);
      entries[taken++] = (umemPoolEntry){base + (uintptr_t)index * shape->size, &span->live[index]};
    }
  span->free_count -= taken;
  return taken;
}

static void reverse(umemPoolEntry *entries, uint32_t count) {
  for (uint32_t i = 0; i < count / 2; i++) {
    umemPoolEntry entry = entries[i];
    entries[i] = entries[count - 1 - i];
    entries[count - 1 - i] = entry;
  }
}

uint32_t umemPool_take(umemPoolLane *lane, unsigned class, umemPoolEntry *entries, uint32_t count) {
  umemPoolCore *core = lane->core;
  umemPoolShape const *shape = &core->shapes[class];
  uint32_t taken = 0;
  for (umemPoolSpan *span; taken < count && (span = lane->shelves[class].spans);) {
    taken += take_from(shape, span, entries + taken, count - taken);
    if (!span->free_count) unlink_span(core, class, span);
  }
  reverse(entries, taken);
  core->classes[class].out += taken;
  core->small_out += (uint64_t)taken * shape->size;
  umemPool_note_peak(core);
  return taken;
}

/* Blocks of the span are free for others than lane: from now on nobody takes any without waiting. */
static void mix(umemPoolLane *lane, unsigned class, umemPoolSpan *span) {
  if (span->lane) {
    unlink_span(lane->core, class, span);
    span->orders = umemPoolLane_bit(span->lane);
    span->lane = NULL;
    link_span(lane->core, class, span);
  }
  span->orders |= umemPoolLane_bit(lane);
}

static void put_one(umemPoolLane *lane, umemPoolEntry const *entry) {
  umemPoolCore *core = lane->core;
  uintptr_t word = umemPageMap_find(&core->map, entry->adr);
  umemPoolSpan *span = umemPoolSpan_of(word);
  unsigned class = umemPoolClass_of(word);
  umemPoolShape const *shape = &core->shapes[class];
  uint32_t index = (uint32_t)(entry->live - span->live);
  umemPoolSpan_bits(span)[index / 64] |= UINT64_C(1) << index % 64;
  core->classes[class].out--;
  core->small_out -= shape->size;
  if (!span->free_count++) {
    span->lane = lane;
    link_span(core, class, span);
  } else if (span->lane != lane) {
    mix(lane, class, span);
  }
  if (span->lane && span->free_count == shape->count) remove_span(lane, class, span);
}

void umemPool_put(umemPoolLane *lane, umemPoolEntry const *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) put_one(lane, &entries[i]);
}
