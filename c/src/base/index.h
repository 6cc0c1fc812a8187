/* index.h - ranges in order of address: those of a umemRange, and the blocks of umemRecords.
 *
 * Each range has a descriptor, a umemSpan, in an array that grows. A span is named by its number
 * there, which is the same after the array moves. Number 0 stands for "none" and closes the ring of
 * neighbours.
 *
 * Spans are found by their start in a trie over start / granule: 16 children for each node, and
 * nodes only where keys part (path compression: D. R. Morrison, "PATRICIA", J. ACM 15, 1968). A
 * node is 64 bytes of children and nothing else. Its level stands in the reference to it;
 * prefixes are not stored, because the keys can be read in the spans. The cost of all calls is
 * bounded by the 16 hexadecimal digits of a key; n spans need at most n - 1 nodes, for random
 * starts about n / ln 16. */
#ifndef UMEM_INDEX_H
#define UMEM_INDEX_H

#include <stdbool.h>
#include <stdint.h>

/* No index holds more spans; beyond it memory is short. */
#define UMEM_INDEX_LIMIT (UINT32_C(1) << 27)

/* The most spans that are reserved at once, above those that are reserved already. */
#define UMEM_INDEX_RESERVE 15

/* The descriptor of a range. 32 bytes. */
typedef struct umemSpan {
  uint64_t start;
  uint64_t size;            /* live: as requested. free: all of it */
  uint32_t before, after;   /* its neighbours by address; 0 at the ends */
  uint32_t list_before;     /* its neighbours in a list of free spans; 0 at the ends */
  uint32_t list_after : 27; /* (as wide as the flags allow; numbers are below UMEM_INDEX_LIMIT) */
  uint32_t live : 1;
  uint32_t separate : 1;   /* of numbers for umemRange_alloc_separate */
  uint32_t held : 1;       /* of a live one: it is no block of the owner */
  uint32_t wall_below : 1; /* never joined with the span before it */
  uint32_t wall_above : 1; /* never joined with the span after it */
} umemSpan;

typedef struct umemIndexNode {
  uint32_t child[16]; /* references by digit; 0 where no key has that digit */
} umemIndexNode;

/* Slots of an array: in use, or in a list of those given back. Slot 0 is never given out. */
typedef struct umemIndexSlots {
  uint32_t capacity;
  uint32_t used;      /* slots at and above were never given out */
  uint32_t returned;  /* the first of those given back; each holds the number of the next */
  uint32_t available; /* that can be given out without more memory */
} umemIndexSlots;

typedef struct umemIndex {
  umemSpan *spans; /* owned. spans[0].after is the first by address, spans[0].before the last */
  umemIndexNode *nodes; /* owned */
  umemIndexSlots span_slots, node_slots;
  uint32_t root;  /* reference */
  unsigned shift; /* the granule is 1 << shift */
} umemIndex;

/* Makes *index empty. Returns false, with nothing to release, without memory. */
bool umemIndex_init(umemIndex *index, unsigned shift);
void umemIndex_fini(umemIndex *index);

/* Reserves room for count spans: at most UMEM_INDEX_RESERVE more than are reserved and not
 * inserted yet. This function alone makes pointers to spans invalid. Returns false, with nothing
 * changed, without memory. */
bool umemIndex_reserve(umemIndex *index, uint32_t count);

/* Inserts a span that begins at start, between the span before (0: none) and the one after that,
 * and returns its number. Its size, list and flags are 0. Room for it must have been reserved. */
uint32_t umemIndex_insert(umemIndex *index, uint32_t before, uint64_t start);

/* Removes span, whose number may be given out again. */
void umemIndex_erase(umemIndex *index, uint32_t span);

/* Returns the span that begins at start, or 0. */
uint32_t umemIndex_exact(umemIndex const *index, uint64_t start);

/* Returns the last span that begins at or before at, or 0. */
uint32_t umemIndex_floor(umemIndex const *index, uint64_t at);

#endif
