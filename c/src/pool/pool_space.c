/* pool_space.c - ranges of addresses of the upstream, and which of their pages have memory. See pool.h. */
#include "pool/pool_space.h"
#include "core/guard.h"

#include <stdlib.h>

/* A new space has addresses for so many times the memory of the upstream: then a large block seldom has to go where gaps
 * and free memory are mixed. If they are used up, the pool adds a space. */
enum { times_capacity = 2 };
static uint64_t const least_size = UINT64_C(1) << 30, most_size = UINT64_C(1) << 39;

/* ---- new spaces ---- */

/* Pages for which a new space has room, if the upstream has enough addresses. */
static size_t usual_count(umemPoolCore const *core) {
  umemInfo info = UMEM_INFO_INIT;
  umem_get_info(core->upstream, &info);
  uint64_t size = info.capacity;
  if (core->maximum && core->maximum < size) size = core->maximum;
  size = size < most_size / times_capacity ? size * times_capacity : most_size;
  if (size < least_size) size = least_size;
  return (size_t)(size / core->pages->page_size);
}

static umemPoolSpace *new_record(size_t count) {
  umemPoolSpace *space = calloc(1, sizeof *space + (count + 63) / 64 * sizeof *space->mapped);
  if (space) space->count = count;
  return space;
}

/* With one page more, which stays a gap. NULL without memory or addresses. */
static umemPoolSpace *try_add(umemPoolCore *core, size_t count) {
  size_t nbytes;
  if (__builtin_mul_overflow(count + 1, core->pages->page_size, &nbytes)) return NULL;
  umemPoolSpace *space = new_record(count);
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
  size_t count = usual_count(core);
  umemPoolSpace *space = NULL;
  if (count < pages) count = pages;
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

/* ---- the end ---- */

static void end_space(umemPoolCore *core, umemPoolSpace *space) {
  umemPages const *pages = core->pages;
  uintptr_t adr = (uintptr_t)(space->start << umemPoolUnitShift);
  for (size_t page = 0, end; (page = umemPoolSpace_next(space, page, true)) < space->count;
       page = end) {
    end = umemPoolSpace_next(space, page, false);
    pages->unmap(core->upstream, adr + page * pages->page_size, (end - page) * pages->page_size);
  }
  pages->release(core->upstream, adr, (space->count + 1) * pages->page_size);
  free(space);
}

void umemPoolSpace_end_all(umemPoolCore *core) {
  while (core->spaces) {
    umemPoolSpace *space = core->spaces;
    core->spaces = space->next;
    end_space(core, space);
  }
}
