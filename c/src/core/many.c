/* many.c - copies lists of runs between any contexts (umem_copy_many).
 *
 * The whole list is checked before the first byte moves. The items are then sorted by their pair of
 * contexts, and by their addresses within it, so that neighbours become one run and a file is read
 * in its order. The runs of a pair are copied by a context that takes lists (copy_runs in
 * virtual.h), or else one by one, by several threads where both sides allow that. */
#include "core/copy.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/hook.h"
#include "core/plan.h"
#include "core/status.h"
#include "core/threads.h"

#include <stdlib.h>
#include <string.h>

/* ---- sorting ---- */

typedef struct Key {
  uint64_t first; /* address or offset */
  uint32_t group; /* of keys that belong together, which sorts first */
  uint32_t item;
} Key;

enum { digit_bits = 11, digits = 1 << digit_bits };

static bool is_sorted(Key const *keys, size_t count) {
  for (size_t i = 1; i < count; i++)
    if (keys[i].group != keys[i - 1].group ? keys[i].group < keys[i - 1].group
                                           : keys[i].first < keys[i - 1].first)
      return false;
  return true;
}

static uint64_t digit_of(Key const *key, uint64_t least, unsigned shift, bool by_group) {
  return ((by_group ? key->group : key->first - least) >> shift) % digits;
}

/* By one digit, stable. */
static void sort_digit(Key const *from, Key *to, size_t count, uint64_t least, unsigned shift,
                       bool by_group) {
  size_t ends[digits] = {0};
  for (size_t i = 0; i < count; i++) ends[digit_of(&from[i], least, shift, by_group)]++;
  for (size_t k = 1; k < digits; k++) ends[k] += ends[k - 1];
  for (size_t i = count; i-- > 0;) to[--ends[digit_of(&from[i], least, shift, by_group)]] = from[i];
}

/* Sorts by all digits of values from 0 to most. Returns which of the two arrays has the result. */
static Key *sort_digits(Key *keys, Key *other, size_t count, uint64_t least, uint64_t most,
                        bool by_group) {
  for (unsigned shift = 0; shift < 64 && most >> shift; shift += digit_bits) {
    sort_digit(keys, other, count, least, shift, by_group);
    Key *sorted = other;
    other = keys;
    keys = sorted;
  }
  return keys;
}

/* Sorts the keys by digits (Knuth, TAOCP 5.2.5, algorithm R), with room for as many keys. Returns
 * which of the two arrays has the result. */
static Key *sort_keys(Key *keys, Key *room, size_t count) {
  if (is_sorted(keys, count)) return keys;
  uint64_t least = UINT64_MAX, most = 0, groups = 0;
  for (size_t i = 0; i < count; i++) {
    least = umem_lesser(least, keys[i].first);
    most = umem_greater(most, keys[i].first);
    groups = umem_greater(groups, keys[i].group);
  }
  Key *sorted = sort_digits(keys, room, count, least, most - least, false);
  return sort_digits(sorted, sorted == keys ? room : keys, count, 0, groups, true);
}

/* ---- the list ---- */

/* Items whose bytes are in one memory, by numbers that mean the same bytes there. */
typedef struct Space {
  umemVirtual *ctx; /* one of its contexts; NULL where names say which it is */
  uint64_t names[2];
  uint64_t low, high;   /* what the targets span; low > high: there is none */
  uint64_t from, until; /* and the sources */
} Space;

/* Items with the same two contexts. */
typedef struct Pair {
  umemVirtual *src, *dst;
  bool overlaps; /* each item with itself */
} Pair;

typedef struct List {
  umemCopyItem const *items;
  size_t count;
  Key *keys, *room;  /* 2 * count each: a target may have two */
  umemCopyRun *runs; /* count */
  size_t run_count;
  uint32_t *begins; /* of each run, in the sorted keys, and the end of the last one */
  Space *spaces;
  Pair *pairs;
  size_t space_count, space_room, pair_count, pair_room;
  size_t failed; /* the item; count where none has failed */
} List;

static void release(List *list) {
  free(list->keys);
  free(list->room);
  free(list->runs);
  free(list->begins);
  free(list->spaces);
  free(list->pairs);
}

static bool lacks_memory(List const *list) {
  return UMEM_FAIL(list->items->src, umemMemoryError, "no memory to sort the items");
}

static bool take(List *list) {
  size_t count = list->count;
  list->keys = malloc(2 * count * sizeof *list->keys);
  list->room = malloc(2 * count * sizeof *list->room);
  list->runs = malloc(count * sizeof *list->runs);
  list->begins = malloc((count + 1) * sizeof *list->begins);
  return (list->keys && list->room && list->runs && list->begins) || lacks_memory(list);
}

/* Makes room for one more entry of a table of the list. */
static bool grow(List const *list, void **table, size_t entry, size_t count, size_t *room) {
  if (count < *room) return true;
  size_t more = *room ? 2 * *room : 8;
  void *longer = realloc(*table, more * entry);
  if (!longer) return lacks_memory(list);
  *table = longer;
  *room = more;
  return true;
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

/* Records what was held as the failure of item. */
static bool fail_item(List *list, umemAttempt *held, size_t item) {
  list->failed = item;
  name_item(held, item);
  umemAttempt_record(held);
  return false;
}

/* ---- what each item is ---- */

static bool check_item(umemCopyItem const *item) {
  umemVirtual *src = umem_check(item->src), *dst = umem_check(item->dst);
  if (!src || !dst || !item->nbytes) return src && dst;
  return umem_validate(src, item->src_adr, item->nbytes, umemReadable) &&
         umem_validate(dst, item->dst_adr, item->nbytes, umemWritable);
}

static bool check_items(List *list) {
  size_t i = 0;
  umemAttempt held;
  umemAttempt_begin(&held);
  while (i < list->count && check_item(&list->items[i])) i++;
  umemAttempt_end(&held);
  return i == list->count || fail_item(list, &held, i);
}

/* ---- spaces ---- */

static uint32_t const no_space = UINT32_MAX;

/* What locate returned says which one it is, or all zero for addresses that the CPU and GPUs have
 * in common, or ctx. */
static bool is_space(Space const *space, umemVirtual *ctx, uint64_t const names[2]) {
  if (!ctx || !space->ctx)
    return !ctx && !space->ctx && space->names[0] == names[0] && space->names[1] == names[1];
  return space->ctx == ctx || umem_is_one_memory(space->ctx, ctx);
}

/* Returns its number; no_space, and records a failure, without memory. */
static uint32_t space_of(List *list, umemVirtual *ctx, uint64_t const names[2]) {
  for (size_t i = list->space_count; i-- > 0;)
    if (is_space(&list->spaces[i], ctx, names)) return (uint32_t)i;
  if (!grow(list, (void **)&list->spaces, sizeof *list->spaces, list->space_count,
            &list->space_room))
    return no_space;
  Space *space = &list->spaces[list->space_count++];
  *space = (Space){.ctx = ctx, .low = UINT64_MAX, .from = UINT64_MAX};
  if (!ctx) memcpy(space->names, names, sizeof space->names);
  return (uint32_t)(space - list->spaces);
}

/* The bytes of one side of an item in one space. */
typedef struct Span {
  uint32_t space; /* or no_space */
  uint64_t first;
} Span;

/* The spaces in which the bytes at adr are: those that umem_share_bytes compares. Returns how many
 * there are, 1 or 2. */
static unsigned find_spans(List *list, umemVirtual *ctx, uintptr_t adr, Span spans[2]) {
  uint64_t where[3];
  uint64_t const none[2] = {0, 0};
  unsigned count = 0;
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, locate);
  bool addressed = (ctx->capabilities & (umemCpuReadable | umemDeviceAccessible)) &&
                   !(ctx->capabilities & umemOffsets);
  if (addressed) spans[count++] = (Span){space_of(list, NULL, none), adr};
  if (layer && layer->vptr->locate(layer, adr, where))
    spans[count++] = (Span){space_of(list, NULL, where), where[2]};
  if (!count) spans[count++] = (Span){space_of(list, ctx, none), adr};
  return count;
}

/* ---- overlaps ---- */

static size_t bytes_of(List const *list, Key const *key) { return list->items[key->item].nbytes; }

/* Adds a key for each space of each target. Returns false after a failure. */
static bool add_targets(List *list, size_t *count) {
  *count = 0;
  for (size_t i = 0; i < list->count; i++) {
    umemCopyItem const *item = &list->items[i];
    Span spans[2];
    unsigned found = item->nbytes ? find_spans(list, item->dst, item->dst_adr, spans) : 0;
    for (unsigned k = 0; k < found; k++) {
      if (spans[k].space == no_space) return false;
      Space *space = &list->spaces[spans[k].space];
      space->low = umem_lesser(space->low, spans[k].first);
      space->high = umem_greater(space->high, spans[k].first + item->nbytes);
      list->keys[(*count)++] = (Key){spans[k].first, spans[k].space, (uint32_t)i};
    }
  }
  return true;
}

/* Notes what the sources span in each space. Returns false after a failure. *meets: whether a
 * source can have a byte of a target. */
static bool span_sources(List *list, bool *meets) {
  *meets = false;
  for (size_t i = 0; i < list->count; i++) {
    umemCopyItem const *item = &list->items[i];
    Span spans[2];
    unsigned found = item->nbytes ? find_spans(list, item->src, item->src_adr, spans) : 0;
    for (unsigned k = 0; k < found; k++) {
      if (spans[k].space == no_space) return false;
      Space *space = &list->spaces[spans[k].space];
      space->from = umem_lesser(space->from, spans[k].first);
      space->until = umem_greater(space->until, spans[k].first + item->nbytes);
      *meets = *meets || (space->low < space->until && space->from < space->high);
    }
  }
  return true;
}

static bool refuse(List *list, size_t item, void *ctx, char const *what, size_t other) {
  umemAttempt held;
  umemAttempt_begin(&held);
  umemVirtual_fail(ctx, umemValueError, "its %s has bytes of the target of item %zu", what, other);
  umemAttempt_end(&held);
  return fail_item(list, &held, item);
}

/* keys: of all targets, sorted. */
static bool check_targets(List *list, Key const *keys, size_t count) {
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
  size_t low = 0;
  while (low < count) {
    size_t middle = low + (count - low) / 2;
    Key const *key = &keys[middle];
    if (key->group != group ? key->group < group : key->first < first)
      low = middle + 1;
    else
      count = middle;
  }
  return low;
}

/* Whether no target but its own has bytes of the source of item i. The targets do not overlap one
 * another: only the one before the first that begins in the source can reach into it. */
static bool check_source(List *list, Key const *keys, size_t count, size_t i) {
  umemCopyItem const *item = &list->items[i];
  Span spans[2];
  unsigned found = find_spans(list, item->src, item->src_adr, spans);
  for (unsigned k = 0; k < found; k++) {
    uint32_t group = spans[k].space;
    uint64_t first = spans[k].first;
    size_t at = find_key(keys, count, group, first);
    if (at && keys[at - 1].group == group && keys[at - 1].item != i &&
        first - keys[at - 1].first < bytes_of(list, &keys[at - 1]))
      return refuse(list, i, item->src, "source", keys[at - 1].item);
    for (; at < count && keys[at].group == group && keys[at].first - first < item->nbytes; at++)
      if (keys[at].item != i) return refuse(list, i, item->src, "source", keys[at].item);
  }
  return true;
}

static bool check_overlaps(List *list) {
  bool meets;
  size_t count;
  if (!add_targets(list, &count)) return false;
  Key const *keys = sort_keys(list->keys, list->room, count);
  if (!check_targets(list, keys, count) || !span_sources(list, &meets)) return false;
  for (size_t i = 0; meets && i < list->count; i++)
    if (list->items[i].nbytes && !check_source(list, keys, count, i)) return false;
  return true;
}

/* ---- pairs and runs ---- */

static bool overlaps(umemCopyItem const *item) {
  umemLayout const run = {.size = sizeof run, .item_size = item->nbytes};
  return umem_may_overlap(item->src, item->src_adr, item->dst, item->dst_adr, item->nbytes) &&
         umem_overlap(item->src, item->src_adr, item->dst, item->dst_adr, &run) != umemOverlapNone;
}

/* Sets *pair to the number of the pair. Returns false, and records a failure, without memory. */
static bool find_pair(List *list, umemCopyItem const *item, uint32_t *pair) {
  Pair const wanted = {item->src, item->dst, overlaps(item)};
  for (size_t i = list->pair_count; i-- > 0;) {
    Pair const *known = &list->pairs[i];
    *pair = (uint32_t)i;
    if (known->src == wanted.src && known->dst == wanted.dst && known->overlaps == wanted.overlaps)
      return true;
  }
  if (!grow(list, (void **)&list->pairs, sizeof *list->pairs, list->pair_count, &list->pair_room))
    return false;
  *pair = (uint32_t)list->pair_count;
  list->pairs[list->pair_count++] = wanted;
  return true;
}

/* Sorts the items by pairs, and then by the side that is a file, or else by the targets. */
static bool sort_items(List *list, Key const **sorted, size_t *count) {
  *count = 0;
  for (size_t i = 0; i < list->count; i++) {
    umemCopyItem const *item = &list->items[i];
    if (!item->nbytes) continue;
    bool by_source = ((umemVirtual const *)item->src)->capabilities & umemOffsets;
    Key key = {.first = by_source ? item->src_adr : item->dst_adr, .item = (uint32_t)i};
    if (!find_pair(list, item, &key.group)) return false;
    list->keys[(*count)++] = key;
  }
  *sorted = sort_keys(list->keys, list->room, *count);
  return true;
}

/* Joins neighbours of a pair to runs. */
static void join(List *list, Key const *sorted, size_t count) {
  umemCopyRun *run = NULL;
  for (size_t i = 0; i < count; i++) {
    umemCopyItem const *item = &list->items[sorted[i].item];
    bool joins =
        run && sorted[i].group == sorted[i - 1].group && !list->pairs[sorted[i].group].overlaps &&
        run->src_adr + run->nbytes == item->src_adr && run->dst_adr + run->nbytes == item->dst_adr;
    if (joins) {
      run->nbytes += item->nbytes;
      continue;
    }
    list->begins[list->run_count] = (uint32_t)i;
    run = &list->runs[list->run_count++];
    *run = (umemCopyRun){item->src_adr, item->dst_adr, item->nbytes, umemRunWaits};
  }
  list->begins[list->run_count] = (uint32_t)count;
}

/* ---- copying runs ---- */

/* Longer runs are copied by several threads each. */
static size_t const long_run = 4 << 20;
/* What a thread of its own is worth, where the CPU reads the source, and where each run is a call
 * of the system. */
static size_t const part_in_memory = 1 << 20, part_in_calls = 128 << 10;
static size_t const most_taken = 64; /* runs that a thread takes at a time */

typedef struct Job {
  umemVirtual *src, *dst;
  umemCopyRun *runs;
  size_t count;
  size_t taken;     /* runs that a thread takes at a time */
  size_t next;      /* the first run that no thread has taken; atomic, as is over */
  bool over;        /* a run has failed: take no other */
  bool shares;      /* leaves long runs out */
  umemAttempt held; /* the first failure */
} Job;

/* Copies those that wait. Returns false after a failure, of which the job keeps the first. */
static bool copy_part(Job *job, size_t begin, size_t end) {
  umemAttempt held;
  umemAttempt_begin(&held);
  uint64_t before = umem_thread.failures;
  size_t i = begin;
  for (; i < end; i++) {
    umemCopyRun *run = &job->runs[i];
    if (run->state != umemRunWaits || (job->shares && run->nbytes >= long_run)) continue;
    umem_copy_run(job->src, run->src_adr, job->dst, run->dst_adr, run->nbytes);
    if (umem_thread.failures != before) break;
    run->state = umemRunDone;
  }
  umemAttempt_end(&held);
  if (i == end) return true;
  if (!__atomic_exchange_n(&job->over, true, __ATOMIC_ACQ_REL)) {
    job->runs[i].state = umemRunFailed;
    job->held = held;
  }
  return false;
}

/* The work of one thread. */
static void copy_parts(void *data, unsigned thread) {
  (void)thread;
  Job *job = data;
  while (!__atomic_load_n(&job->over, __ATOMIC_RELAXED)) {
    size_t begin = __atomic_fetch_add(&job->next, job->taken, __ATOMIC_RELAXED);
    if (begin >= job->count || !copy_part(job, begin, umem_lesser(begin + job->taken, job->count)))
      return;
  }
}

static size_t bytes_of_runs(umemCopyRun const *runs, size_t count) {
  size_t nbytes = 0;
  for (size_t i = 0; i < count; i++) nbytes += runs[i].nbytes;
  return nbytes;
}

/* How many threads share the runs: one where the order of a queue matters, and where one thread
 * writes to a file as fast as several. */
static unsigned count_threads(Job const *job) {
  unsigned const queued = umemOrdered | umemDeviceShared;
  bool shares = umem_can(job->src, umemConcurrent) && umem_can(job->dst, umemConcurrent) &&
                !((job->src->capabilities | job->dst->capabilities) & queued) &&
                umem_cpu_writes(job->dst);
  if (!shares) return 1;
  size_t nbytes = 0;
  for (size_t i = 0; i < job->count; i++)
    if (job->runs[i].nbytes < long_run) nbytes += job->runs[i].nbytes;
  size_t part = umem_cpu_reads(job->src) ? part_in_memory : part_in_calls;
  unsigned threads = umem_parallel_pieces(nbytes, part, umemParallelMost);
  return (unsigned)umem_lesser(threads, job->count);
}

static void copy_each(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count) {
  Job job = {.src = src, .dst = dst, .runs = runs, .count = count};
  unsigned threads = count_threads(&job);
  job.shares = threads > 1;
  job.taken = threads > 1 ? umem_lesser(most_taken, count / threads / 4 + 1) : count;
  umem_parallel(threads, copy_parts, &job);
  job.shares = false;
  if (threads > 1 && !job.over) copy_part(&job, 0, count);
  if (job.over) umemAttempt_record(&job.held);
}

/* Whether self, which is src or dst, copies the runs. */
static bool does(umemVirtual *self, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                 size_t count) {
  return UMEM_SLOT(self, copy_runs) && self->vptr->copy_runs(self, src, dst, runs, count);
}

typedef struct Runs {
  umemVirtual *src, *dst;
  umemCopyRun *runs;
  size_t count;
} Runs;

static bool copy_job(void *job) {
  Runs const *it = job;
  if (!does(it->src, it->src, it->dst, it->runs, it->count) &&
      (it->src == it->dst || !does(it->dst, it->src, it->dst, it->runs, it->count)))
    copy_each(it->src, it->dst, it->runs, it->count);
  return true;
}

void umem_copy_runs(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count) {
  Runs job = {src, dst, runs, count};
  if (!umem_is_watched()) {
    copy_job(&job);
    return;
  }
  umemWay way = umem_cpu_reads(src) && umem_cpu_writes(dst) ? umemWayMemcpy : umemWayMethod;
  umemStep const step = {
      .src = src, .dst = dst, .way = way, .nbytes = bytes_of_runs(runs, count), .is_copy = true};
  umem_step_hook(&step, copy_job, &job);
}

/* ---- copying the list ---- */

static void copy_over_itself(Pair const *pair, umemCopyRun *runs, size_t count) {
  uint64_t before = umem_thread.failures;
  for (size_t i = 0; i < count && umem_thread.failures == before; i++) {
    umem_copy_any_run(pair->src, runs[i].src_adr, pair->dst, runs[i].dst_adr, runs[i].nbytes);
    runs[i].state = umem_thread.failures == before ? umemRunDone : umemRunFailed;
  }
}

/* Of runs that a failed copy has left: the one that has failed, as far as that is known. */
static size_t find_failed(umemCopyRun const *runs, size_t count) {
  size_t first = count;
  for (size_t i = 0; i < count; i++) {
    if (runs[i].state == umemRunFailed) return i;
    if (runs[i].state == umemRunWaits && first == count) first = i;
  }
  return first < count ? first : 0;
}

/* Sets the bits of sorted items. done may be NULL. */
static void mark(uint8_t *done, Key const *sorted, size_t begin, size_t end) {
  for (size_t i = begin; done && i < end; i++)
    done[sorted[i].item / 8] |= (uint8_t)(1u << sorted[i].item % 8);
}

/* Finds out which item of a run has failed: copies them one by one until one fails, whose failure
 * replaces what was held. Those before it are done. If none fails now, it was the first. Returns
 * its number in the sorted keys. */
static size_t find_item(List *list, Key const *sorted, size_t begin, size_t end, umemAttempt *held,
                        uint8_t *done) {
  if (end - begin == 1) return begin;
  for (size_t i = begin; i < end; i++) {
    umemCopyItem const *item = &list->items[sorted[i].item];
    umemAttempt again;
    umemAttempt_begin(&again);
    umem_copy_run(item->src, item->src_adr, item->dst, item->dst_adr, item->nbytes);
    umemAttempt_end(&again);
    if (!umemAttempt_failed(&again)) continue;
    *held = again;
    mark(done, sorted, begin, i);
    return i;
  }
  mark(done, sorted, begin + 1, end);
  return begin;
}

/* Copies the runs [begin, end), which are those of one pair. */
static bool copy_pair(List *list, Key const *sorted, size_t begin, size_t end, uint8_t *done) {
  Pair const *pair = &list->pairs[sorted[list->begins[begin]].group];
  umemCopyRun *runs = list->runs + begin;
  umemAttempt held;
  umemAttempt_begin(&held);
  if (pair->overlaps)
    copy_over_itself(pair, runs, end - begin);
  else
    umem_copy_runs(pair->src, pair->dst, runs, end - begin);
  umemAttempt_end(&held);
  bool failed = umemAttempt_failed(&held);
  for (size_t k = begin; k < end; k++)
    if (!failed || list->runs[k].state == umemRunDone)
      mark(done, sorted, list->begins[k], list->begins[k + 1]);
  if (!failed) return true;
  size_t k = begin + find_failed(runs, end - begin);
  size_t i = find_item(list, sorted, list->begins[k], list->begins[k + 1], &held, done);
  return fail_item(list, &held, sorted[i].item);
}

static void copy_pairs(List *list, Key const *sorted, uint8_t *done) {
  bool good = true;
  for (size_t begin = 0, end; good && begin < list->run_count; begin = end) {
    uint32_t pair = sorted[list->begins[begin]].group;
    end = begin + 1;
    while (end < list->run_count && sorted[list->begins[end]].group == pair) end++;
    good = copy_pair(list, sorted, begin, end, done);
  }
}

static void mark_empty(List const *list, uint8_t *done) {
  for (size_t i = 0; done && i < list->count; i++)
    if (!list->items[i].nbytes) done[i / 8] |= (uint8_t)(1u << i % 8);
}

static void copy_list(List *list, uint8_t *done) {
  Key const *sorted;
  size_t count;
  if (!check_items(list) || !take(list) || !check_overlaps(list) ||
      !sort_items(list, &sorted, &count))
    return;
  join(list, sorted, count);
  mark_empty(list, done);
  copy_pairs(list, sorted, done);
}

void umem_copy_list(umemCopyItem const *items, size_t count, uint8_t *done, size_t *failed) {
  __attribute__((cleanup(release))) List list = {.items = items, .count = count, .failed = count};
  if (done) memset(done, 0, count / 8 + (count % 8 != 0));
  if (failed) *failed = count;
  if (count > UINT32_MAX / 2)
    umemVirtual_fail(NULL, umemValueError, "a list has at most %u items", UINT32_MAX / 2);
  else if (count && !items)
    umemVirtual_fail(NULL, umemValueError, "the list is NULL");
  else if (count)
    copy_list(&list, done);
  if (failed) *failed = list.failed;
}
