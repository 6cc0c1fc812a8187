/* blocks_plan.c - cuts an array into blocks that fit a budget, reads and writes them where they
 * stand in memory, and chooses by how many threads and in which pieces they are read. */
#include "blocks/blocks.h"
#include "base/number.h"
#include "core/context.h"
#include "core/layout.h"
#include "core/threads.h"

#include <stdlib.h>
#include <string.h>

static size_t const default_budget = 64 << 20;
/* While the first block is read and the last one written, nothing overlaps. So there are many
 * blocks, */
static size_t const many_blocks = 32, few_blocks = 16;
/* or, where blocks are only read for a device: of its threads each has two pieces under way, and
 * they need blocks whose sum is some times as long, */
static size_t const device_blocks = 20;
/* but each has so many bytes that all threads can share it, or in a small array at least so many
 * that a disk or a GPU copies it at full speed. */
static size_t const shared_block = 4 << 20, small_block = 1 << 20;

enum { reading_depth = 3, writing_depth = 4, device_depth = 5 };

/* ---- what is given ---- */

static bool refuse(void *ctx, umemStatusType type, char const *reason) {
  return UMEM_FAIL(ctx, type, "%s", reason);
}

/* The bytes [start, end) that the rows touch. */
typedef struct Span {
  uintptr_t start, end;
} Span;

/* Checks the rows of one side, which has some. */
static bool check_rows(umemRows *rows, size_t count, umemCapability access, char const *side,
                       Span *span) {
  umemVirtual *ctx = umem_check(rows->ctx);
  if (!ctx || !umem_allows(ctx, access)) return false;
  if (!count) return true;
  umemLayoutSpan reach = {0, 0};
  if (!rows->stride) rows->stride = (ptrdiff_t)rows->nbytes;
  bool fits = rows->nbytes && rows->nbytes <= PTRDIFF_MAX &&
              umem_span_of(rows->nbytes, 1, &count, &rows->stride, &reach) &&
              (reach.low >= 0 || rows->adr >= (uintptr_t)-reach.low) &&
              rows->adr <= UINTPTR_MAX - (uintptr_t)reach.high;
  if (!fits || rows->adr == umem_null_of(ctx))
    return UMEM_FAIL(
        ctx, umemValueError, "%zu rows of %zu bytes, %td bytes apart, at %ju are no %s in %s",
        count, rows->nbytes, rows->stride, (uintmax_t)rows->adr, side, umem_get_device_name(ctx));
  *span = (Span){rows->adr + (uintptr_t)reach.low, rows->adr + (uintptr_t)reach.high};
  return true;
}

/* Bytes from row to row in either direction. */
static size_t distance_of(umemRows const *rows) {
  return rows->stride < 0 ? (size_t)0 - (size_t)rows->stride : (size_t)rows->stride;
}

/* Whether rows of equal stride lie in each other's gaps, as columns of one matrix do. */
static bool interleave(umemRows const *one, umemRows const *other) {
  if (one->stride != other->stride) return false;
  size_t stride = distance_of(one);
  bool later = other->adr >= one->adr;
  umemRows const *low = later ? one : other, *high = later ? other : one;
  uintptr_t offset = (high->adr - low->adr) % stride;
  return low->nbytes <= offset && high->nbytes <= stride - offset;
}

/* Whether a row of the destination takes the place of that row of the source, and of no later one:
 * those are read after it is written. */
static bool are_same_rows(umemRows const *source, umemRows const *destination, size_t count) {
  bool reaches_back = count > 1 && source->stride < 0 && source->nbytes > distance_of(source);
  return source->adr == destination->adr && source->stride == destination->stride && !reaches_back;
}

/* Whether the destination replaces the source; refuses other rows that share bytes with it. */
static bool check_overlap(umemBlocksPlan *plan, Span const *from, Span const *to, bool *replaces) {
  umemRows const *source = &plan->given.source, *destination = &plan->given.destination;
  uint64_t before = umem_thread.failures;
  *replaces = false;
  if (!umem_is_one_memory(source->ctx, destination->ctx)) return umem_thread.failures == before;
  if (from->end <= to->start || to->end <= from->start || interleave(source, destination))
    return true;
  *replaces = are_same_rows(source, destination, plan->given.count);
  return *replaces || refuse(destination->ctx, umemValueError,
                             "the destination shares bytes with the source, but not its rows");
}

static bool check_sides(umemBlocksPlan *plan, bool *replaces) {
  umemBlocksOptions *given = &plan->given;
  Span from = {0, 0}, to = {0, 0};
  *replaces = false;
  if (!given->source.ctx) return refuse(given->place, umemValueError, "there is no source");
  if (!check_rows(&given->source, given->count, umemReadable, "source", &from)) return false;
  if (!given->destination.ctx) {
    given->destination.nbytes = 0;
    given->apart = false;
    return true;
  }
  if (!check_rows(&given->destination, given->count, umemWritable, "destination", &to))
    return false;
  if (given->count > 1 && distance_of(&given->destination) < given->destination.nbytes)
    return refuse(given->destination.ctx, umemValueError, "the rows of the destination overlap");
  if (given->destination.nbytes != given->source.nbytes) given->apart = true;
  return check_overlap(plan, &from, &to, replaces);
}

static bool check_queues(umemBlocksOptions const *given) {
  if (given->queue_count && !given->queues)
    return refuse(given->place, umemValueError, "the queues are NULL");
  for (size_t i = 0; i < given->queue_count; i++) {
    uint64_t before = umem_thread.failures;
    umemVirtual *queue = umem_check(given->queues[i]);
    if (!queue) return false;
    if (umem_is_one_memory(queue, given->place)) continue;
    if (umem_thread.failures == before)
      umemVirtual_fail(given->place, umemValueError,
                       "queue %zu, a %s, is in other memory than the %s", i,
                       umem_get_device_name(queue), umem_get_device_name(given->place));
    return false;
  }
  return true;
}

static bool check_place(umemBlocksOptions const *given) {
  umemVirtual *place = umem_check(given->place);
  if (!place) return false;
  if (given->ghosts != umemGhostsLeftOut && given->ghosts != umemGhostsClamped)
    return refuse(place, umemValueError, "ghosts is no umemGhosts");
  return umem_allows(place, umemReadable) && umem_allows(place, umemWritable) &&
         check_queues(given);
}

/* ---- how many rows ---- */

static bool round_up(size_t *nbytes, size_t alignment) {
  size_t odd = *nbytes % alignment;
  return !odd || !__builtin_add_overflow(*nbytes, alignment - odd, nbytes);
}

/* The bytes of blocks of so many rows. False where these exceed what a block of memory can have. */
static bool measure(umemBlocksPlan *plan, size_t rows) {
  umemBlocksOptions const *given = &plan->given;
  size_t alignment = ((umemVirtual *)given->place)->alignment, all, out = 0;
  if (__builtin_add_overflow(given->before, given->after, &all) ||
      __builtin_add_overflow(all, rows, &all) ||
      __builtin_mul_overflow(all, given->source.nbytes, &plan->in_bytes) ||
      (given->apart && __builtin_mul_overflow(rows, given->destination.nbytes, &out)) ||
      !round_up(&plan->in_bytes, alignment) || !round_up(&out, alignment))
    return false;
  return !__builtin_add_overflow(plan->in_bytes, out, &plan->slot_bytes) &&
         plan->slot_bytes <= PTRDIFF_MAX;
}

/* Whether depth blocks of so many rows stay within budget. */
static bool fits(umemBlocksPlan *plan, size_t rows, size_t depth, size_t budget) {
  size_t all;
  return measure(plan, rows) && !__builtin_mul_overflow(plan->slot_bytes, depth, &all) &&
         all <= budget;
}

/* The most rows of which depth blocks stay within budget; 0: none. */
static size_t most_rows(umemBlocksPlan *plan, size_t depth, size_t budget) {
  size_t low = 0, high = plan->given.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2 + 1;
    if (fits(plan, middle, depth, budget))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

static size_t quotient_up(size_t n, size_t by) { return n / by + (n % by != 0); }

/* Where the destination replaces the source, the ghost rows before a block are those of blocks that
 * are written earlier: they must have been read first. */
static size_t blocks_ahead(umemBlocksPlan const *plan, size_t rows, bool replaces) {
  if (!replaces) return 0;
  size_t ahead = quotient_up(plan->given.before, rows);
  size_t others = quotient_up(plan->given.count, rows) - 1;
  return ahead < others ? ahead : others;
}

/* Whether blocks are only read, into memory that the CPU does not write to. */
static bool only_feeds_device(umemBlocksPlan const *plan) {
  return !plan->given.destination.ctx && !umem_cpu_writes(plan->given.place);
}

static size_t choose_rows(umemBlocksPlan *plan, size_t depth, size_t budget) {
  size_t count = plan->given.count;
  if (plan->given.rows) {
    size_t rows = plan->given.rows < count ? plan->given.rows : count;
    return fits(plan, rows, depth, budget) ? rows : 0;
  }
  size_t row = plan->given.source.nbytes;
  size_t few = quotient_up(count, few_blocks), shared = quotient_up(shared_block, row);
  size_t wanted = umem_greater(quotient_up(small_block, row), umem_lesser(few, shared));
  size_t many = only_feeds_device(plan) ? device_blocks : many_blocks;
  wanted = umem_greater(wanted, quotient_up(count, many));
  return umem_lesser(wanted, most_rows(plan, depth, budget));
}

/* Takes depth blocks, if there is room for as many as are needed. */
static bool take_depth(umemBlocksPlan *plan, size_t depth, size_t budget, bool replaces) {
  size_t rows = choose_rows(plan, depth, budget);
  if (!rows) return false;
  plan->ahead = blocks_ahead(plan, rows, replaces);
  if (plan->ahead >= depth) return false;
  plan->rows = rows;
  plan->blocks = quotient_up(plan->given.count, rows);
  plan->depth = depth < plan->blocks ? depth : plan->blocks;
  return measure(plan, rows);
}

/* What umem chooses: as many as overlap fully. */
static size_t wanted_depth(umemBlocksPlan const *plan, bool replaces) {
  umemBlocksOptions const *given = &plan->given;
  size_t depth = given->destination.ctx    ? writing_depth
                 : only_feeds_device(plan) ? device_depth
                                           : reading_depth;
  if (replaces && given->rows)
    depth += blocks_ahead(plan, given->rows, true);
  else if (replaces && given->before)
    depth++;
  return depth;
}

static bool refuse_size(umemBlocksPlan *plan, size_t budget, bool replaces) {
  umemBlocksOptions const *given = &plan->given;
  if (given->depth && replaces && given->before &&
      choose_rows(plan, given->depth, budget)) /* there is room, but no order */
    umemVirtual_fail(given->place, umemValueError,
                     "%zu blocks in memory are too few to replace rows with %zu ghost rows before",
                     given->depth, given->before);
  else
    umemVirtual_fail(given->place, umemMemoryError,
                     "a budget of %zu bytes has no room for a block of %zu rows of %zu bytes with "
                     "%zu ghost rows before and %zu after",
                     budget, given->rows ? given->rows : 1, given->source.nbytes, given->before,
                     given->after);
  return false;
}

static bool choose_size(umemBlocksPlan *plan, bool replaces) {
  umemBlocksOptions const *given = &plan->given;
  size_t any = given->rows ? PTRDIFF_MAX : default_budget;
  size_t budget = given->budget ? given->budget : any;
  size_t depth = given->depth ? given->depth : wanted_depth(plan, replaces);
  size_t least = given->depth ? given->depth : 1;
  for (; depth >= least; depth--)
    if (take_depth(plan, depth, budget, replaces)) return true;
  return refuse_size(plan, budget, replaces);
}

bool umemBlocksPlan_make(umemBlocksPlan *plan, umemBlocksOptions const *options) {
  *plan = (umemBlocksPlan){.given = *options};
  bool replaces;
  if (!check_place(options) || !check_sides(plan, &replaces)) return false;
  return !options->count || choose_size(plan, replaces);
}

umemBlockRange umemBlocksPlan_range(umemBlocksPlan const *plan, size_t number) {
  umemBlocksOptions const *given = &plan->given;
  umemBlockRange range = {.first = number * plan->rows};
  size_t rest = given->count - range.first;
  range.rows = plan->rows < rest ? plan->rows : rest;
  rest -= range.rows;
  range.before = given->before < range.first ? given->before : range.first;
  range.after = given->after < rest ? given->after : rest;
  if (given->ghosts == umemGhostsClamped) {
    range.missing_before = given->before - range.before;
    range.missing_after = given->after - range.after;
  }
  return range;
}

/* ---- messages ---- */

static char *add_number(char *end, size_t number) {
  char digits[24], *first = digits + sizeof digits;
  do *--first = (char)('0' + number % 10);
  while (number /= 10);
  size_t length = (size_t)(digits + sizeof digits - first);
  memcpy(end, first, length);
  return end + length;
}

/* Each block is named, but few names are read: snprintf takes longer than the copy of a short
 * block. */
void umemBlocksPlan_name(umemBlocksPlan const *plan, char const *function, char const *verb,
                         size_t number, char name[umemBlockNameSize]) {
  umemBlockRange range = umemBlocksPlan_range(plan, number);
  char *end = stpcpy(stpcpy(stpcpy(stpcpy(name, function), ": "), verb), " block ");
  end = stpcpy(add_number(end, number), " of ");
  end = stpcpy(add_number(end, plan->blocks), " (rows ");
  end = stpcpy(add_number(end, range.first), " to ");
  stpcpy(add_number(end, range.first + range.rows - 1), ")");
}

/* ==== slots ==== */

static uintptr_t slot_of(umemSlots const *slots, size_t number) {
  return slots->memory + number % slots->plan.depth * slots->plan.slot_bytes;
}

uintptr_t umemSlots_adr(umemSlots const *slots, size_t number) {
  umemBlocksOptions const *given = &slots->plan.given;
  return slot_of(slots, number) + given->before * given->source.nbytes;
}

uintptr_t umemSlots_out(umemSlots const *slots, size_t number) {
  return slots->plan.given.apart ? slot_of(slots, number) + slots->plan.in_bytes
                                 : umemSlots_adr(slots, number);
}

umemVirtual *umemSlots_queue(umemSlots const *slots, size_t number) {
  return slots->queues[number % slots->plan.depth % slots->queue_count];
}

/* The address of a row, which may be one before the first for strides of any sign. */
static uintptr_t row_at(umemRows const *rows, size_t number) {
  return rows->adr + number * (uintptr_t)rows->stride;
}

static void copy_rows(umemRows const *from, umemRows const *to, size_t count) {
  umemLayout layout = {.size = sizeof layout,
                       .item_size = from->nbytes,
                       .rank = 1,
                       .extents = &count,
                       .src_strides = &from->stride,
                       .dst_strides = &to->stride};
  if (count) umem_copy_strided(from->ctx, from->adr, to->ctx, to->adr, &layout);
}

/* ---- the parts of a block ---- */

/* The rows of a block in memory: ghost rows that the array has not, then rows of the array, then
 * such ghost rows. */
typedef struct Regions {
  umemBlockRange range;
  size_t first; /* row of the array that stands first */
  size_t lead;  /* rows before it */
  size_t rows;  /* of the array */
} Regions;

static Regions regions_of(umemSlots const *slots, size_t number) {
  umemBlockRange range = umemBlocksPlan_range(&slots->plan, number);
  return (Regions){range, range.first - range.before, range.missing_before,
                   range.before + range.rows + range.after};
}

size_t umemSlots_nbytes(umemSlots const *slots, size_t number) {
  Regions regions = regions_of(slots, number);
  size_t rows = regions.lead + regions.rows + regions.range.missing_after;
  return rows * slots->plan.given.source.nbytes;
}

static bool has_gaps(umemRows const *rows) { return rows->stride != (ptrdiff_t)rows->nbytes; }

/* Rows with gaps, and copies of one row, are not cut within a row. */
umemSlotPart umemSlots_part(umemSlots const *slots, size_t number, size_t at, size_t wanted) {
  umemRows const *source = &slots->plan.given.source;
  Regions regions = regions_of(slots, number);
  size_t start = regions.lead * source->nbytes, end = start + regions.rows * source->nbytes;
  if (at < start) return (umemSlotPart){number, at, start - at};
  if (at >= end) return (umemSlotPart){number, at, umemSlots_nbytes(slots, number) - at};
  size_t rest = end - at;
  if (has_gaps(source)) wanted = umem_greater(wanted / source->nbytes, 1) * source->nbytes;
  return (umemSlotPart){number, at, umem_lesser(wanted, rest)};
}

/* The memory of a block, its first ghost row included. */
static uintptr_t memory_of(umemSlots const *slots, size_t number, Regions const *regions) {
  size_t ghosts = regions->lead + regions->range.before;
  return umemSlots_adr(slots, number) - ghosts * slots->plan.given.source.nbytes;
}

static bool is_of_array(umemSlots const *slots, umemSlotPart const *part, Regions const *regions) {
  size_t row = part->at / slots->plan.given.source.nbytes;
  return row >= regions->lead && row < regions->lead + regions->rows;
}

bool umemSlots_piece(umemSlots const *slots, umemSlotPart const *part, umemCopyPiece *piece) {
  umemRows const *source = &slots->plan.given.source;
  Regions regions = regions_of(slots, part->number);
  if (has_gaps(source) || !is_of_array(slots, part, &regions)) return false;
  size_t skipped = part->at - regions.lead * source->nbytes;
  *piece = (umemCopyPiece){.src_adr = row_at(source, regions.first) + skipped,
                           .dst_adr = memory_of(slots, part->number, &regions) + part->at,
                           .nbytes = part->nbytes,
                           .dst = umemSlots_queue(slots, part->number),
                           .copy = part->number};
  return true;
}

/* Rows of the array, or one row again and again. */
static void read_rows(umemSlots const *slots, umemSlotPart const *part) {
  umemRows const *source = &slots->plan.given.source;
  Regions regions = regions_of(slots, part->number);
  umemRows from = *source, to = *source;
  size_t row = part->at / source->nbytes;
  to.ctx = umemSlots_queue(slots, part->number);
  to.stride = (ptrdiff_t)source->nbytes;
  to.adr = memory_of(slots, part->number, &regions) + part->at;
  if (row < regions.lead) {
    from.adr = row_at(source, 0);
    from.stride = 0;
  } else if (row < regions.lead + regions.rows) {
    from.adr = row_at(source, regions.first + row - regions.lead);
  } else {
    from.adr = row_at(source, slots->plan.given.count - 1);
    from.stride = 0;
  }
  copy_rows(&from, &to, part->nbytes / source->nbytes);
}

/* Waits, also when a copy has failed: what was queued before still uses the memory. */
static bool settle(uint64_t before, umemVirtual *one, umemVirtual *other) {
  unsigned queued = umemOrdered | umemDeviceShared;
  if (one->capabilities & queued) umem_finish(one);
  if (other != one && (other->capabilities & queued)) umem_finish(other);
  return umem_thread.failures == before;
}

bool umemSlots_read(umemSlots const *slots, umemSlotPart const *part) {
  umemVirtual *source = slots->plan.given.source.ctx;
  uint64_t before = umem_thread.failures;
  umemCopyPiece piece;
  if (umemSlots_piece(slots, part, &piece))
    umem_copy_to(source, piece.src_adr, piece.dst, piece.dst_adr, piece.nbytes);
  else
    read_rows(slots, part);
  return settle(before, umemSlots_queue(slots, part->number), source);
}

bool umemSlots_write(umemSlots const *slots, size_t number) {
  umemRows const *destination = &slots->plan.given.destination;
  umemBlockRange range = umemBlocksPlan_range(&slots->plan, number);
  uint64_t before = umem_thread.failures;
  umemTrace trace;
  __attribute__((cleanup(umem_step_close))) umemOpenStep step = {0};
  if (umem_is_watched()) /* until the block is there it is one copy */
    umem_trace_open(&trace, &step, umemSlots_queue(slots, number), destination->ctx,
                    range.rows * destination->nbytes);
  umemRows from = *destination, to = *destination;
  from.ctx = umemSlots_queue(slots, number);
  from.adr = umemSlots_out(slots, number);
  from.stride = (ptrdiff_t)destination->nbytes;
  to.adr = row_at(destination, range.first);
  copy_rows(&from, &to, range.rows);
  return settle(before, umemSlots_queue(slots, number), destination->ctx);
}

bool umemSlots_order(umemSlots const *slots, size_t number) {
  return umem_wait_uncaptured(umemSlots_queue(slots, number), slots->plan.given.place) == umemOK;
}

/* ---- memory ---- */

static bool take_queues(umemSlots *slots) {
  umemBlocksOptions *given = &slots->plan.given;
  size_t count = given->queue_count ? given->queue_count : 1;
  slots->queues = calloc(count, sizeof *slots->queues);
  if (!slots->queues)
    return UMEM_FAIL(given->place, umemMemoryError, "no memory for %zu queues", count);
  slots->queue_count = count;
  slots->queues[0] = given->place;
  for (size_t i = 0; i < given->queue_count; i++) slots->queues[i] = given->queues[i];
  given->queues = NULL;
  return true;
}

/* The queues may use the memory when the place has come as far as the allocation. */
static bool take_memory(umemSlots *slots) {
  void *place = slots->plan.given.place;
  uint64_t before = umem_thread.failures;
  size_t nbytes = slots->plan.depth * slots->plan.slot_bytes;
  if (nbytes) slots->memory = umem_alloc(place, nbytes);
  for (size_t i = 0; i < slots->queue_count && umem_thread.failures == before; i++)
    if (slots->queues[i] != place) umem_wait_uncaptured(slots->queues[i], place);
  return umem_thread.failures == before;
}

bool umemSlots_take(umemSlots *slots, umemBlocksPlan const *plan) {
  *slots = (umemSlots){
      .plan = *plan, .memory = umem_null(plan->given.place), .generation = umem_fork_count()};
  if (take_queues(slots) && take_memory(slots)) return true;
  umemSlots_release(slots);
  return false;
}

/* After a failed wait, a queue may still use the memory: the place then frees it after that. */
static void order_free(umemSlots *slots) {
  void *place = slots->plan.given.place;
  UMEM_FORGETTING(); /* the failure has been reported */
  for (size_t i = 0; i < slots->queue_count; i++)
    if (slots->queues[i] != place) umem_wait_uncaptured(place, slots->queues[i]);
}

void umemSlots_release(umemSlots *slots) {
  order_free(slots);
  umem_end_block(slots->plan.given.place, slots->memory, false, false, slots->generation);
  free(slots->queues);
}

/* ==== how blocks are read ==== */

/* Bytes of a piece for a GPU, and of any: if pieces are long, a block has too few for all
 * threads. */
static size_t const least_sent = 1 << 20, most_piece = 4 << 20;

/* Threads that read for a GPU. More gain nothing (H100, 16 cores). A short passage is over before
 * many are awake. */
enum { short_feeders = 8, feeders = 12 };
static size_t const short_passage = 128 << 20;

/* Several blocks that are one piece are read at the same time if they are shorter than this: the
 * copy of a longer one keeps all threads busy. */
static size_t const together_below = 128 << 20;

/* Whether copies from the source are done when they return. Otherwise each part would have to be
 * waited for. */
static bool can_cut(umemSlots const *slots) {
  unsigned device = umemOrdered | umemDeviceShared | umemDeviceAccessible;
  return !(((umemVirtual *)slots->plan.given.source.ctx)->capabilities & device);
}

static bool has_plain_queues(umemSlots const *slots) {
  for (size_t i = 0; i < slots->queue_count; i++)
    if (!umem_can(slots->queues[i], umemCpuWritable) || umem_can(slots->queues[i], umemOrdered))
      return false;
  return true;
}

static bool has_method(umemSlots const *slots) {
  bool (*method)(umemVirtual *, umemVirtual *, umemFeed *) =
      UMEM_SLOT(slots->queues[0], copy_pieces);
  for (size_t i = 1; i < slots->queue_count; i++)
    if (UMEM_SLOT(slots->queues[i], copy_pieces) != method) return false;
  return method;
}

/* Leaves one thread to the program, or half of all where it may work on the blocks with several. */
static unsigned most_threads(umemSlots const *slots) {
  unsigned threads = umem_parallel_threads();
  if (slots->plan.depth < 2) return threads; /* the program waits */
  unsigned own = umem_cpu_writes(slots->plan.given.place) ? threads / 2 : 1;
  return threads > own ? threads - own : 1;
}

/* How the method copy_pieces is fed. */
static void feed_method(umemReads *reads, umemBlocksPlan const *plan) {
  bool is_short = plan->blocks < short_passage / plan->in_bytes;
  reads->threads = (unsigned)umem_lesser(reads->threads, is_short ? short_feeders : feeders);
  reads->piece = umem_greater(least_sent, plan->in_bytes / short_feeders);
}

/* Whole blocks are read together if they are long enough to wake a thread, and too short to keep
 * all threads of a copy busy. */
static unsigned whole_readers(umemBlocksPlan const *plan, unsigned threads) {
  bool together = !plan->given.destination.ctx && plan->depth > 2 &&
                  plan->in_bytes >= umemLeastPiece && plan->in_bytes < together_below;
  return together ? (unsigned)umem_lesser(threads, plan->depth - 1) : 1;
}

void umemReads_begin(umemReads *reads, umemSlots const *slots, bool concurrent) {
  size_t const page = 4096; /* most pieces of files begin and end with pages */
  umemBlocksPlan const *plan = &slots->plan;
  bool can = concurrent && can_cut(slots);
  reads->limit = plan->blocks;
  reads->by_method = can && plan->in_bytes >= umemLeastPiece && has_method(slots);
  reads->cuts = can && has_plain_queues(slots);
  reads->threads = concurrent ? most_threads(slots) : 1;
  reads->whole = whole_readers(plan, reads->threads);
  reads->piece = umem_greater(umemLeastPiece, plan->in_bytes / reads->threads);
  if (reads->by_method) feed_method(reads, plan);
  reads->piece = umem_lesser(most_piece, reads->piece) / page * page;
}
