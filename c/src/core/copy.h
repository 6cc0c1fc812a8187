/* copy.h - copies: who moves the bytes of a run, copies of items with strides and of lists of runs,
 * and whether the two sides of a copy have bytes in common. */
#ifndef UMEM_CORE_COPY_H
#define UMEM_CORE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <umem/copy.h>
#include <umem/virtual.h>

#include "core/context.h"

/* ==== runs: bytes without gaps, and who moves those of a copy; plan.c ==== */

/* Lets the source, or else the destination, copy the layout alone, if it plans that (plan_copy and
 * copy_direct in virtual.h). Returns true if one of them has done so, or has recorded a failure.
 * Returns false, with nothing touched or recorded, if neither does. */
bool umem_copy_direct(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout);

/* Copies a validated run of nbytes > 0 by the best route. */
void umem_copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                   size_t nbytes);

/* Copies a validated run of nbytes > 0 in chunks through a buffer in host memory, by the methods
 * copy_to and copy_from. For two sides of which the CPU can address neither: also for a method
 * copy_direct that finds only when it copies that its own way is closed. */
void umem_copy_buffered(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        size_t nbytes);

/* ---- many runs: many.c ---- */

/* Copies validated runs, of which none has a byte of the target of another one or of its own, from
 * src to dst in any order. Sets their states. After a failure, which is recorded, one of them is
 * umemRunFailed, unless the context that copies them cannot say which. */
void umem_copy_runs(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count);

static inline void umem_set_runs_done(umemCopyRun *runs, size_t count) {
  for (size_t i = 0; i < count; i++) runs[i].state = umemRunDone;
}

/* Starts to read runs of src that are copied soon. Advice only. */
typedef void umemAhead(umemVirtual *src, umemCopyRun const *runs, size_t count);

/* As umem_copy_runs, one run after the other, by several threads where that is faster. Each calls
 * ahead, if it is not NULL, before it copies the part that it has taken before. */
void umem_copy_each_run(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count,
                        umemAhead *ahead);

/* ---- the two ends of a copy through host memory ---- */

/* Returns the genuine umemHost for a copy between src and dst: dst itself if it is one, so that
 * its failures are its own, else the one that src or dst was given. Returns NULL, and records a
 * status, if there is none. */
umemVirtual *umem_host_between(umemVirtual *src, umemVirtual *dst);

/* Reads from src to, or writes to dst from, the pointer buffer; host is a umem_host_between. */
void umem_read_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n);
void umem_write_run(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n);

/* umem_read_run and umem_write_run as a step of a copy whose other end is a buffer of umem. */
void umem_fill_buffer(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer,
                      size_t n);
void umem_empty_buffer(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                       size_t n);

/* ==== overlap ==== */

/* Items of one size, the first of which is at adr. There is at least one, and umem_span_of finds
 * their span. */
typedef struct umemItems {
  uintptr_t adr;
  size_t item_size;
  int rank;
  size_t const *extents;
  ptrdiff_t const *strides;
} umemItems;

/* Whether an item of one has a byte of an item of the other. Also true where it would take too
 * long to find out: layouts whose strides are no multiples of each other, in several dimensions. */
bool umem_items_meet(umemItems const *one, umemItems const *other);

/* Whether both contexts have the same bytes at the same addresses. Where they have one storage
 * at other addresses, such as a file and a mapping of it, changes both addresses to numbers of
 * bytes in that. */
bool umem_share_bytes(umemVirtual *src, uintptr_t *src_adr, umemVirtual *dst, uintptr_t *dst_adr);

/* In which order the items of a copy can be moved, so that none is overwritten before it is
 * read. */
typedef enum umemOverlap {
  umemOverlapNone,  /* in any order */
  umemOverlapShift, /* by their addresses: falling, where they move to higher ones, else rising */
  umemOverlapAll    /* in none: all must be read first */
} umemOverlap;

/* layout is in normal form. */
umemOverlap umem_overlap(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                         umemLayout const *layout);

/* False only if umem_overlap is umemOverlapNone for n bytes. */
static inline bool umem_may_overlap(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                                    uintptr_t dst_adr, size_t n) {
  uint32_t const aliased = umemOffsets | umemFaultable; /* a file may have several contexts */
  bool near = src_adr < dst_adr + n && dst_adr < src_adr + n;
  return __builtin_expect(near || ((src->capabilities & aliased) && (dst->capabilities & aliased)),
                          0);
}

/* ==== items: copy.c and items.c ==== */

/* The bytes of both sides from the first that belongs to an item up to the last one. */
typedef struct umemRanges {
  uintptr_t src, dst;
  size_t src_bytes, dst_bytes;
} umemRanges;

/* Whether the items of layout can be copied; false with a status otherwise. Fills in *ranges;
 * src_bytes is 0 if there are no items. */
bool umem_check_strided(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        umemLayout const *layout, umemRanges *ranges);

/* Copies the items of a layout that was checked. */
void umem_copy_layout(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout, umemRanges const *ranges);

/* umem_copy_run for sides of which umem_may_overlap knows nothing better. */
void umem_copy_bytes_over(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                          size_t nbytes);

/* Copies a validated run of nbytes > 0, also over itself. */
static inline __attribute__((always_inline)) void
umem_copy_any_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                  size_t nbytes) {
  if (umem_may_overlap(src, src_adr, dst, dst_adr, nbytes))
    umem_copy_bytes_over(src, src_adr, dst, dst_adr, nbytes);
  else
    umem_copy_run(src, src_adr, dst, dst_adr, nbytes);
}

/* Copies a validated layout of rank > 0 in normal form that neither side copies directly. */
void umem_copy_items(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                     umemLayout const *layout);

/* ==== lists of copies: checked and joined to runs by list.c, sorted by list_keys.c, copied by
 * many.c ==== */

enum {
  umemListShort = 32, /* items: a list of no more takes no memory of the heap */
  umemListFew = 8,    /* entries: a table of no more is searched from the beginning */
  umemListWords = 4
};

typedef struct umemListSpan {
  uint64_t low, high; /* high 0: it has no byte */
} umemListSpan;

/* The runs with the same two contexts, or the items with bytes in one memory. */
typedef struct umemListEntry {
  uint64_t key[umemListWords];
  umemListSpan targets, sources; /* of a memory: what they span */
  uint32_t same;                 /* of a memory: the entry that stands for it */
} umemListEntry;

/* Numbers keys from 0 on. */
typedef struct umemListTable {
  size_t count, room;
  umemListEntry *heap; /* owned; NULL: the entries are in few */
  uint32_t *cells;     /* owned; a hash table of numbers + 1, at most half full */
  size_t capacity;     /* of cells */
  uint32_t last;       /* the entry that was found last */
  umemListEntry few[umemListFew];
} umemListTable;

/* An item in the order of its group: a memory, or a pair of contexts. */
typedef struct umemListKey {
  uint64_t first; /* address or offset */
  uint32_t group, item;
} umemListKey;

typedef struct umemListPair {
  umemVirtual *src, *dst;
  bool overlaps; /* each item with itself */
} umemListPair;

typedef struct umemList {
  umemCopyItem const *items; /* borrowed */
  size_t count;
  uint8_t *done;     /* borrowed; the bits of items that are copied; or NULL */
  size_t failed;     /* the item; count where none has failed */
  uint64_t nbytes;   /* of all items */
  umemListKey *keys; /* 2 * count, as is room: a target may be in two memories */
  umemListKey *room;
  umemListKey *sorted; /* keys or room: items with bytes, in the order of runs; NULL: all items */
  bool unsorted;       /* not in the order of the file that is read */
  umemCopyRun *runs;
  size_t run_count;
  uint32_t *begins; /* of each run, in sorted, and the end of the last one */
  umemListTable pairs;
  uint64_t until; /* when a piece ends, by CLOCK_MONOTONIC; 0: its bytes say that */
  size_t at;      /* the first run that is not copied */
  size_t skipped; /* bytes of it that are */
  size_t marked;  /* of its items, in sorted: the first that is not known to be done */
  size_t before;  /* bytes of the run before that item */
  struct {
    umemListKey keys[2 * umemListShort], room[2 * umemListShort];
    umemCopyRun runs[umemListShort];
    uint32_t begins[umemListShort + 1];
  } small;
} umemList;

/* The number of an item in the list, and of the pair of a run. */
static inline uint32_t umemList_item(umemList const *list, size_t i) {
  return list->sorted ? list->sorted[i].item : (uint32_t)i;
}
static inline uint32_t umemList_group(umemList const *list, size_t run) {
  return list->sorted ? list->sorted[list->begins[run]].group : 0;
}

/* ---- list_keys.c ---- */

static inline bool umemListKey_is_before(umemListKey const *one, umemListKey const *other) {
  return one->group != other->group ? one->group < other->group : one->first < other->first;
}

/* Sorts the keys, with room for as many others. Returns which of the two arrays has the result. */
umemListKey *umemListKey_sort(umemListKey *keys, umemListKey *room, size_t count);

/* An empty table, and its end. */
void umemListTable_begin(umemListTable *table);
void umemListTable_end(umemListTable *table);

static inline umemListEntry *umemListTable_entries(umemListTable *table) {
  return table->heap ? table->heap : table->few;
}

/* The entry of key, which may be new: then only its key is set, and *is_new. NULL after a failure,
 * which is the list's. */
umemListEntry *umemListTable_take(umemListTable *table, umemList const *list,
                                  uint64_t const key[umemListWords], bool *is_new);

/* Records that there is no memory for the list. Returns false. */
bool umemList_fail_memory(umemList const *list);

/* ---- list.c ---- */

/* Writes to done and failed (NULL: none) that of count items none is copied, and none has
 * failed. */
void umemList_clear(size_t count, uint8_t *done, size_t *failed);

/* Checks all items, and that none has bytes of another one's target; sorts them if needed, and
 * joins neighbours to runs. Sets the bits of items without bytes. False after a failure. In any
 * case umemList_release follows. */
bool umemList_prepare(umemList *list, umemCopyItem const *items, size_t count, uint8_t *done);

/* Sorts an unsorted list, before any of its runs is copied. False after a failure. */
bool umemList_sort(umemList *list);
void umemList_release(umemList *list);

/* The two contexts of a run, and those of pair k of list->pairs.count. */
umemListPair umemList_pair(umemList const *list, size_t run);
umemListPair umemList_pair_at(umemList const *list, size_t k);

/* Whether the bytes from first up to end are in one block of ctx, as far as that matters. A device
 * copies inside of one allocation: so false for its memory if the block is not known. */
bool umemList_is_in_block(umemVirtual *ctx, uintptr_t first, uintptr_t end);

/* Records what was held as the failure of item. Returns false. */
bool umemList_fail(umemList *list, umemAttempt *held, size_t item);

/* Sets the bits of sorted items. */
void umemList_mark(umemList const *list, size_t begin, size_t end);

/* ---- many.c ---- */

/* Copies or queues the next runs of one pair, about `most` bytes, or a part of a run that has more.
 * If the list has a time, that ends the piece, and `most` is for long runs only. Returns how many
 * bytes; 0 at the end of the list, and after a failure, which names the item. */
size_t umemList_copy_piece(umemList *list, size_t most);

/* The target of the next run, or of the last one. Of a list with bytes. */
umemVirtual *umemList_target(umemList const *list);

/* Who wants to know how far a list is. */
typedef struct umemListSteps {
  size_t step;                                              /* bytes */
  bool (*report)(void *job, uint64_t done, uint64_t total); /* whether to go on */
  void *job;
} umemListSteps;

/* Does what umem_copy_many does with a list. done and failed are those of its options, or NULL.
 * steps may be NULL. */
void umem_copy_list(umemCopyItem const *items, size_t count, uint8_t *done, size_t *failed,
                    umemListSteps const *steps);

#endif
