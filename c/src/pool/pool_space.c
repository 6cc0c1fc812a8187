/* pool_space.c - ranges of addresses of the upstream, and which of their pages have memory. See
 * pool.h. */
#include "pool/pool_space.h"
#include "core/context.h"

#include <stdlib.h>

/* A new space is so many times as large as all before it, or as the block for which it is made. So
 * there are few, and a small pool needs few addresses: some tools make records of them. But it has
 * addresses for at most so many times the memory of the upstream. */
enum { times_before = 8, times_block = 4, times_capacity = 2 };
static uint64_t const least_size = UINT64_C(1) << 27, most_size = UINT64_C(1) << 39;

/* ---- new spaces ---- */

/* The largest size of a space. */
static uint64_t most_useful(umemPoolCore const *core) {
  umemInfo info = UMEM_INFO_INIT;
  umem_get_info(core->upstream, &info);
  uint64_t size = info.capacity;
  if (core->maximum && core->maximum < size) size = core->maximum;
  return size < most_size / times_capacity ? size * times_capacity : most_size;
}

/* Pages for which a new space has room, if the upstream has enough addresses. pages: of the
 * block. */
static size_t usual_count(umemPoolCore const *core, size_t pages) {
  size_t page_size = core->pages->page_size, before = 0;
  size_t least = (size_t)(least_size / page_size), most = (size_t)(most_useful(core) / page_size);
  for (umemPoolSpace const *space = core->spaces; space; space = space->next)
    before += space->count;
  size_t count = pages < most / times_block ? pages * times_block : most;
  if (count < before * times_before) count = before * times_before;
  if (count > most) count = most;
  if (count < least) count = least;
  return count > pages ? count : pages;
}

static umemPoolSpace *new_record(umemPoolCore const *core, size_t count) {
  size_t words = (count + 63) / 64, of_groups = core->group ? (count / core->group + 64) / 64 : 0;
  umemPoolSpace *space = calloc(1, sizeof *space + (words + of_groups) * sizeof *space->mapped);
  if (!space) return NULL;
  space->count = count;
  space->large = space->mapped + words;
  return space;
}

/* With one page more, which stays a gap. NULL without memory or addresses. */
static umemPoolSpace *try_add(umemPoolCore *core, size_t count) {
  size_t nbytes;
  if (__builtin_mul_overflow(count + 1, core->pages->page_size, &nbytes)) return NULL;
  umemPoolSpace *space = new_record(core, count);
  if (!space) return NULL;
  uintptr_t adr = core->pages->reserve(core->upstream, nbytes);
  if (adr == umem_null_of(core->upstream)) {
    free(space);
    return NULL;
  }
  space->start = (uint64_t)adr >> umemPoolUnitShift;
  space->next = core->spaces;
  core->spaces = space;
  return space;
}

umemPoolSpace *umemPoolSpace_add(umemPoolCore *core, size_t pages) {
  size_t count = usual_count(core, pages);
  umemPoolSpace *space = NULL;
  for (; !space && count > pages; count = count / 2 > pages ? count / 2 : pages)
    space = try_add(core, count);
  return space ? space : try_add(core, pages);
}

umemPoolSpace *umemPoolSpace_of(umemPoolCore const *core, uint64_t unit) {
  umemPoolSpace *space = core->spaces;
  while (space && unit - space->start >= space->count * umemPoolSpace_units(core))
    space = space->next;
  return space;
}

/* ---- pages ---- */

size_t umemPoolSpace_next(umemPoolSpace const *space, size_t page, bool mapped) {
  size_t end = mapped ? space->top : space->count;
  while (page < end) {
    uint64_t word = mapped ? space->mapped[page / 64] : ~space->mapped[page / 64];
    word >>= page % 64;
    if (word) {
      page += (size_t)__builtin_ctzll(word);
      break;
    }
    page = (page / 64 + 1) * 64;
  }
  return page < end ? page : space->count;
}

size_t umemPoolSpace_missing(umemPoolSpace const *space, size_t first, size_t end) {
  size_t missing = 0;
  for (size_t page = first; page < end;) {
    size_t gap = umemPoolSpace_next(space, page, false);
    page = umemPoolSpace_next(space, gap, true);
    if (gap < end) missing += (page < end ? page : end) - gap;
  }
  return missing;
}

void umemPoolSpace_set(umemPoolCore *core, umemPoolSpace *space, size_t first, size_t count,
                       bool mapped) {
  uint64_t nbytes = (uint64_t)count * core->pages->page_size;
  for (size_t page = first; page < first + count; page++)
    if (mapped)
      space->mapped[page / 64] |= UINT64_C(1) << page % 64;
    else
      space->mapped[page / 64] &= ~(UINT64_C(1) << page % 64);
  if (mapped && space->top < first + count) space->top = first + count;
  core->reserved = mapped ? core->reserved + nbytes : core->reserved - nbytes;
  if (core->reserved > core->reserved_peak) core->reserved_peak = core->reserved;
}

/* ---- large pages ---- */

void umemPoolSpace_set_large(umemPoolCore const *core, umemPoolSpace *space, size_t page,
                             bool large) {
  size_t group = page / core->group;
  uint64_t *word = &space->large[group / 64], bit = UINT64_C(1) << group % 64;
  if (large)
    __atomic_or_fetch(word, bit, __ATOMIC_RELAXED);
  else
    __atomic_and_fetch(word, ~bit, __ATOMIC_RELAXED);
}

/* Where the pages of this size end that begin at page. */
static size_t end_of_run(umemPoolCore const *core, umemPoolSpace const *space, size_t page,
                         size_t end, bool large) {
  if (!core->group) return end;
  while (page < end && umemPoolSpace_is_large(core, space, page) == large) {
    size_t next = umemPoolSpace_next_group(core, page);
    if (next > end) return large ? page : end;
    page = next;
  }
  return page;
}

bool umemPoolSpace_next_run(umemPoolCore const *core, umemPoolSpace const *space, size_t *page,
                            size_t end, umemPoolRun *run) {
  while (*page < end) {
    size_t first = *page;
    bool large = umemPoolSpace_is_large(core, space, first);
    bool whole = !large || !(first % core->group);
    size_t last = whole ? end_of_run(core, space, first, end, large) : first;
    *page = last > first ? last : umemPoolSpace_next_group(core, first);
    *run = (umemPoolRun){first, last - first, large};
    if (last > first) return true;
  }
  return false;
}

/* ---- the end ---- */

static void end_space(umemPoolCore *core, umemPoolSpace *space) {
  size_t const size = core->pages->page_size;
  uintptr_t adr = (uintptr_t)(space->start << umemPoolUnitShift);
  umemPoolRun run;
  for (size_t page = 0, end; (page = umemPoolSpace_next(space, page, true)) < space->count;) {
    end = umemPoolSpace_next(space, page, false);
    while (umemPoolSpace_next_run(core, space, &page, end, &run))
      umemPoolSpace_methods(core, run.large)
          ->unmap(core->upstream, adr + run.first * size, run.count * size);
  }
  core->pages->release(core->upstream, adr, (space->count + 1) * size);
  free(space);
}

void umemPoolSpace_end_all(umemPoolCore *core) {
  while (core->spaces) {
    umemPoolSpace *space = core->spaces;
    core->spaces = space->next;
    end_space(core, space);
  }
}
