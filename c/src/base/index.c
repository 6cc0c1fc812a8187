/* index.c - a trie over the starts of spans.
 *
 * A reference is 32 bits: 0 is none; with LEAF set the rest is the number of a span; else the
 * level of a node in four bits and its number in 27. A node of level l has a child for each
 * value of digit l of the keys below it, which agree in all higher digits. Digit 0 is the
 * lowest. */
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

#define LEAF (UINT32_C(1) << 31)
#define NODE_BITS 27
#define NODE_MASK ((UINT32_C(1) << NODE_BITS) - 1)
#define DIGIT_BITS 4
#define DIGITS 16

/* How many slots the first memory holds, slot 0 among them. */
#define FIRST_CAPACITY (UMEM_INDEX_RESERVE + 1)

/* ---- references and keys ---- */

static inline bool is_node(uint32_t ref) { return ref && !(ref & LEAF); }
static inline unsigned level_of(uint32_t ref) { return ref >> NODE_BITS; }

static inline umemIndexNode *node_of(umemIndex const *index, uint32_t ref) {
  return &index->nodes[ref & NODE_MASK];
}

static inline unsigned digit(uint64_t key, unsigned level) {
  return (unsigned)(key >> (level * DIGIT_BITS)) & (DIGITS - 1);
}

static inline uint64_t key_of(umemIndex const *index, uint32_t span) {
  return index->spans[span].start >> index->shift;
}

/* The highest digit in which two different keys differ. */
static inline unsigned parting(uint64_t one, uint64_t other) {
  return (unsigned)(63 - __builtin_clzll(one ^ other)) / DIGIT_BITS;
}

/* ---- slots ---- */

/* Returns array with room for count more items: where it was, or moved; NULL without memory, and
 * then nothing has changed. */
static void *slots_reserve(umemIndexSlots *slots, void *array, size_t item_size, uint32_t count) {
  if (slots->available >= count) return array;
  uint32_t capacity = slots->capacity ? 2 * slots->capacity : FIRST_CAPACITY;
  if (capacity > UMEM_INDEX_LIMIT || capacity > SIZE_MAX / item_size) return NULL;
  void *grown = realloc(array, capacity * item_size);
  if (!grown) return NULL;
  slots->available += capacity - slots->capacity;
  slots->capacity = capacity;
  return grown;
}

static uint32_t take_span(umemIndex *index) {
  umemIndexSlots *slots = &index->span_slots;
  uint32_t number = slots->returned;
  if (number)
    slots->returned = index->spans[number].after;
  else
    number = slots->used++;
  --slots->available;
  return number;
}

static void return_span(umemIndex *index, uint32_t number) {
  index->spans[number].after = index->span_slots.returned;
  index->span_slots.returned = number;
  ++index->span_slots.available;
}

static uint32_t take_node(umemIndex *index) {
  umemIndexSlots *slots = &index->node_slots;
  uint32_t number = slots->returned;
  if (number)
    slots->returned = index->nodes[number].child[0];
  else
    number = slots->used++;
  --slots->available;
  memset(&index->nodes[number], 0, sizeof index->nodes[number]);
  return number;
}

static void return_node(umemIndex *index, uint32_t number) {
  index->nodes[number].child[0] = index->node_slots.returned;
  index->node_slots.returned = number;
  ++index->node_slots.available;
}

bool umemIndex_reserve(umemIndex *index, uint32_t count) {
  umemSpan *spans = slots_reserve(&index->span_slots, index->spans, sizeof *spans, count);
  if (!spans) return false;
  index->spans = spans;
  umemIndexNode *nodes = slots_reserve(&index->node_slots, index->nodes, sizeof *nodes, count);
  if (!nodes) return false;
  index->nodes = nodes;
  return true;
}

/* ---- the trie ---- */

static void trie_insert(umemIndex *index, uint32_t span) {
  umemSpan const *self = &index->spans[span];
  uint64_t key = key_of(index, span);
  if (!self->before && !self->after) {
    index->root = LEAF | span;
    return;
  }
  /* No key shares more leading digits with this one than one of its two neighbours. */
  uint64_t near = key_of(index, self->before ? self->before : self->after);
  unsigned level = parting(key, near);
  if (self->before && self->after && parting(key, key_of(index, self->after)) < level) {
    near = key_of(index, self->after);
    level = parting(key, near);
  }
  uint32_t *ref = &index->root;
  while (is_node(*ref) && level_of(*ref) > level)
    ref = &node_of(index, *ref)->child[digit(key, level_of(*ref))];
  if (!is_node(*ref) || level_of(*ref) < level) {
    uint32_t number = take_node(index);
    index->nodes[number].child[digit(near, level)] = *ref;
    *ref = level << NODE_BITS | number;
  }
  node_of(index, *ref)->child[digit(key, level)] = LEAF | span;
}

/* The only child of node, or 0 when it has more. */
static uint32_t only_child(umemIndexNode const *node) {
  uint32_t only = 0;
  for (unsigned i = 0; i < DIGITS; ++i) {
    if (!node->child[i]) continue;
    if (only) return 0;
    only = node->child[i];
  }
  return only;
}

static void trie_erase(umemIndex *index, uint64_t key) {
  uint32_t *ref = &index->root, *parent = NULL;
  while (is_node(*ref)) {
    parent = ref;
    ref = &node_of(index, *ref)->child[digit(key, level_of(*ref))];
  }
  *ref = 0;
  if (!parent) return;
  uint32_t only = only_child(node_of(index, *parent));
  if (!only) return;
  return_node(index, *parent & NODE_MASK);
  *parent = only;
}

/* The lowest span below ref, or the highest. */
static uint32_t lowest(umemIndex const *index, uint32_t ref) {
  while (is_node(ref)) {
    uint32_t const *child = node_of(index, ref)->child;
    while (!*child) ++child;
    ref = *child;
  }
  return ref & ~LEAF;
}

static uint32_t highest(umemIndex const *index, uint32_t ref) {
  while (is_node(ref)) {
    uint32_t const *child = node_of(index, ref)->child + DIGITS - 1;
    while (!*child) --child;
    ref = *child;
  }
  return ref & ~LEAF;
}

/* The highest of the children whose digit is below bound; 0 when there is none. */
static uint32_t child_below(umemIndexNode const *node, unsigned bound) {
  while (bound-- > 0)
    if (node->child[bound]) return node->child[bound];
  return 0;
}

/* A span that shares at least as many leading digits with key as any other does: mostly the one
 * that holds key. 0 when there is no span at all. */
static uint32_t similar(umemIndex const *index, uint64_t key) {
  uint32_t ref = index->root;
  while (is_node(ref)) {
    umemIndexNode const *node = node_of(index, ref);
    uint32_t next = node->child[digit(key, level_of(ref))];
    if (!next) {
      uint32_t below = child_below(node, digit(key, level_of(ref)));
      return below ? highest(index, below) : lowest(index, ref);
    }
    ref = next;
  }
  return ref & ~LEAF;
}

/* ---- the index ---- */

bool umemIndex_init(umemIndex *index, unsigned shift) {
  *index = (umemIndex){.shift = shift, .span_slots.used = 1, .node_slots.used = 1};
  if (!umemIndex_reserve(index, UMEM_INDEX_RESERVE)) {
    umemIndex_fini(index);
    return false;
  }
  /* Slot 0 counts as capacity, but cannot be given out. */
  --index->span_slots.available;
  --index->node_slots.available;
  index->spans[0] = (umemSpan){.live = true};
  return true;
}

void umemIndex_fini(umemIndex *index) {
  free(index->spans);
  free(index->nodes);
}

uint32_t umemIndex_insert(umemIndex *index, uint32_t before, uint64_t start) {
  uint32_t span = take_span(index);
  umemSpan *spans = index->spans;
  uint32_t after = spans[before].after;
  spans[span] = (umemSpan){.start = start, .before = before, .after = after};
  spans[before].after = span;
  spans[after].before = span;
  trie_insert(index, span);
  return span;
}

void umemIndex_erase(umemIndex *index, uint32_t span) {
  umemSpan *spans = index->spans;
  trie_erase(index, key_of(index, span));
  spans[spans[span].before].after = spans[span].after;
  spans[spans[span].after].before = spans[span].before;
  return_span(index, span);
}

uint32_t umemIndex_exact(umemIndex const *index, uint64_t start) {
  uint64_t key = start >> index->shift;
  uint32_t ref = index->root;
  while (is_node(ref)) ref = node_of(index, ref)->child[digit(key, level_of(ref))];
  uint32_t span = ref & ~LEAF;
  return span && index->spans[span].start == start ? span : 0;
}

uint32_t umemIndex_floor(umemIndex const *index, uint64_t at) {
  uint64_t key = at >> index->shift;
  uint32_t span = similar(index, key);
  if (!span || at - index->spans[span].start < index->spans[span].size) return span;
  uint64_t near = key_of(index, span);
  if (near == key) return span;
  unsigned level = parting(key, near);
  uint32_t ref = index->root;
  while (is_node(ref) && level_of(ref) > level)
    ref = node_of(index, ref)->child[digit(key, level_of(ref))];
  /* All spans below ref agree with key above the digit level, and none agrees with it there. */
  uint32_t below = 0;
  if (is_node(ref) && level_of(ref) == level)
    below = child_below(node_of(index, ref), digit(key, level));
  else if (near < key)
    below = ref;
  return below ? highest(index, below) : index->spans[lowest(index, ref)].before;
}
