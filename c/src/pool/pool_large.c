/* pool_large.c - blocks that are too large for spans, and blocks alone. See umem_pool.h.
 *
 * A block is a range of units. Taking and joining ranges costs some ten looks at memory far apart, so
 * blocks of 17 units (more than a page) up to 1024 have a descriptor: when they are freed they stay
 * ranges and wait, by their size, for the next request of that size. No two of them begin in one page, so
 * that the map leads from an address to the descriptor. Before the pool takes a new chunk what waits is
 * joined, if it is a sixteenth of all; before the pool gives any back, or gives up, in any case. */
#include "pool/pool.h"

#include <stdlib.h>
#include <string.h>

enum {
  line = 64,
  slab_blocks = 63,
  units_least = umemPoolPage / umemPoolUnit + 1,
  waiting_most = 32
};

struct umemPoolLarge {
  struct umemPoolLarge *next; /* that waits, or is not in use */
  umemPoolLane *home;         /* of whose range it is a part */
  uintptr_t adr;
  uint64_t units;
  bool live;
  char pad[line - 4 * sizeof(uint64_t) - sizeof(bool)];
};
_Static_assert(sizeof(umemPoolLarge) == line, "its address leaves room for the class");

static umemPoolLarge *large_of(uintptr_t word) {
  return (umemPoolLarge *)(void *)umemPoolSpan_of(word);
}

static uint64_t units_of(size_t size) {
  return ((uint64_t)size + umemPoolUnit - 1) >> umemPoolUnitShift;
}

/* ---- descriptors ---- */

static void put_away(umemPoolCore *core, umemPoolLarge *block) {
  block->next = core->unused_large;
  core->unused_large = block;
}

static umemPoolLarge *new_descriptor(umemPoolCore *core) {
  if (!core->unused_large) {
    umemPoolLarge *blocks = umemPool_new_slab(core, slab_blocks * sizeof *blocks);
    if (!blocks) return NULL;
    for (int i = slab_blocks; i-- > 0;) put_away(core, &blocks[i]);
  }
  umemPoolLarge *block = core->unused_large;
  core->unused_large = block->next;
  return block;
}

/* Writes down the lane's new range at adr. False without memory. */
static bool describe(umemPoolLane *lane, uintptr_t adr, uint64_t units) {
  umemPoolCore *core = lane->core;
  uint64_t page = (uint64_t)adr >> umemPageShift;
  umemPoolLarge *block = umemPageMap_prepare(&core->map, page, 1) ? new_descriptor(core) : NULL;
  if (!block) return false;
  block->home = lane;
  block->adr = adr;
  block->units = units;
  block->live = true;
  umemPageMap_set(&core->map, page, 1, (uintptr_t)block | umemPoolLargeClass);
  return true;
}

/* Makes the range of block, which is not live, free for the lane. False, with nothing changed, without
 * memory for the books. */
static bool join(umemPoolLane *lane, umemPoolLarge *block) {
  if (!umemPool_unreserve(lane, block->home, block->adr)) return false;
  umemPageMap_set(&lane->core->map, (uint64_t)block->adr >> umemPageShift, 1, 0);
  put_away(lane->core, block);
  return true;
}

/* The descriptor of the block that begins at adr; NULL where there is none. */
static umemPoolLarge *block_at(umemPoolCore *core, uintptr_t adr) {
  uintptr_t word = umemPageMap_find(&core->map, adr);
  if (!word || umemPoolClass_of(word) != umemPoolLargeClass) return NULL;
  return large_of(word)->adr == adr ? large_of(word) : NULL;
}

/* ---- blocks that wait ---- */

static umemPoolLarge *take_waiting(umemPoolLane *lane, uint64_t units) {
  umemPoolLarge *block = lane->waiting[units];
  if (!block) return NULL;
  lane->waiting[units] = block->next;
  lane->waiting_counts[units]--;
  lane->waiting_units -= units;
  return block;
}

static void let_wait(umemPoolLane *lane, umemPoolLarge *block) {
  block->next = lane->waiting[block->units];
  lane->waiting[block->units] = block;
  lane->waiting_counts[block->units]++;
  lane->waiting_units += block->units;
}

/* What cannot be joined waits on. */
void umemPool_join_waiting(umemPoolLane *lane) {
  for (uint64_t units = 0; lane->waiting_units && units < umemPoolWaitingSizes; units++)
    for (umemPoolLarge *block; (block = take_waiting(lane, units));)
      if (!join(lane, block)) {
        let_wait(lane, block);
        break;
      }
}

/* ---- blocks ---- */

static bool find_block(umemPoolLane *lane, size_t size, size_t alignment, umemPoolGrowth growth,
                       uintptr_t *adr, umemPoolLack *lack) {
  uint64_t units = units_of(size);
  bool usual = alignment <= umemPoolUnit || alignment <= lane->core->alignment;
  bool described =
      units >= units_least && units < umemPoolWaitingSizes && alignment <= umemPoolPage;
  umemPoolLarge *block = described && usual ? take_waiting(lane, units) : NULL;
  if (block) {
    block->live = true;
    *adr = block->adr;
    return true;
  }
  if (!umemPool_reserve(lane, size, alignment, growth, adr, lack)) return false;
  if (!described || describe(lane, *adr, units)) return true;
  umemPool_unreserve(lane, lane, *adr);
  lack->why = umemPoolBooks;
  return false;
}

bool umemPool_alloc_large(umemPoolLane *lane, size_t size, size_t alignment, umemPoolGrowth growth,
                          uintptr_t *adr, umemPoolLack *lack) {
  umemPoolCore *core = lane->core;
  if (!find_block(lane, size, alignment, growth, adr, lack)) return false;
  core->large_count++;
  core->large_units += units_of(size);
  core->served++;
  umemPool_note_peak(core);
  return true;
}

/* Whether what lies in the page of adr is no span: those are ranges too. */
static bool outside_spans(umemPoolCore *core, uintptr_t adr) {
  uintptr_t word = umemPageMap_find(&core->map, adr);
  return !word || umemPoolClass_of(word) == umemPoolLargeClass;
}

static umemStatusType count_free(umemPoolCore *core, uint64_t units) {
  core->large_count--;
  core->large_units -= units;
  return umemOK;
}

static umemStatusType free_described(umemPoolLane *lane, umemPoolLarge *block) {
  uint64_t units = block->units;
  if (!block->live) return umemValueError;
  block->live = false;
  if (lane->waiting_counts[units] < waiting_most) {
    let_wait(lane, block);
  } else if (!join(lane, block)) {
    block->live = true;
    return umemMemoryError;
  }
  return count_free(lane->core, units);
}

umemStatusType umemPool_free_large(umemPoolLane *lane, uintptr_t adr) {
  umemPoolCore *core = lane->core;
  umemPoolLarge *block = block_at(core, adr);
  uint64_t units = 0;
  if (block) return free_described(lane, block);
  umemPoolLane *home = outside_spans(core, adr) ? umemPool_home_of(core, adr, &units) : NULL;
  if (!home) return umemValueError;
  return umemPool_unreserve(lane, home, adr) ? count_free(core, units) : umemMemoryError;
}

uint64_t umemPool_large_extent(umemPoolCore *core, uintptr_t adr) {
  umemPoolLarge *block = block_at(core, adr);
  uint64_t units = 0;
  if (block) return block->live ? block->units << umemPoolUnitShift : 0;
  if (!outside_spans(core, adr) || !umemPool_home_of(core, adr, &units)) return 0;
  return units << umemPoolUnitShift;
}
