/* pool_span.c - cuts spans into small blocks, and knows which of these are free. */
#include "pool/pool_span.h"

#include <stdlib.h>
#include <string.h>

enum { line = 64, slab_size = 4096 };

/* ---- classes ---- */

/* The blocks of a batch: few bytes, but enough blocks to spread the cost of the lock. */
static uint32_t batch_of(uint32_t size) {
  uint32_t const bytes = 32 << 10, least = 2;
  uint32_t batch = bytes / size;
  return batch > umemPoolBatchMost ? umemPoolBatchMost : batch < least ? least : batch;
}

/* Blocks are at least 2^shift bytes apart, so that no two have the same byte. */
static uint32_t shift_of(uint32_t size) {
  uint32_t const most = 7;
  uint32_t shift = 31 - (uint32_t)__builtin_clz(size);
  return shift < most ? shift : most;
}

/* 16, 32, ..., 128, then four to each power of two: a block is at most a quarter larger than the
 * request. A span of one page or of eight pages holds at least eight blocks. */
static umemPoolShape shape_of(unsigned class) {
  uint32_t size =
      class < 8 ? umemPoolGrain * (class + 1) : (5 + (class - 8) % 4) << (5 + (class - 8) / 4);
  uint32_t pages = class < umemPoolFirstWide ? 1 : 8;
  return (umemPoolShape){size,
                         pages * umemPoolPage / size,
                         pages,
                         batch_of(size),
                         ((UINT64_C(1) << 40) + size - 1) / size,
                         shift_of(size)};
}

/* Sizes are rounded up to multiples of the alignment. Blocks of such a size are aligned, because
 * spans are. */
void umemPoolSpan_init_classes(umemPoolCore *core) {
  umemPoolShape *shapes = core->shapes;
  for (unsigned i = 0; i < umemPoolClasses; i++) shapes[i] = shape_of(i);
  unsigned fit = 0;
  for (uint32_t size = 0; size <= umemPoolSmall; size += umemPoolGrain) {
    while (fit < umemPoolClasses && (shapes[fit].size < size || shapes[fit].size % core->alignment))
      fit++;
    core->class_of[size / umemPoolGrain] = (uint8_t)fit;
  }
}

/* ---- descriptors ---- */

/* Of spans of this shape: a multiple of 8. */
static uint32_t room_of(umemPoolShape const *shape) {
  return (shape->pages * umemPoolPage) >> shape->shift;
}

/* Bytes of a descriptor: whole lines of the processor's cache, a few for most spans. */
static size_t descriptor_size(umemPoolShape const *shape) {
  size_t bits = (shape->count + 63) / 64 * sizeof(uint64_t);
  size_t size = sizeof(umemPoolSpan) + room_of(shape) + bits;
  return (size + line - 1) & ~(size_t)(line - 1);
}

static void put_span_away(umemPoolClass *class, umemPoolSpan *span) {
  span->after = class->unused;
  class->unused = span;
}

static bool add_descriptors(umemPoolCore *core, unsigned class) {
  umemPoolShape const *shape = &core->shapes[class];
  size_t size = descriptor_size(shape);
  size_t count = size < slab_size ? (slab_size - line) / size : 1;
  char *slab = umemPoolCore_new_slab(core, count * size);
  if (!slab) return false;
  while (count--) {
    umemPoolSpan *span = (umemPoolSpan *)(void *)(slab + count * size);
    span->room = room_of(shape);
    put_span_away(&core->classes[class], span);
  }
  return true;
}

/* A descriptor with no live block: the bytes of an unused one are 0. NULL without memory. */
static umemPoolSpan *new_descriptor(umemPoolCore *core, unsigned class) {
  umemPoolClass *self = &core->classes[class];
  if (!self->unused && !add_descriptors(core, class)) return NULL;
  umemPoolSpan *span = self->unused;
  self->unused = span->after;
  return span;
}

/* ---- the lists of a class ---- */

/* The list that a span with free blocks is in. */
static umemPoolSpan **list_of(umemPoolCore *core, unsigned class, umemPoolSpan const *span) {
  return span->list ? &span->list->classes[class].spans : &core->classes[class].mixed;
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

void umemPoolSpan_detach(umemPoolCore *core, umemPoolSpan *span) {
  unlink_span(core, class_of(core, span), span);
  span->list = NULL;
  span->queues = 0;
}

static void free_all_bits(umemPoolSpan *span, uint32_t count) {
  uint64_t *bits = umemPoolSpan_bits(span);
  memset(bits, 0xFF, count / 64 * sizeof *bits);
  if (count % 64) bits[count / 64] = (UINT64_C(1) << count % 64) - 1;
}

umemPoolResult umemPoolSpan_add(umemPoolFreeList *list, unsigned class) {
  umemPoolCore *core = list->core;
  umemPoolShape const *shape = &core->shapes[class];
  uintptr_t adr;
  if (!umemPoolRange_take(list, umemPoolUnits_of((size_t)shape->pages << umemPageShift),
                          umemPoolPage, &adr))
    return umemPoolNoneFree;
  uint64_t page = (uint64_t)adr >> umemPageShift;
  umemPoolSpan *span = NULL;
  if (umemPageMap_prepare(&core->map, page, shape->pages)) span = new_descriptor(core, class);
  if (!span) {
    umemPoolRange_free(list, list, adr);
    return umemPoolNoRam;
  }
  free_all_bits(span, shape->count);
  span->free_count = shape->count;
  span->list = span->home = list;
  span->time = list->mark.is_old ? umemPoolMark_now(list) : 0;
  __atomic_store_n(&span->page, page, __ATOMIC_RELEASE);
  umemPageMap_set(&core->map, page, shape->pages, (uintptr_t)span | class);
  link_span(core, class, span);
  return umemPoolFound;
}

/* Frees the range of a span whose blocks are all free. Without RAM for the record the span
 * is kept, for another try. */
static void remove_span(umemPoolFreeList *list, unsigned class, umemPoolSpan *span) {
  umemPoolCore *core = list->core;
  uint64_t page = span->page;
  if (!umemPoolRange_free(list, span->home, (uintptr_t)(page << umemPageShift))) {
    list->has_whole = true;
    return;
  }
  umemPoolChunk_note_freed(core, (uintptr_t)(page << umemPageShift),
                           core->shapes[class].pages * (umemPoolPage / umemPoolUnit));
  unlink_span(core, class, span);
  umemPageMap_set(&core->map, page, core->shapes[class].pages, 0);
  put_span_away(&core->classes[class], span);
}

void umemPoolSpan_remove_whole(umemPoolFreeList *list) {
  if (!list->has_whole) return;
  list->has_whole = false;
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolSpan *span = list->classes[i].spans, *after; span; span = after) {
      after = span->after;
      if (span->free_count == list->core->shapes[i].count) remove_span(list, i, span);
    }
}

void umemPoolSpan_note(umemPoolFreeList *list, umemPoolSpan *span) {
  umemPoolShape const *shape = &list->core->shapes[class_of(list->core, span)];
  span->time = umemPoolMark_now(list);
  umemPoolMark_note_bytes(list, (uint64_t)span->free_count * shape->size);
}

/* A queue that has freed a block to a detached span may have ended since. The pool's own list is
 * ordered after it then. */
void umemPoolSpan_attach(umemPoolFreeList *list, umemPoolSpan *span) {
  umemPoolCore *core = list->core;
  unsigned class = class_of(core, span);
  if (span->queues)
    span->queues |= umemPoolQueue_bit(list) | umemPoolQueue_bit(core->own);
  else
    span->list = list;
  link_span(core, class, span);
  if (span->list && span->free_count == core->shapes[class].count) remove_span(list, class, span);
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
      uint32_t offset = (word * 64 + (uint32_t)__builtin_ctzll(bits[word])) * shape->size;
      entries[taken++] = (umemPoolEntry){base + offset, &span->live[offset >> shape->shift]};
    }
  span->free_count -= taken;
  return taken;
}

static void reverse_entries(umemPoolEntry *entries, uint32_t count) {
  for (uint32_t i = 0; i < count / 2; i++) {
    umemPoolEntry entry = entries[i];
    entries[i] = entries[count - 1 - i];
    entries[count - 1 - i] = entry;
  }
}

uint32_t umemPoolSpan_take(umemPoolFreeList *list, unsigned class, umemPoolEntry *entries,
                           uint32_t count) {
  umemPoolCore *core = list->core;
  umemPoolShape const *shape = &core->shapes[class];
  uint32_t taken = 0;
  for (umemPoolSpan *span; taken < count && (span = list->classes[class].spans);) {
    taken += take_from(shape, span, entries + taken, count - taken);
    if (!span->free_count) unlink_span(core, class, span);
  }
  reverse_entries(entries, taken);
  core->classes[class].out += taken;
  core->small_out += (uint64_t)taken * shape->size;
  umemPoolCore_note_peak(core);
  return taken;
}

/* Blocks of the span are free for other lists than this one: from now on each taker waits first. */
static void mix_span(umemPoolFreeList *list, unsigned class, umemPoolSpan *span) {
  if (span->list) {
    unlink_span(list->core, class, span);
    span->queues = umemPoolQueue_bit(span->list);
    span->list = NULL;
    link_span(list->core, class, span);
  }
  span->queues |= umemPoolQueue_bit(list);
}

static void put_entry(umemPoolFreeList *list, umemPoolEntry const *entry) {
  umemPoolCore *core = list->core;
  uintptr_t word = umemPageMap_find(&core->map, entry->adr);
  umemPoolSpan *span = umemPoolSpan_of(word);
  unsigned class = umemPoolClass_of(word);
  umemPoolShape const *shape = &core->shapes[class];
  uint64_t index = (entry->adr - (span->page << umemPageShift)) * shape->magic >> 40;
  umemPoolSpan_bits(span)[index / 64] |= UINT64_C(1) << index % 64;
  core->classes[class].out--;
  core->small_out -= shape->size;
  span->time = umemPoolMark_now(list);
  umemPoolMark_note_bytes(list, shape->size);
  if (!span->free_count++) {
    span->list = list;
    link_span(core, class, span);
  } else if (span->list != list) {
    mix_span(list, class, span);
  }
  if (span->list && span->free_count == shape->count) remove_span(list, class, span);
}

void umemPoolSpan_put(umemPoolFreeList *list, umemPoolEntry const *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) put_entry(list, &entries[i]);
}
