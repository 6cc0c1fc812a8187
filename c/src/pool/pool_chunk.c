/* pool_chunk.c - takes chunks from the upstream and gives them back, and makes blocks that are too
 * large for spans, and small ones for which no span has room.
 *
 * Each chunk is a region of its own in the range allocator, so that it can be removed when all of
 * it is free. Places of RAM know which of their memory is zero. There a chunk for umem_calloc comes
 * by umem_calloc: what is behind all blocks of it that were ever freed is still zero, and is not
 * written.
 *
 * A large block is a range of units. To take a range and to coalesce it with its neighbours costs
 * about ten reads of memory far apart. Therefore blocks of 17 units (more than a page) up to 1 MiB
 * have a descriptor. When they are freed they stay ranges, on a quick list of their size, and serve
 * the next request of that size (C. B. Weinstock, W. A. Wulf: "Quick Fit", SIGPLAN Notices 23,
 * 1988). No two of them begin in one page, so that the page map leads from an address to the
 * descriptor. What is on quick lists serves no other size and separates free ranges, so larger
 * blocks are coalesced at once, and quick lists that hold 1/32 of the pool before the pool takes a
 * new chunk; all of them before the pool becomes larger than ever, gives chunks back, or fails. */
#include "pool/pool_space.h"

#include <stdlib.h>
#include <string.h>

/* ---- large blocks ---- */

enum {
  line = 64,
  slab_blocks = 63,
  units_least = umemPoolPage / umemPoolUnit + 1,
  quick_most = 32 /* blocks of a quick list */
};

struct umemPoolLarge {
  struct umemPoolLarge *next; /* on a quick list, or not in use */
  umemPoolFreeList *home;     /* whose range it is a part of */
  uintptr_t adr;
  uint64_t units;
  uint64_t time; /* when it became free last: see pool_core.c */
  bool live;
  char pad[line - 5 * sizeof(uint64_t) - sizeof(bool)];
};
_Static_assert(sizeof(umemPoolLarge) == line, "its address leaves room for the class");

static umemPoolLarge *large_of(uintptr_t word) {
  return (umemPoolLarge *)(word & ~(uintptr_t)umemPoolClassMask);
}

/* ---- descriptors ---- */

static void put_block_away(umemPoolCore *core, umemPoolLarge *block) {
  block->next = core->unused_large;
  core->unused_large = block;
}

static umemPoolLarge *new_descriptor(umemPoolCore *core) {
  if (!core->unused_large) {
    umemPoolLarge *blocks = umemPoolCore_new_slab(core, slab_blocks * sizeof *blocks);
    if (!blocks) return NULL;
    for (int i = slab_blocks; i-- > 0;) put_block_away(core, &blocks[i]);
  }
  umemPoolLarge *block = core->unused_large;
  core->unused_large = block->next;
  return block;
}

/* Records the list's new range at adr. False without memory. */
static bool describe_block(umemPoolFreeList *list, uintptr_t adr, uint64_t units) {
  umemPoolCore *core = list->core;
  uint64_t page = (uint64_t)adr >> umemPageShift;
  umemPoolLarge *block = umemPageMap_prepare(&core->map, page, 1) ? new_descriptor(core) : NULL;
  if (!block) return false;
  block->home = list;
  block->adr = adr;
  block->units = units;
  block->live = true;
  umemPageMap_set(&core->map, page, 1, (uintptr_t)block | umemPoolLargeClass);
  return true;
}

/* Makes the range of block, which became free for the list at its time, a free range. False, with
 * nothing changed, without RAM for the record. */
static bool coalesce_block(umemPoolFreeList *list, umemPoolLarge *block) {
  uint64_t start = block->adr >> umemPoolUnitShift;
  bool covered = umemPoolMark_covers(list, block->time);
  if (!(covered ? umemRange_hand(block->home->range, start, list->range)
                : umemPoolRange_free(list, block->home, block->adr)))
    return false;
  umemPageMap_set(&list->core->map, (uint64_t)block->adr >> umemPageShift, 1, 0);
  put_block_away(list->core, block);
  return true;
}

/* The descriptor of the block that begins at adr; NULL where there is none. */
static umemPoolLarge *block_at(umemPoolCore *core, uintptr_t adr) {
  uintptr_t word = umemPageMap_find(&core->map, adr);
  if (!word || umemPoolClass_of(word) != umemPoolLargeClass) return NULL;
  return large_of(word)->adr == adr ? large_of(word) : NULL;
}

/* ---- quick lists ---- */

static umemPoolLarge *take_quick(umemPoolFreeList *list, uint64_t units) {
  umemPoolLarge *block = list->quick[units];
  if (!block) return NULL;
  list->quick[units] = block->next;
  list->quick_counts[units]--;
  list->quick_units -= units;
  umemPoolMark_forget_bytes(list, units << umemPoolUnitShift, block->time);
  return block;
}

static void put_quick(umemPoolFreeList *list, umemPoolLarge *block) {
  block->next = list->quick[block->units];
  list->quick[block->units] = block;
  list->quick_counts[block->units]++;
  list->quick_units += block->units;
}

/* What cannot be coalesced is kept. */
void umemPoolLarge_coalesce(umemPoolFreeList *list) {
  for (uint64_t units = 0; list->quick_units && units < umemPoolQuickSizes; units++)
    for (umemPoolLarge *block; (block = take_quick(list, units));)
      if (!coalesce_block(list, block)) {
        put_quick(list, block);
        break;
      }
}

/* ---- blocks ---- */

static umemPoolResult find_block(umemPoolFreeList *list, uint64_t units, size_t alignment,
                                 uintptr_t *adr) {
  bool usual = alignment <= umemPoolUnit || alignment <= list->core->alignment;
  bool described = units >= units_least && units < umemPoolQuickSizes && alignment <= umemPoolPage;
  umemPoolLarge *block = described && usual ? take_quick(list, units) : NULL;
  if (block) {
    block->live = true;
    *adr = block->adr;
    return umemPoolFound;
  }
  if (!umemPoolRange_take(list, units, alignment, adr)) return umemPoolNoneFree;
  if (!described || describe_block(list, *adr, units)) return umemPoolFound;
  umemPoolRange_free(list, list, *adr);
  return umemPoolNoRam;
}

umemPoolResult umemPoolLarge_alloc(umemPoolFreeList *list, size_t size, size_t alignment,
                                   uintptr_t *adr) {
  umemPoolCore *core = list->core;
  uint64_t units = umemPoolUnits_of(size);
  umemPoolResult result = find_block(list, units, alignment, adr);
  if (result != umemPoolFound) return result;
  core->large_count++;
  core->large_units += units;
  core->served_units += units;
  core->served++;
  umemPoolCore_note_peak(core);
  return umemPoolFound;
}

/* Whether there is no span in the page of adr: a span is a range, too. */
static bool outside_spans(umemPoolCore *core, uintptr_t adr) {
  uintptr_t word = umemPageMap_find(&core->map, adr);
  return !word || umemPoolClass_of(word) == umemPoolLargeClass;
}

static umemStatusType count_free(umemPoolCore *core, uintptr_t adr, uint64_t units) {
  umemPoolChunk_note_freed(core, adr, units);
  core->large_count--;
  core->large_units -= units;
  return umemOK;
}

static umemStatusType free_described(umemPoolFreeList *list, umemPoolLarge *block) {
  uint64_t units = block->units;
  if (!block->live) return umemValueError;
  block->live = false;
  block->time = umemPoolMark_now(list);
  if (list->quick_counts[units] < quick_most) {
    put_quick(list, block);
    umemPoolMark_note_bytes(list, units << umemPoolUnitShift);
  } else if (!coalesce_block(list, block)) {
    block->live = true;
    return umemMemoryError;
  }
  return count_free(list->core, block->adr, units);
}

umemStatusType umemPoolLarge_free(umemPoolFreeList *list, uintptr_t adr) {
  umemPoolCore *core = list->core;
  umemPoolLarge *block = block_at(core, adr);
  uint64_t units = 0;
  if (block) return free_described(list, block);
  umemPoolFreeList *home = outside_spans(core, adr) ? umemPoolRange_home(core, adr, &units) : NULL;
  if (!home) return umemValueError;
  return umemPoolRange_free(list, home, adr) ? count_free(core, adr, units) : umemMemoryError;
}

uint64_t umemPoolLarge_containing(umemPoolCore *core, uintptr_t adr, uintptr_t *start) {
  umemRangeItem item;
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (umemRange_find(list->range, (uint64_t)adr >> umemPoolUnitShift, &item) && item.live) {
      *start = (uintptr_t)(item.start << umemPoolUnitShift);
      return umemPoolLarge_extent(core, *start);
    }
  return 0;
}

uint64_t umemPoolLarge_extent(umemPoolCore *core, uintptr_t adr) {
  umemPoolLarge *block = block_at(core, adr);
  uint64_t units = 0;
  if (block) return block->live ? block->units << umemPoolUnitShift : 0;
  if (!outside_spans(core, adr) || !umemPoolRange_home(core, adr, &units)) return 0;
  return units << umemPoolUnitShift;
}

/* ---- chunks ---- */

struct umemPoolChunk {
  uintptr_t adr;
  size_t size;
  uintptr_t block; /* of umem_calloc, with room to align adr in it; 0: adr, of umem_aligned_alloc */
  uintptr_t zero;  /* from here on all is zero, but for what live blocks have written; 0: nothing */
  uint64_t serial;
  unsigned generation; /* of the process that has taken it */
  bool special;        /* its alignment made it costly: goes back as soon as it is empty */
};

/* Bytes of the upstream. */
static size_t taken_by(umemPoolChunk const *chunk) {
  return chunk->block ? chunk->size + umemPoolPage : chunk->size;
}

/* So many chunks begin at adr or below: they are sorted. */
static size_t chunks_up_to(umemPoolCore const *core, uintptr_t adr) {
  size_t first = 0, end = core->chunk_count;
  while (first < end) {
    size_t middle = first + (end - first) / 2;
    if (core->chunks[middle].adr <= adr)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

/* The chunk that contains adr; NULL where there is none. */
static umemPoolChunk *chunk_of(umemPoolCore const *core, uintptr_t adr) {
  size_t i = chunks_up_to(core, adr);
  return i && adr - core->chunks[i - 1].adr < core->chunks[i - 1].size ? &core->chunks[i - 1]
                                                                       : NULL;
}

/* ---- zeros ---- */

/* Files write zeros without touching memory, and what is in memory of a GPU is not known. */
void umemPoolChunk_init(umemPoolCore *core) {
  umemVirtual *upstream = core->upstream, *place = umem_innermost(upstream);
  unsigned const others = umemOrdered | umemDeviceShared | umemFaultable | umemOffsets;
  core->knows_zeros = place && UMEM_SLOT(place, calloc) && umem_can(upstream, umemCpuWritable) &&
                      !(upstream->capabilities & others);
}

void umemPoolChunk_note_freed(umemPoolCore *core, uintptr_t adr, uint64_t units) {
  umemPoolSpace_note_freed(core, adr, units);
  umemPoolChunk *chunk = core->zero_count ? chunk_of(core, adr) : NULL;
  uintptr_t end = adr + (uintptr_t)(units << umemPoolUnitShift);
  if (chunk && chunk->zero && chunk->zero < end) chunk->zero = end;
}

uintptr_t umemPoolChunk_zero_from(umemPoolCore const *core, uintptr_t adr) {
  umemPoolChunk const *chunk = core->zero_count ? chunk_of(core, adr) : NULL;
  return chunk && chunk->zero ? chunk->zero : UINTPTR_MAX;
}

/* ---- new chunks ---- */

static bool has_room_for_chunk(umemPoolCore *core) {
  if (core->chunk_count < core->chunk_room) return true;
  size_t room = core->chunk_room ? 2 * core->chunk_room : 16;
  umemPoolChunk *chunks = realloc(core->chunks, room * sizeof *chunks);
  if (!chunks) return false;
  core->chunks = chunks;
  core->chunk_room = room;
  return true;
}

/* Whether the list must wait for the upstream before it uses a new chunk. */
static bool is_in_order_of_upstream(umemPoolFreeList const *list) {
  return umemPoolQueue_must_follow_upstream(list) || umemPoolQueue_should_follow_upstream(list);
}

/* Records a new chunk, all free for the list. False without memory. */
static bool add_record(umemPoolFreeList *list, umemPoolChunk chunk) {
  umemPoolCore *core = list->core;
  uint64_t start = chunk.adr >> umemPoolUnitShift, units = chunk.size >> umemPoolUnitShift;
  if (!has_room_for_chunk(core) || !umemRange_add(list->range, start, units, false)) return false;
  if (list->mark.is_needed && is_in_order_of_upstream(list)) umemPoolMark_note(list, start, units);
  size_t at = chunks_up_to(core, chunk.adr);
  memmove(&core->chunks[at + 1], &core->chunks[at], (core->chunk_count++ - at) * sizeof chunk);
  core->chunks[at] = chunk;
  core->special_count += chunk.special;
  core->zero_count += chunk.zero != 0;
  umemPoolCore_add_reserved(core, taken_by(&chunk));
  return true;
}

/* Memory of an ordered upstream is free in its order. Whether the list may use it; else why not. */
static bool follow_upstream(umemPoolFreeList *list, umemPoolFailure *failure) {
  if (!is_in_order_of_upstream(list)) return true;
  if (umem_wait_uncaptured(list->queue, list->core->upstream) == umemOK) return true;
  failure->reason = umemPoolNotOrdered;
  return false;
}

/* Takes a chunk of its size from the upstream. */
static bool allocate_chunk(umemPoolCore const *core, size_t alignment, bool zeros,
                           umemPoolChunk *chunk) {
  uintptr_t const mask = umemPoolPage - 1;
  if (!zeros) {
    chunk->adr = umem_aligned_alloc(core->upstream, alignment, chunk->size);
    return chunk->adr != umem_null_of(core->upstream);
  }
  chunk->block = umem_calloc(core->upstream, 1, chunk->size + umemPoolPage);
  chunk->adr = chunk->zero = (chunk->block + mask) & ~mask;
  return chunk->block;
}

static void free_chunk(umemPoolCore const *core, umemPoolChunk const *chunk) {
  umem_free_as(core->upstream, chunk->block ? chunk->block : chunk->adr, !chunk->block);
}

bool umemPoolChunk_add(umemPoolFreeList *list, size_t size, size_t alignment, umemPoolChunkUse use,
                       umemPoolFailure *failure) {
  umemPoolCore *core = list->core;
  umemPoolChunk chunk = {
      .size = size, .generation = umem_fork_count(), .special = alignment > umemPoolPage};
  bool const zeros = use.zeros && !chunk.special;
  size_t const nbytes = zeros ? size + umemPoolPage : size;
  if (!umemPoolCore_allows(core, nbytes, failure)) return false;
  umemGrowthRequest request;
  failure->reason = umemPoolUpstreamFailed;
  umemGrowth_open(&core->growing, &core->lock, &request, nbytes, use.ample, &failure->attempt);
  bool allocated = allocate_chunk(core, chunk.special ? alignment : umemPoolPage, zeros, &chunk);
  bool follows = allocated && follow_upstream(list, failure);
  umemGrowth_close(&core->growing, &core->lock, &request, &failure->attempt);
  chunk.serial = follows ? ++core->chunk_serial : 0;
  if (follows && add_record(list, chunk)) {
    UMEM_DECIDED(umemDecisionMemory, core->upstream, "a pool over %s takes a chunk of %zu bytes",
                 umem_get_device_name(core->upstream), size);
    return true;
  }
  if (!allocated) return false;
  UMEM_FORGETTING();
  free_chunk(core, &chunk);
  if (follows) failure->reason = umemPoolNoRecords;
  return false;
}

/* ---- chunks that go back ---- */

static void remove_record(umemPoolCore *core, size_t i) {
  umemPoolChunk chunk = core->chunks[i];
  memmove(&core->chunks[i], &core->chunks[i + 1], (--core->chunk_count - i) * sizeof chunk);
  core->special_count -= chunk.special;
  core->zero_count -= chunk.zero != 0;
  core->reserved -= taken_by(&chunk);
}

static bool is_chunk_free(umemPoolCore const *core, umemPoolChunk const *chunk) {
  umemRangeItem item;
  bool found = umemRange_find(core->own->range, chunk->adr >> umemPoolUnitShift, &item);
  return found && !item.live && item.extent == chunk->size >> umemPoolUnitShift;
}

/* Gives chunk i back if all of it is free. If the upstream refuses, because its stream is being
 * captured for example, the chunk is kept. */
static void release_if_free(umemPoolCore *core, size_t i) {
  umemPoolChunk *chunk = &core->chunks[i];
  if (!is_chunk_free(core, chunk) || umem_is_of_parent(core->upstream, chunk->generation)) return;
  uint64_t before = umem_thread.failures;
  free_chunk(core, chunk);
  if (umem_thread.failures != before) {
    core->special_count -= chunk->special;
    chunk->special = false;
    return;
  }
  UMEM_DECIDED(umemDecisionMemory, core->upstream, "a pool over %s gives %zu bytes back",
               umem_get_device_name(core->upstream), chunk->size);
  umemRange_remove(core->own->range, chunk->adr >> umemPoolUnitShift,
                   chunk->size >> umemPoolUnitShift);
  remove_record(core, i);
}

void umemPoolChunk_release(umemPoolCore *core, size_t keep) {
  for (size_t i = core->chunk_count; i-- > 0;)
    if (core->reserved - core->chunks[i].size >= keep) release_if_free(core, i);
}

/* Of the free chunks whose end leaves at least the initial bytes: the smallest of nbytes or more,
 * else the largest. The number of chunks when there is none. */
static size_t best_to_release(umemPoolCore const *core, uint64_t nbytes) {
  size_t best = core->chunk_count;
  uint64_t spare = core->reserved > core->initial ? core->reserved - core->initial : 0;
  for (size_t i = 0; i < core->chunk_count; i++) {
    uint64_t size = core->chunks[i].size;
    uint64_t chosen = best < core->chunk_count ? core->chunks[best].size : 0;
    bool better = chosen >= nbytes ? size >= nbytes && size < chosen : size > chosen;
    if (better && size <= spare && is_chunk_free(core, &core->chunks[i])) best = i;
  }
  return best;
}

void umemPoolChunk_release_bytes(umemPoolCore *core, uint64_t nbytes) {
  for (uint64_t before = UINT64_MAX; nbytes && core->reserved < before;) {
    before = core->reserved;
    size_t best = best_to_release(core, nbytes);
    if (best < core->chunk_count) release_if_free(core, best);
    uint64_t released = before - core->reserved;
    nbytes -= released < nbytes ? released : nbytes;
  }
}

void umemPoolChunk_release_special(umemPoolCore *core) {
  for (size_t i = core->special_count ? core->chunk_count : 0; i-- > 0;)
    if (core->chunks[i].special) release_if_free(core, i);
}

void umemPoolChunk_next(umemPoolCore const *core, uintptr_t from, umemPoolRegion *region) {
  for (size_t i = 0; i < core->chunk_count; i++) {
    umemPoolChunk const *chunk = &core->chunks[i];
    if (chunk->adr < from || (region->nbytes && region->adr < chunk->adr)) continue;
    region->adr = chunk->adr;
    region->nbytes = chunk->size;
    region->age = core->chunk_serial - chunk->serial;
  }
}

void umemPoolChunk_end_all(umemPoolCore *core) {
  for (size_t i = core->chunk_count; i-- > 0;) {
    umemPoolChunk const *chunk = &core->chunks[i];
    umem_end_block(core->upstream, chunk->block ? chunk->block : chunk->adr, !chunk->block, false,
                   chunk->generation);
  }
  free(core->chunks);
  core->chunks = NULL;
  core->chunk_count = 0;
}
