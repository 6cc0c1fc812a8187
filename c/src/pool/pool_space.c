/* pool_space.c - ranges of addresses of the upstream, which of their pages have memory, where a
 * range can be made of free memory and gaps, and plans of pages for it.
 *
 * Gaps and free memory of one list that are side by side form a cluster (C. Guo et al.: "GMLake",
 * ASPLOS 2024, stitches such pieces). In each cluster the search tries the places that begin where
 * a piece begins, and those that end where one ends: no other place needs fewer pages. */
#include "pool/pool_space.h"
#include "base/number.h"

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
  size_t words = (count + 63) / 64, all = core->zeroing ? 2 * words : words;
  umemPoolSpace *space = calloc(1, sizeof *space + all * sizeof *space->mapped + count);
  if (!space) return NULL;
  space->count = count;
  space->orders = (unsigned char *)(space->mapped + all);
  if (core->zeroing) space->fresh = space->mapped + words;
  return space;
}

/* With one page more, which remains a gap. NULL without memory or addresses. */
static umemPoolSpace *try_add(umemPoolCore *core, size_t count, bool separate) {
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
  space->separate = separate;
  space->next = core->spaces;
  core->spaces = space;
  return space;
}

umemPoolSpace *umemPoolSpace_add(umemPoolCore *core, size_t pages, bool separate) {
  size_t count = usual_count(core, pages);
  umemPoolSpace *space = NULL;
  for (; !space && count > pages; count = count / 2 > pages ? count / 2 : pages)
    space = try_add(core, count, separate);
  return space ? space : try_add(core, pages, separate);
}

umemPoolSpace *umemPoolSpace_of(umemPoolCore const *core, uint64_t unit) {
  umemPoolSpace *space = core->spaces;
  while (space && unit - space->start >= space->count * umemPoolSpace_units(core))
    space = space->next;
  return space;
}

/* ---- pages ---- */

/* The first page of [page, end) whose bit is value; end or more where there is none. */
static size_t next_bit(uint64_t const *bits, size_t page, size_t end, bool value) {
  while (page < end) {
    uint64_t word = __atomic_load_n(&bits[page / 64], __ATOMIC_RELAXED);
    word = (value ? word : ~word) >> page % 64;
    if (word) return page + (size_t)__builtin_ctzll(word);
    page = (page / 64 + 1) * 64;
  }
  return page;
}

/* The bits of the pages [page, end) that are in the same word as page. */
static uint64_t bits_of_word(size_t page, size_t end) {
  size_t count = end - page / 64 * 64;
  return (count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX) & UINT64_MAX << page % 64;
}

size_t umemPoolSpace_next(umemPoolSpace const *space, size_t page, bool mapped) {
  size_t end = mapped ? space->top : space->count;
  page = next_bit(space->mapped, page, end, mapped);
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

static void clear_fresh(umemPoolSpace *space, size_t first, size_t end) {
  for (size_t page = first; space->fresh && page < end; page = (page / 64 + 1) * 64)
    __atomic_and_fetch(&space->fresh[page / 64], ~bits_of_word(page, end), __ATOMIC_RELAXED);
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
  if (!mapped) clear_fresh(space, first, first + count);
  if (mapped)
    umemPoolCore_add_reserved(core, nbytes);
  else
    core->reserved -= nbytes;
}

/* ---- zeros ---- */

void umemPoolSpace_set_fresh(umemPoolSpace *space, size_t first, size_t count) {
  size_t end = first + count;
  for (size_t page = first; space->fresh && page < end; page = (page / 64 + 1) * 64)
    __atomic_or_fetch(&space->fresh[page / 64], bits_of_word(page, end), __ATOMIC_RELAXED);
}

void umemPoolSpace_note_freed(umemPoolCore *core, uintptr_t adr, uint64_t units) {
  uint64_t start = (uint64_t)adr >> umemPoolUnitShift;
  umemPoolSpace *space = core->zeroing ? umemPoolSpace_of(core, start) : NULL;
  if (!space) return;
  size_t last = umemPoolSpace_page(core, space, start + units - 1);
  clear_fresh(space, umemPoolSpace_page(core, space, start), last + 1);
}

bool umemPoolSpace_next_used(umemPoolCore const *core, umemPoolSpace const *space, uintptr_t *begin,
                             uintptr_t end, uintptr_t *used_end) {
  uintptr_t const start = (uintptr_t)(space->start << umemPoolUnitShift);
  size_t const size = core->pages->page_size, most = (end - start + size - 1) / size;
  size_t first = (*begin - start) / size, page = next_bit(space->fresh, first, most, false);
  if (*begin >= end || page >= most) return false;
  size_t next = next_bit(space->fresh, page, most, true);
  if (page > first) *begin = start + page * size;
  *used_end = next < most ? start + next * size : end;
  return true;
}

/* ---- orders ---- */

enum { begins = 128 }; /* beside the order of a page: its large page begins with it */

void umemPoolSpace_set_order(umemPoolSpace *space, size_t first, size_t count, unsigned order) {
  size_t const mask = ((size_t)1 << order) - 1;
  for (size_t i = 0; i < count; i++) {
    unsigned char record = (unsigned char)(order | (i & mask ? 0 : begins));
    __atomic_store_n(&space->orders[first + i], record, __ATOMIC_RELAXED);
  }
}

/* The pages of the large page that begins with this one; 0 where none does. */
static size_t size_at(umemPoolSpace const *space, size_t page) {
  unsigned record = __atomic_load_n(&space->orders[page], __ATOMIC_RELAXED);
  return record & begins ? (size_t)1 << (record - begins) : 0;
}

bool umemPoolSpace_next_run(umemPoolSpace const *space, size_t *page, size_t end,
                            umemPoolRun *run) {
  while (*page < end) {
    size_t first = *page, size = size_at(space, first), last = first;
    while (size && end - last >= size && last < end && size_at(space, last) == size) last += size;
    *page = last > first ? last : first + (size ? size : 1);
    if (last == first) continue;
    *run = (umemPoolRun){first, last - first, (unsigned)__builtin_ctzll(size)};
    return true;
  }
  return false;
}

/* ---- places ---- */

typedef struct Search {
  umemPoolFreeList const *list;
  uint64_t units, step;
  umemPoolPlace best;
} Search;

static bool begins_page(umemPoolCore const *core, umemPoolSpace const *space, uint64_t unit) {
  return !((unit - space->start) & (umemPoolSpace_units(core) - 1));
}

uint64_t umemPoolPlace_piece(umemPoolFreeList const *list, umemPoolSpace const *space,
                             uint64_t unit) {
  umemPoolCore const *core = list->core;
  umemRangeItem item;
  if (unit >= umemPoolSpace_unit(core, space, space->count)) return unit;
  size_t page = umemPoolSpace_page(core, space, unit);
  if (!umemPoolSpace_has(space, page) && begins_page(core, space, unit))
    return umemPoolSpace_unit(core, space, umemPoolSpace_next(space, page, true));
  bool free = umemRange_find(list->range, unit, &item) && !item.live;
  return free ? item.start + item.extent : unit;
}

/* ---- one cluster ---- */

static void consider_place(Search *search, umemPoolSpace *space, uint64_t begin, uint64_t end,
                           uint64_t start) {
  umemPoolCore const *core = search->list->core;
  if (start < begin || start > end || end - start < search->units) return;
  size_t first = umemPoolSpace_page(core, space, start);
  size_t last = umemPoolSpace_page(core, space, start + search->units - 1);
  size_t missing = umemPoolSpace_missing(space, first, last + 1);
  umemPoolPlace *best = &search->best;
  if (best->space && missing >= best->missing) return;
  *best = (umemPoolPlace){space, start, start + search->units, first, last, missing};
}

static uint64_t end_of_cluster(Search const *search, umemPoolSpace const *space, uint64_t begin) {
  uint64_t end = begin, next;
  while ((next = umemPoolPlace_piece(search->list, space, end)) != end) end = next;
  return end;
}

/* Where the cluster of the gap that begins with this page begins. */
static uint64_t begin_of_cluster(Search const *search, umemPoolSpace const *space, size_t gap) {
  uint64_t unit = umemPoolSpace_unit(search->list->core, space, gap);
  umemRangeItem item;
  bool below = gap && umemRange_find(search->list->range, unit - 1, &item) && !item.live;
  return below ? item.start : unit;
}

/* Returns the end of the cluster. */
static uint64_t search_cluster(Search *search, umemPoolSpace *space, uint64_t begin) {
  uint64_t end = end_of_cluster(search, space, begin), mask = search->step - 1;
  for (uint64_t piece = begin, next; piece < end; piece = next) {
    next = umemPoolPlace_piece(search->list, space, piece);
    consider_place(search, space, begin, end, (piece + mask) & ~mask);
    if (next - begin >= search->units)
      consider_place(search, space, begin, end, (next - search->units) & ~mask);
  }
  return end;
}

/* ---- all clusters ---- */

/* Each place has a gap. So none is better than one that needs a single page: in a pool of very many
 * gaps that is found soon. */
static bool is_over(Search const *search) {
  return search->best.space && search->best.missing <= 1;
}

static void search_space(Search *search, umemPoolSpace *space) {
  umemPoolCore const *core = search->list->core;
  for (size_t gap = 0;
       !is_over(search) && (gap = umemPoolSpace_next(space, gap, false)) < space->count;) {
    uint64_t begin = begin_of_cluster(search, space, gap);
    uint64_t end = search_cluster(search, space, begin);
    size_t next = umemPoolSpace_page(core, space, end);
    gap = next > gap ? next : gap + 1;
  }
}

umemPoolPlace umemPoolPlace_find(umemPoolFreeList const *list, uint64_t units, uint64_t step) {
  Search search = {.list = list, .units = units, .step = step};
  bool const separate = umemPoolCore_separates(list->core, units);
  for (umemPoolSpace *space = list->core->spaces; space && !is_over(&search); space = space->next)
    if (space->separate == separate) search_space(&search, space);
  return search.best;
}

/* ---- the end ---- */

static void end_space(umemPoolCore *core, umemPoolSpace *space) {
  size_t const size = core->pages->page_size;
  uintptr_t adr = (uintptr_t)(space->start << umemPoolUnitShift);
  umemPoolRun run;
  for (size_t page = 0, end; (page = umemPoolSpace_next(space, page, true)) < space->count;) {
    end = umemPoolSpace_next(space, page, false);
    while (umemPoolSpace_next_run(space, &page, end, &run))
      core->sizes[run.order]->unmap(core->upstream, adr + run.first * size, run.count * size);
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

/* ==== plans: where a block gets pages, and how large these are ====
 *
 * The driver of a GPU takes as long for a large page as for a small one. So a plan is good if few
 * pages must be mapped and moved. But a large page moves only as a whole: memory that is free in a
 * part of it is stuck there as long as the rest is in use. */

/* New pages are as large as a part of the block that they are for; or of the pool, but then no
 * larger than the block. Where much of the maximum is in use, memory is short: they are smaller. */
enum { part_of_block = 3, part_of_pool = 60, part_when_short = 4, short_share = 4 };

/* A place may become larger by one in so many of the pages of the block, if that saves calls. */
enum { part_to_widen = 4 };

/* ---- free pages ---- */

/* The whole pages inside of a free range: [*first, *end) of the space. NULL outside of spaces. */
static umemPoolSpace *whole_pages(umemPoolCore const *core, umemRangeItem const *item,
                                  size_t *first, size_t *end) {
  umemPoolSpace *space = umemPoolSpace_of(core, item->start);
  if (!space) return NULL;
  *first = umemPoolSpace_page(core, space, item->start + umemPoolSpace_units(core) - 1);
  *end = umemPoolSpace_page(core, space, item->start + item->extent);
  return space;
}

bool umemPoolWalk_next(umemPoolWalk *walk, umemPoolPiece *piece) {
  umemPoolCore const *core = walk->home->core;
  uint64_t units = umemPoolSpace_units(core);
  umemRangeItem item;
  umemPoolRun run;
  for (;;) {
    if (walk->space && umemPoolSpace_next_run(walk->space, &walk->page, walk->end, &run)) {
      uint64_t start = umemPoolSpace_unit(core, walk->space, run.first);
      *piece =
          (umemPoolPiece){walk->home, start, run.count * units, run.count, 0, run.order, false};
      return true;
    }
    if (!umemPoolMarked_next(&walk->ranges, units, &item)) return false;
    walk->space = whole_pages(core, &item, &walk->page, &walk->end);
  }
}

bool umemPoolPlan_may_move(umemPoolFreeList const *list, umemPoolFreeList const *home) {
  if (home == list) return true;
  return (home->in_use || home == home->core->own) && !home->ending &&
         !umemPoolQueue_is_closed(home);
}

/* ---- sizes ---- */

/* The largest order of new pages for a block of so many bytes. spare: they are no more than the
 * option spare allows, or several smaller ones go for them. */
static unsigned order_for(umemPoolCore const *core, size_t size, bool spare) {
  size_t most = core->growth;
  if (core->spare && spare) {
    size_t of_block = size / part_of_block, of_pool = (size_t)(core->used_peak / part_of_pool);
    size_t wanted = of_block > of_pool ? of_block : umem_lesser(of_pool, size);
    if (core->maximum && core->maximum / short_share < core->used_peak) wanted /= part_when_short;
    if (wanted > most) most = wanted;
  }
  unsigned order = core->orders - 1;
  while (order && (!core->sizes[order] || core->sizes[order]->page_size > most)) order--;
  return order;
}

/* ---- the place ---- */

static umemPoolPlace find_place(umemPoolFreeList *list, uint64_t units, uint64_t step) {
  umemPoolPlace place = umemPoolPlace_find(list, units, step);
  if (place.space) return place;
  size_t per_page = umemPoolSpace_units(list->core);
  if (umemPoolSpace_add(list->core, (size_t)((units + step + per_page - 1) / per_page),
                        umemPoolCore_separates(list->core, units)))
    place = umemPoolPlace_find(list, units, step);
  return place;
}

/* Adds gaps behind the place, for later requests. */
static void extend_place(umemPoolPlace *place, size_t pages) {
  umemPoolSpace const *space = place->space;
  if (!pages || umemPoolSpace_has(space, place->last)) return;
  size_t next = umemPoolSpace_next(space, place->last, true), end = place->last + 1;
  size_t last = next - end > pages ? end + pages : next;
  place->missing += last - end;
  place->last = last - 1;
}

/* A gap at an end of a place: its pages in the place, and those that are beyond it. */
typedef struct Edge {
  size_t inside, beyond;
} Edge;

static Edge last_gap(umemPoolPlace const *place) {
  umemPoolSpace const *space = place->space;
  size_t first = place->last + 1;
  while (first > place->first && !umemPoolSpace_has(space, first - 1)) first--;
  size_t next = umemPoolSpace_next(space, place->last, true);
  return first > place->last ? (Edge){0, 0}
                             : (Edge){place->last + 1 - first, next - place->last - 1};
}

/* None if that is the last gap, too. */
static Edge first_gap(umemPoolPlace const *place, size_t most) {
  umemPoolSpace const *space = place->space;
  size_t end = umemPoolSpace_next(space, place->first, true), before = 0;
  if (end == place->first || end > place->last) return (Edge){0, 0};
  while (before < most && before < place->first &&
         !umemPoolSpace_has(space, place->first - before - 1))
    before++;
  return (Edge){end - place->first, before};
}

/* By so many pages the gap must grow to have room for whole ones of this order; 0 also if it
 * cannot. */
static size_t to_whole(Edge edge, unsigned order) {
  size_t more = umemPoolSpace_round(edge.inside, order) - edge.inside;
  return more <= edge.beyond ? more : 0;
}

/* Makes the gaps at its ends hold whole pages of this order. */
static umemPoolPlace in_whole_pages(umemPoolPlace place, unsigned order) {
  size_t before = to_whole(first_gap(&place, (size_t)1 << order), order);
  size_t behind = to_whole(last_gap(&place), order);
  place.first -= before;
  place.last += behind;
  place.missing += before + behind;
  return place;
}

/* ---- how many calls a place needs ---- */

/* What can fill a place. */
typedef struct Supply {
  size_t pages[umemPoolOrders]; /* of each order, that may move; */
  size_t fresh;                 /* so many may be new, */
  unsigned order;               /* of this order or a smaller one */
} Supply;

/* The pages of the piece, as far as whole ones of its order are in units [from, end). */
static size_t pages_between(umemPoolCore const *core, umemPoolPiece const *piece, uint64_t from,
                            uint64_t end) {
  uint64_t size = umemPoolSpace_units(core) << piece->order, last = piece->start + piece->units;
  if (from < piece->start) from = piece->start;
  if (end > last) end = last;
  if (end <= from) return 0;
  uint64_t first = (from - piece->start + size - 1) / size, behind = (end - piece->start) / size;
  return behind > first ? (size_t)(behind - first) << piece->order : 0;
}

/* What is free in the place serves there already. */
static void count_supply(umemPoolFreeList *list, umemPoolPlace const *place, Supply *supply) {
  umemPoolPiece piece;
  for (umemPoolFreeList *home = list->core->lists; home; home = home->next) {
    if (!umemPoolPlan_may_move(list, home)) continue;
    for (umemPoolWalk walk = umemPoolWalk_begin(list, home); umemPoolWalk_next(&walk, &piece);)
      supply->pages[piece.order] += pages_between(list->core, &piece, 0, place->start) +
                                    pages_between(list->core, &piece, place->end, UINT64_MAX);
  }
}

/* How many pages of its gaps can be in pages of this order. */
static size_t room_for(umemPoolPlace const *place, unsigned order) {
  umemPoolSpace const *space = place->space;
  size_t room = 0;
  for (size_t page = umemPoolSpace_next(space, place->first, false); page <= place->last;) {
    size_t end = umemPoolSpace_next(space, page, true);
    if (end > place->last + 1) end = place->last + 1;
    room += (end - page) >> order << order;
    page = umemPoolSpace_next(space, end, false);
  }
  return room;
}

/* How many pages of the driver fill it: large ones first. What nothing can fill counts twice. */
static size_t count_calls(umemPoolCore const *core, umemPoolPlace const *place,
                          Supply const *supply) {
  size_t filled = 0, calls = 0, fresh = supply->fresh;
  for (unsigned order = umemPoolOrders; order-- > 0;) {
    size_t room = room_for(place, order);
    if (room <= filled) continue;
    size_t moved = umem_lesser(room - filled, supply->pages[order]) >> order << order;
    bool makes = order <= supply->order && core->sizes[order];
    size_t made = makes ? umem_lesser(room - filled - moved, fresh) >> order << order : 0;
    fresh -= made;
    filled += moved + made;
    calls += (moved + made) >> order;
  }
  return calls + 2 * (place->missing - filled);
}

/* Makes the place larger where that takes fewer calls: by some of its pages, or so many. */
static void widen_place(umemPoolFreeList *list, umemPoolPlace *place, Supply *supply, size_t more) {
  umemPoolCore const *core = list->core;
  if (core->orders < 2) return;
  count_supply(list, place, supply);
  umemPoolPlace const given = *place;
  size_t most = (size_t)((given.end - given.start) / umemPoolSpace_units(core) / part_to_widen);
  if (most < more) most = more;
  size_t calls = count_calls(core, place, supply);
  for (unsigned order = core->orders - 1; order; order--) {
    umemPoolPlace wide = in_whole_pages(given, order);
    if (wide.missing - given.missing > most) continue;
    size_t others = count_calls(core, &wide, supply);
    if (others >= calls) continue;
    *place = wide;
    calls = others;
  }
}

/* ---- all of it ---- */

bool umemPoolPlan_make(umemPoolFreeList *list, size_t size, size_t alignment, umemPoolExtra extra,
                       umemPoolPlan *plan) {
  umemPoolCore const *core = list->core;
  umemPoolPlace *place = &plan->place;
  *place = find_place(list, umemPoolUnits_of(size), umemPoolStep_of(alignment));
  if (!place->space) return false;
  size_t const page_size = core->pages->page_size;
  size_t const allowed = (size_t)(umemPoolCore_allowance(core) / page_size);
  plan->unmoved = extra.unmoved / page_size;
  plan->order = order_for(core, size, plan->unmoved);
  plan->joins = extra.joins ? order_for(core, size, true) : 0;
  extend_place(place, extra.ample / page_size);
  Supply supply = {.fresh = extra.ample ? allowed : umem_lesser(plan->unmoved, allowed),
                   .order = plan->order};
  widen_place(list, place, &supply, extra.ample ? (size_t)1 << plan->order : 0);
  return true;
}
