/* pool_plan.c - decides where a block gets pages, and how large these are.
 *
 * The driver of a GPU takes as long for a large page as for a small one. So a plan is good if few
 * pages must be mapped and moved. But a large page moves only as a whole: memory that is free in a
 * part of it is stuck there as long as the rest is in use. */
#include "pool/pool_grow.h"
#include "core/context.h"

/* New pages are as large as a part of the block that they are for; or of the pool, but then no
 * larger than the block. Where much of the maximum is in use, memory is short: they are smaller. */
enum { part_of_block = 3, part_of_pool = 60, part_when_short = 4, short_share = 4 };

/* A place may become larger by one in so many of the pages of the block, if that saves calls. */
enum { part_to_widen = 4 };

static size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

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
    size_t wanted = of_block > of_pool ? of_block : lesser(of_pool, size);
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
    size_t moved = lesser(room - filled, supply->pages[order]) >> order << order;
    bool makes = order <= supply->order && core->sizes[order];
    size_t made = makes ? lesser(room - filled - moved, fresh) >> order << order : 0;
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
  Supply supply = {.fresh = extra.ample ? allowed : lesser(plan->unmoved, allowed),
                   .order = plan->order};
  widen_place(list, place, &supply, extra.ample ? (size_t)1 << plan->order : 0);
  return true;
}
