/* list.c - checks a list of copies, and puts it into the order in which many.c copies it.
 *
 * The items are sorted by their pair of contexts, and by their addresses within it, so that
 * neighbours become one run and a file is read in its order. Targets are sorted by the memory that
 * they are in, so that overlaps are neighbours, too. Tables number the memories and the pairs
 * (list_keys.c).
 *
 * Most lists are of one pair and have their targets in rising order, as the rows of an array that
 * are put together. One pass checks such a list, and it is sorted only to read a file. */
#include "core/copy.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/live.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

typedef umemListKey Key;

/* ---- the list ---- */

void umemList_release(umemList *list) {
  if (list->count > umemListShort) {
    free(list->keys);
    free(list->room);
    free(list->runs);
    free(list->begins);
  }
  umemListTable_end(&list->pairs);
}

static bool take_runs(umemList *list) {
  size_t count = list->count;
  bool is_short = count <= umemListShort;
  list->runs = is_short ? list->small.runs : malloc(count * sizeof *list->runs);
  list->begins = is_short ? list->small.begins : malloc((count + 1) * sizeof *list->begins);
  return (list->runs && list->begins) || umemList_fail_memory(list);
}

static bool take_keys(umemList *list) {
  size_t count = list->count;
  bool is_short = count <= umemListShort;
  list->keys = is_short ? list->small.keys : malloc(2 * count * sizeof *list->keys);
  list->room = is_short ? list->small.room : malloc(2 * count * sizeof *list->room);
  return (list->keys && list->room) || umemList_fail_memory(list);
}

/* Puts "item 7: " before a failure that was held, behind the name of the function. */
static void name_item(umemAttempt *held, size_t item) {
  char text[UMEM_MESSAGE_SIZE];
  char const *function = umem_thread.function ? umem_thread.function : "", *cause = held->text;
  size_t length = strlen(function);
  bool named = !strncmp(cause, function, length) && !strncmp(cause + length, ": ", 2);
  if (named) cause += length + 2;
  snprintf(text, sizeof text, "%s%sitem %zu: %.*s", named ? function : "", named ? ": " : "", item,
           (int)(sizeof text / 2), cause);
  memcpy(held->text, text, sizeof text);
}

bool umemList_fail(umemList *list, umemAttempt *held, size_t item) {
  list->failed = item;
  name_item(held, item);
  umemAttempt_record(held);
  return false;
}

void umemList_mark(umemList const *list, size_t begin, size_t end) {
  uint8_t *done = list->done;
  for (size_t i = begin; done && i < end; i++)
    done[umemList_item(list, i) / 8] |= (uint8_t)(1u << umemList_item(list, i) % 8);
}

static void mark_empty(umemList const *list) {
  uint8_t *done = list->done;
  for (size_t i = 0; done && i < list->count; i++)
    if (!list->items[i].nbytes) done[i / 8] |= (uint8_t)(1u << i % 8);
}

/* ---- what each item is ---- */

static bool check_item(umemCopyItem const *item) {
  umemVirtual *src = umem_check(item->src), *dst = umem_check(item->dst);
  if (!src || !dst || !item->nbytes) return src && dst;
  return umem_validate(src, item->src_adr, item->nbytes, umemReadable) &&
         umem_validate(dst, item->dst_adr, item->nbytes, umemWritable);
}

/* The first of them. */
static bool check_items(umemList *list, size_t count) {
  size_t i = 0;
  umemAttempt held;
  umemAttempt_begin(&held);
  for (list->nbytes = 0; i < count && check_item(&list->items[i]); i++)
    list->nbytes += list->items[i].nbytes;
  umemAttempt_end(&held);
  return i == count || umemList_fail(list, &held, i);
}

/* ---- memories ---- */

/* What the key of a memory begins with. */
enum {
  shared,  /* the addresses that the CPU and GPUs have in common */
  located, /* the two words that the method locate returns */
  named,   /* the table of methods and the space of the context that owns it */
  owned    /* that context, whose method is_same_device knows its like */
};

/* What is known of a context. */
typedef struct Known {
  umemVirtual *ctx;   /* NULL: nothing */
  umemVirtual *layer; /* that has the method locate, or NULL */
  bool addressed;     /* by what the CPU and GPUs have in common */
  bool knows_memory;  /* that of these addresses, or else of its own */
  uint32_t memory;
} Known;

typedef struct Check {
  umemList *list;
  umemListTable memories;
  Known known[2]; /* of the context that was last a source, and a target */
} Check;

static void end_check(Check *check) { umemListTable_end(&check->memories); }

/* Sets *memory to a number. Returns false after a failure. */
static bool find_memory(Check *check, uint64_t const key[umemListWords], uint32_t *memory) {
  bool is_new;
  umemListEntry *entry = umemListTable_take(&check->memories, check->list, key, &is_new);
  if (entry) *memory = entry->same;
  return entry;
}

/* Lets an older entry stand for the newest, if it is the memory of owner, too. Only contexts that
 * have a method to find out are compared with one another. */
static void find_same(Check *check, umemVirtual *owner) {
  umemListEntry *entries = umemListTable_entries(&check->memories);
  size_t newest = check->memories.count - 1;
  for (uint32_t i = 0; i < newest; i++) {
    if (entries[i].key[0] != owned || entries[i].same != i) continue;
    umemVirtual *other = (umemVirtual *)(uintptr_t)entries[i].key[1];
    if (!other->vptr->is_same_device(other, owner)) continue;
    entries[newest].same = i;
    return;
  }
}

/* The memory of a context whose addresses say nothing to others. Returns false after a failure. */
static bool find_own_memory(Check *check, umemVirtual *ctx, uint32_t *memory) {
  uint64_t before = umem_thread.failures;
  umemVirtual *owner = umem_owner_of_memory(ctx);
  if (umem_thread.failures != before) return false;
  bool is_new, knows = owner->vptr->is_same_device;
  uint64_t const by_name[] = {named, (uintptr_t)owner->vptr, owner->space[0], owner->space[1]};
  uint64_t const by_owner[] = {owned, (uintptr_t)owner, 0, 0};
  if (!umemListTable_take(&check->memories, check->list, knows ? by_owner : by_name, &is_new))
    return false;
  if (is_new && knows) find_same(check, owner);
  *memory = umemListTable_entries(&check->memories)[check->memories.last].same;
  return true;
}

/* Finds it when it is first needed: that of an own context asks for methods. */
static bool find_known_memory(Check *check, Known *known) {
  if (known->knows_memory) return true;
  uint64_t const key[] = {shared, 0, 0, 0};
  known->knows_memory = known->addressed ? find_memory(check, key, &known->memory)
                                         : find_own_memory(check, known->ctx, &known->memory);
  return known->knows_memory;
}

/* Learns what a context is. */
static void know(Known *known, umemVirtual *ctx) {
  *known = (Known){.ctx = ctx,
                   .layer = UMEM_LAYER_WITH(ctx, locate),
                   .addressed = (ctx->capabilities & (umemCpuReadable | umemDeviceAccessible)) &&
                                !(ctx->capabilities & umemOffsets)};
}

/* The bytes of one side of an item in one memory. */
typedef struct Span {
  uint32_t memory;
  uint64_t first;
} Span;

/* The memories in which the bytes at adr are: those that umem_share_bytes compares. Returns how
 * many there are, 1 or 2; 0 after a failure. */
static __attribute__((noinline)) unsigned
find_spans_slowly(Check *check, Known *known, umemVirtual *ctx, uintptr_t adr, Span spans[2]) {
  uint64_t where[3];
  unsigned count = 0;
  if (known->ctx != ctx) know(known, ctx);
  if (known->layer && known->layer->vptr->locate(known->layer, adr, where)) {
    spans[count].first = where[2];
    uint64_t const key[] = {located, where[0], where[1], 0};
    if (!find_memory(check, key, &spans[count++].memory)) return 0;
    if (!known->addressed) return count;
  }
  if (!find_known_memory(check, known)) return 0;
  spans[count++] = (Span){known->memory, adr};
  return count;
}

static inline unsigned find_spans(Check *check, Known *known, umemVirtual *ctx, uintptr_t adr,
                                  Span spans[2]) {
  if (known->ctx != ctx || known->layer || !known->knows_memory)
    return find_spans_slowly(check, known, ctx, adr, spans);
  spans[0] = (Span){known->memory, adr};
  return 1;
}

static inline unsigned find_source(Check *check, umemCopyItem const *item, Span spans[2]) {
  return find_spans(check, &check->known[0], item->src, item->src_adr, spans);
}

/* ---- overlaps ---- */

static size_t bytes_of(umemList const *list, Key const *key) {
  return list->items[key->item].nbytes;
}

static void widen(umemListSpan *span, uint64_t first, uint64_t end) {
  span->low = span->high ? umem_lesser(span->low, first) : first;
  span->high = umem_greater(span->high, end);
}

/* Notes what the targets, or the sources, span in each memory, and adds a key for each memory of
 * each target. Returns false after a failure. */
static inline bool span_side(Check *check, bool is_target, size_t *count) {
  umemList *list = check->list;
  for (size_t i = 0; i < list->count; i++) {
    umemCopyItem const *item = &list->items[i];
    Span spans[2];
    if (!item->nbytes) continue;
    unsigned found = is_target
                         ? find_spans(check, &check->known[1], item->dst, item->dst_adr, spans)
                         : find_source(check, item, spans);
    if (!found) return false;
    for (unsigned k = 0; k < found; k++) {
      umemListEntry *memory = &umemListTable_entries(&check->memories)[spans[k].memory];
      widen(is_target ? &memory->targets : &memory->sources, spans[k].first,
            spans[k].first + item->nbytes);
      if (is_target) list->keys[(*count)++] = (Key){spans[k].first, spans[k].memory, (uint32_t)i};
    }
  }
  return true;
}

/* Whether a source can have a byte of a target. */
static bool can_meet(Check *check) {
  umemListEntry const *entries = umemListTable_entries(&check->memories);
  size_t k = 0;
  while (k < check->memories.count && !(entries[k].targets.low < entries[k].sources.high &&
                                        entries[k].sources.low < entries[k].targets.high))
    k++;
  return k < check->memories.count;
}

static bool refuse(umemList *list, size_t item, void *ctx, char const *what, size_t other) {
  umemAttempt held;
  umemAttempt_begin(&held);
  umemVirtual_fail(ctx, umemValueError, "its %s has bytes of the target of item %zu", what, other);
  umemAttempt_end(&held);
  return umemList_fail(list, &held, item);
}

/* keys: of all targets, sorted. */
static bool check_targets(umemList *list, Key const *keys, size_t count) {
  for (size_t i = 1; i < count; i++) {
    Key const *one = &keys[i - 1], *next = &keys[i];
    if (one->group != next->group || next->first - one->first >= bytes_of(list, one)) continue;
    uint32_t later = one->item > next->item ? one->item : next->item;
    return refuse(list, later, list->items[later].dst, "target", one->item + next->item - later);
  }
  return true;
}

/* The first of the sorted keys that is not before this group and number. */
static size_t find_key(Key const *keys, size_t count, uint32_t group, uint64_t first) {
  Key const wanted = {first, group, 0};
  size_t low = 0;
  while (low < count) {
    size_t middle = low + (count - low) / 2;
    if (umemListKey_is_before(&keys[middle], &wanted))
      low = middle + 1;
    else
      count = middle;
  }
  return low;
}

/* Whether no target but its own has bytes of the source of item i. The targets do not overlap one
 * another: only the one before the first that begins in the source can reach into it. */
static bool check_source(Check *check, Key const *keys, size_t count, size_t i) {
  umemList *list = check->list;
  umemCopyItem const *item = &list->items[i];
  Span spans[2];
  unsigned found = find_source(check, item, spans);
  for (unsigned k = 0; k < found; k++) {
    uint32_t group = spans[k].memory;
    uint64_t first = spans[k].first;
    size_t at = find_key(keys, count, group, first);
    if (at && keys[at - 1].group == group && keys[at - 1].item != i &&
        first - keys[at - 1].first < bytes_of(list, &keys[at - 1]))
      return refuse(list, i, item->src, "source", keys[at - 1].item);
    for (; at < count && keys[at].group == group && keys[at].first - first < item->nbytes; at++)
      if (keys[at].item != i) return refuse(list, i, item->src, "source", keys[at].item);
  }
  return found;
}

static bool check_overlaps(umemList *list) {
  __attribute__((cleanup(end_check))) Check check;
  size_t count = 0;
  check.list = list;
  check.known[0].ctx = check.known[1].ctx = NULL;
  umemListTable_begin(&check.memories);
  if (!span_side(&check, true, &count)) return false;
  Key const *keys = umemListKey_sort(list->keys, list->room, count);
  if (!check_targets(list, keys, count) || !span_side(&check, false, &count)) return false;
  bool meets = can_meet(&check);
  for (size_t i = 0; meets && i < list->count; i++)
    if (list->items[i].nbytes && !check_source(&check, keys, count, i)) return false;
  return true;
}

/* ---- pairs and runs ---- */

static bool overlaps(umemCopyItem const *item) {
  umemLayout const run = {.size = sizeof run, .item_size = item->nbytes};
  return umem_may_overlap(item->src, item->src_adr, item->dst, item->dst_adr, item->nbytes) &&
         umem_overlap(item->src, item->src_adr, item->dst, item->dst_adr, &run) != umemOverlapNone;
}

umemListPair umemList_pair_at(umemList const *list, size_t k) {
  uint64_t const *key = (list->pairs.heap ? list->pairs.heap : list->pairs.few)[k].key;
  return (umemListPair){(umemVirtual *)(uintptr_t)key[0], (umemVirtual *)(uintptr_t)key[1], key[2]};
}

umemListPair umemList_pair(umemList const *list, size_t run) {
  return umemList_pair_at(list, umemList_group(list, run));
}

static bool take_pair(umemList *list, umemListPair const *pair, uint32_t *number) {
  bool is_new;
  uint64_t const key[] = {(uintptr_t)pair->src, (uintptr_t)pair->dst, pair->overlaps, 0};
  umemListEntry const *entry = umemListTable_take(&list->pairs, list, key, &is_new);
  if (entry) *number = entry->same;
  return entry;
}

/* Whether items of this source are copied in its order. */
static bool is_file(umemVirtual const *src) {
  return src->capabilities & (umemOffsets | umemFaultable);
}

/* Sorts the items by pairs, and then by the side that is a file, or else by the targets. */
static bool sort_items(umemList *list, size_t *count) {
  umemListPair last = {NULL, NULL, false}; /* of the item before */
  uint32_t number = 0;
  *count = 0;
  for (size_t i = 0; i < list->count; i++) {
    umemCopyItem const *item = &list->items[i];
    if (!item->nbytes) continue;
    umemListPair const pair = {item->src, item->dst, overlaps(item)};
    if (pair.src != last.src || pair.dst != last.dst || pair.overlaps != last.overlaps) {
      if (!take_pair(list, &pair, &number)) return false;
      last = pair;
    }
    uintptr_t first = is_file(pair.src) ? item->src_adr : item->dst_adr;
    list->keys[(*count)++] = (Key){first, number, (uint32_t)i};
  }
  list->sorted = umemListKey_sort(list->keys, list->room, *count);
  return true;
}

/* Where the block ends whose first byte is at adr; UINTPTR_MAX where it does not matter. */
static uintptr_t end_of_block(umemVirtual *ctx, uintptr_t adr) {
  umemFound block = UMEM_FOUND_INIT;
  umemSearch search = umemLive_search(ctx, adr, &block);
  if (search == umemSearchFound) return block.adr + block.nbytes;
  if (search == umemSearchBusy) return adr; /* the caller has the lock, perhaps */
  return block.ctx || umem_is_plain_host(umem_innermost(ctx)) ? UINTPTR_MAX : adr;
}

/* Whether the bytes of a run, up to end, are in one block. A file writes inside of one block, and
 * CUDA copies inside of one allocation, also where the next one follows at once. *limit: where the
 * block ends, 0 if that is not known yet. */
static bool is_in_block(umemVirtual *ctx, uintptr_t first, uintptr_t end, uintptr_t *limit) {
  if (!*limit) *limit = end_of_block(ctx, first);
  return end <= *limit;
}

bool umemList_is_in_block(umemVirtual *ctx, uintptr_t first, uintptr_t end) {
  umemFound block = UMEM_FOUND_INIT;
  uintptr_t limit = 0;
  if (!umem_can(ctx, umemDeviceAccessible)) return is_in_block(ctx, first, end, &limit);
  return umemLive_search(ctx, first, &block) == umemSearchFound && end <= block.adr + block.nbytes;
}

/* Whether an item that follows a run on both sides is in the same blocks, which end at limits. */
static bool shares_blocks(umemCopyRun const *run, umemCopyItem const *item, uintptr_t limits[2]) {
  return is_in_block(item->src, run->src_adr, item->src_adr + item->nbytes, &limits[0]) &&
         is_in_block(item->dst, run->dst_adr, item->dst_adr + item->nbytes, &limits[1]);
}

/* Joins neighbours of a pair to runs. */
static void join(umemList *list, size_t count) {
  umemListEntry const *pairs = umemListTable_entries(&list->pairs);
  Key const *sorted = list->sorted;
  umemCopyRun *run = NULL;
  uintptr_t limits[2] = {0, 0}; /* of the blocks of the run */
  list->run_count = 0;
  for (size_t i = 0; i < count; i++) {
    umemCopyItem const *item = &list->items[sorted[i].item];
    bool joins = run && sorted[i].group == sorted[i - 1].group && !pairs[sorted[i].group].key[2] &&
                 run->src_adr + run->nbytes == item->src_adr &&
                 run->dst_adr + run->nbytes == item->dst_adr && shares_blocks(run, item, limits);
    if (joins) {
      run->nbytes += item->nbytes;
      continue;
    }
    limits[0] = limits[1] = 0;
    list->begins[list->run_count] = (uint32_t)i;
    run = &list->runs[list->run_count++];
    *run = (umemCopyRun){item->src_adr, item->dst_adr, item->nbytes, umemRunWaits};
  }
  list->begins[list->run_count] = (uint32_t)count;
}

/* ---- lists of one pair, with targets that rise ---- */

/* The bytes of both sides, from the first one to the last. */
typedef struct Sides {
  uintptr_t src, src_end, dst, dst_end;
  bool falls; /* a source begins before the one of an item before */
} Sides;

/* Joins neighbours to runs, in the order of the list. False where an item is of another pair, empty
 * or out of range, or its target begins before the end of the one before. */
static bool join_rising(umemList *list, Sides *sides) {
  umemCopyItem const *first = list->items, *end = first + list->count;
  umemVirtual const *src = first->src, *dst = first->dst;
  umemCopyRun *run = NULL, *next = list->runs;
  uint32_t *begin = list->begins, number = 0;
  uintptr_t low = first->src_adr, high = 0, last = low, src_end = 0, dst_end = first->dst_adr;
  uintptr_t limits[2] = {0, 0}; /* of the blocks of the run */
  size_t nbytes = 0;
  bool falls = false;
  for (umemCopyItem const *item = first; item < end; item++, number++) {
    uintptr_t from = item->src_adr, to = item->dst_adr;
    size_t n = item->nbytes;
    if (item->src != src || item->dst != dst || to < dst_end || from + n <= from || to + n <= to)
      return false;
    if (run && from == src_end && to == dst_end && shares_blocks(run, item, limits)) {
      run->nbytes += n;
    } else {
      limits[0] = limits[1] = 0;
      *begin++ = number;
      run = next++;
      *run = (umemCopyRun){from, to, n, umemRunWaits};
    }
    falls |= from < last;
    last = from;
    src_end = from + n;
    dst_end = to + n;
    low = umem_lesser(low, from);
    high = umem_greater(high, src_end);
    nbytes += n;
  }
  *begin = number;
  list->run_count = (size_t)(next - list->runs);
  list->nbytes = nbytes;
  *sides = (Sides){low, high, first->dst_adr, dst_end, falls};
  return true;
}

/* Whether bytes of both sides may be the same. An offset is no address. */
static bool may_share(umemVirtual *src, umemVirtual *dst, Sides const *sides) {
  bool alike = !((src->capabilities ^ dst->capabilities) & umemOffsets);
  bool near = sides->src < sides->dst_end && sides->dst < sides->src_end;
  return (alike && near) || (UMEM_LAYER_WITH(src, locate) && UMEM_LAYER_WITH(dst, locate));
}

/* Whether it is such a list, whose items are all good. Records nothing. */
static bool is_rising(umemList *list) {
  umemVirtual *src = list->items->src, *dst = list->items->dst;
  Sides sides;
  if (!join_rising(list, &sides)) return false;
  list->unsorted = sides.falls && is_file(src);
  return sides.src != umem_null_of(src) && sides.dst != umem_null_of(dst) &&
         umem_can(src, umemReadable) && umem_can(dst, umemWritable) && !may_share(src, dst, &sides);
}

bool umemList_sort(umemList *list) {
  size_t sorted;
  if (!list->unsorted) return true;
  list->unsorted = false;
  if (!take_keys(list) || !sort_items(list, &sorted)) return false;
  join(list, sorted);
  return true;
}

/* ---- any list ---- */

void umemList_clear(size_t count, uint8_t *done, size_t *failed) {
  if (done) memset(done, 0, count / 8 + (count % 8 != 0));
  if (failed) *failed = count;
}

static void begin(umemList *list, umemCopyItem const *items, size_t count, uint8_t *done) {
  list->items = items;
  list->count = list->failed = count;
  list->done = done;
  list->nbytes = 0;
  list->keys = list->room = list->sorted = NULL;
  list->runs = NULL;
  list->begins = NULL;
  list->unsorted = false;
  list->run_count = list->at = list->skipped = list->marked = list->before = 0;
  list->until = 0;
  umemListTable_begin(&list->pairs);
  umemList_clear(count, done, NULL);
}

bool umemList_prepare(umemList *list, umemCopyItem const *items, size_t count, uint8_t *done) {
  size_t sorted;
  uint32_t number;
  begin(list, items, count, done);
  if (count > UINT32_MAX / 2)
    return UMEM_FAIL(NULL, umemValueError, "a list has at most %u items", UINT32_MAX / 2);
  if (count && !items) return UMEM_FAIL(NULL, umemValueError, "the list is NULL");
  if (!count) return true;
  if (!check_items(list, 1) || !take_runs(list)) return false;
  if (is_rising(list))
    return take_pair(list, &(umemListPair){items->src, items->dst, false}, &number);
  list->unsorted = false;
  if (!check_items(list, count) || !take_keys(list) || (count > 1 && !check_overlaps(list)) ||
      !sort_items(list, &sorted))
    return false;
  join(list, sorted);
  mark_empty(list);
  return true;
}
