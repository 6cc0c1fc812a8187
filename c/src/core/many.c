/* many.c - copies the runs of a list (list.c), all at once or piece by piece.
 *
 * Short runs at equal distances, such as the rows of a part of an array, are copied as the items of
 * one layout. All others of a pair are copied by a context that takes lists (copy_runs in
 * virtual.h), or else one by one, by several threads where both sides allow that. Who wants to know
 * how far a list is gets pieces of whole runs: whoever copies short ones stops after a while
 * (umem_thread.until), and the pieces of long ones become longer until they take long enough. */
#include "base/number.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/copy.h"
#include "core/hook.h"
#include "core/status.h"
#include "core/threads.h"

#include <string.h>

/* ---- runs of two contexts ---- */

/* Longer runs are copied by several threads each. */
static size_t const long_run = 4 << 20;
/* What a thread of its own is worth, where the CPU reads the source, and where each run is a call
 * of the system. */
static size_t const part_in_memory = 1 << 20, part_in_calls = 128 << 10;
static size_t const most_taken = 64;      /* runs that a thread takes at a time */
static size_t const few_taken = 16;       /* by one thread that looks at the clock between */
static size_t const short_run = 32 << 10; /* memmove is not always best for longer ones */

typedef struct Job {
  umemVirtual *src, *dst;
  umemCopyRun *runs;
  size_t count;
  size_t taken;     /* runs that a thread takes at a time */
  size_t next;      /* the first run that no thread has taken; atomic, as is over */
  bool over;        /* a run has failed: take no other */
  bool shares;      /* leaves long runs out */
  bool plain;       /* RAM to RAM and not watched: a short run is a memmove */
  uint64_t until;   /* take no other then; 0: never */
  umemAhead *ahead; /* NULL: none */
  umemAttempt held; /* the first failure */
} Job;

static inline void copy_one(Job const *job, umemCopyRun const *run) {
  if (job->plain && run->nbytes <= short_run)
    memmove((void *)run->dst_adr, (void const *)run->src_adr, run->nbytes);
  else
    umem_copy_run(job->src, run->src_adr, job->dst, run->dst_adr, run->nbytes);
}

/* Copies those that wait. Returns false after a failure, of which the job keeps the first. */
static bool copy_part(Job *job, size_t begin, size_t end) {
  umemAttempt held;
  umemAttempt_begin(&held);
  uint64_t before = umem_thread.failures;
  size_t i = begin;
  for (; i < end; i++) {
    umemCopyRun *run = &job->runs[i];
    if (run->state != umemRunWaits || (job->shares && run->nbytes >= long_run)) continue;
    copy_one(job, run);
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

/* Whether to stop. Some runs are copied in any case. */
static bool is_late(Job const *job) {
  return job->until && __atomic_load_n(&job->next, __ATOMIC_RELAXED) &&
         umemClock_read(CLOCK_MONOTONIC) >= job->until;
}

/* Takes the next part, and announces it. Returns its beginning; job->count if none is left. */
static size_t take_part(Job *job) {
  if (__atomic_load_n(&job->over, __ATOMIC_RELAXED) || is_late(job)) return job->count;
  size_t begin = __atomic_fetch_add(&job->next, job->taken, __ATOMIC_RELAXED);
  if (begin >= job->count) return job->count;
  if (job->ahead)
    job->ahead(job->src, job->runs + begin, umem_lesser(job->taken, job->count - begin));
  return begin;
}

/* The work of one thread. It takes a part that is announced before it copies the previous one. */
static void copy_parts(void *data, unsigned thread) {
  (void)thread;
  Job *job = data;
  for (size_t begin = take_part(job), next; begin < job->count; begin = next) {
    next = job->ahead ? take_part(job) : 0;
    if (!copy_part(job, begin, umem_lesser(begin + job->taken, job->count))) return;
    if (!job->ahead) next = take_part(job);
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

void umem_copy_each_run(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count,
                        umemAhead *ahead) {
  Job job = {.src = src, .dst = dst, .runs = runs, .count = count, .ahead = ahead};
  job.plain = umem_is_plain_host(src) && umem_is_plain_host(dst) && !umem_is_watched();
  unsigned threads = count_threads(&job);
  job.shares = threads > 1;
  job.until = umem_thread.until;
  job.taken = threads > 1 ? umem_lesser(most_taken, count / threads / 4 + 1)
              : job.until ? few_taken
              : ahead     ? most_taken
                          : count;
  umem_parallel(threads, copy_parts, &job);
  size_t end = umem_lesser(job.next, count);
  job.shares = false;
  if (threads > 1 && !job.over) copy_part(&job, 0, end);
  if (job.over)
    umemAttempt_record(&job.held);
  else if (end < count)
    umem_thread.stopped = true;
}

/* Whether self, which is src or dst, copies the runs. */
static bool does(umemVirtual *self, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                 size_t count) {
  return UMEM_SLOT(self, copy_runs) && self->vptr->copy_runs(self, src, dst, runs, count);
}

static void copy_scattered(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count) {
  if (!does(src, src, dst, runs, count) && (src == dst || !does(dst, src, dst, runs, count)))
    umem_copy_each_run(src, dst, runs, count, NULL);
}

/* ---- rows: runs at equal distances ---- */

/* Fewer rows, or longer ones, gain nothing. The CPU cannot address a GPU's memory: several threads
 * fill buffers for it with these rows sooner, from so many bytes on. */
enum { least_rows = 16, most_rank = 8 };
static size_t const most_row = 4 << 10, most_row_to_fill = 64, least_filled = 1 << 20;
static size_t const most_in_time = 8 << 20; /* bytes, between two looks at the clock */

typedef struct Rows {
  size_t extents[most_rank];
  ptrdiff_t src[most_rank], dst[most_rank];
  umemLayout layout; /* of the last dimensions of these */
} Rows;

/* Whether run i is as far from the one `block` before it as that one's block is from the next. */
static bool follows(umemCopyRun const *runs, size_t block, size_t i) {
  umemCopyRun const *run = &runs[i], *earlier = run - block;
  return run->nbytes == earlier->nbytes && run->state == umemRunWaits &&
         run->src_adr - earlier->src_adr == runs[block].src_adr - runs->src_adr &&
         run->dst_adr - earlier->dst_adr == runs[block].dst_adr - runs->dst_adr;
}

/* Describes the first runs by a layout: as many as it holds, which is returned. */
static size_t find_rows(Rows *rows, umemCopyRun const *runs, size_t count) {
  size_t block = 1, end = 1;
  int k = most_rank;
  for (; k && block <= count / 2; block = end, k--) {
    while (end < count && follows(runs, block, end)) end++;
    end -= end % block;
    if (end == block) break;
    rows->extents[k - 1] = end / block;
    rows->src[k - 1] = (ptrdiff_t)(runs[block].src_adr - runs->src_adr);
    rows->dst[k - 1] = (ptrdiff_t)(runs[block].dst_adr - runs->dst_adr);
  }
  rows->layout = (umemLayout){sizeof rows->layout, runs->nbytes,  most_rank - k,
                              rows->extents + k,   rows->src + k, rows->dst + k};
  return block;
}

/* How many runs of at most `longest` bytes, from the first one on, are worth a layout; 0: none. */
static size_t count_rows(Rows *rows, umemCopyRun const *runs, size_t count, size_t longest) {
  if (runs->state != umemRunWaits || runs->nbytes > longest) return 0;
  size_t most = umem_thread.until ? most_in_time / runs->nbytes : count;
  size_t found = find_rows(rows, runs, umem_lesser(count, most));
  return found < least_rows ? 0 : found;
}

/* Copies them. Returns false, with nothing recorded, if that fails, or if apart is true and the two
 * sides may share bytes: one by one it is known which has failed. What is between rows may be read:
 * it belongs to their block. */
static bool copy_rows(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout, bool apart) {
  umemRanges ranges;
  umemAttempt held;
  umemAttempt_begin(&held);
  bool good = umem_check_strided(src, src_adr, dst, dst_adr, layout, &ranges) && ranges.src_bytes &&
              umemList_is_in_block(src, ranges.src, ranges.src + ranges.src_bytes) &&
              umemList_is_in_block(dst, ranges.dst, ranges.dst + ranges.dst_bytes);
  if (good && apart)
    good = !umem_may_overlap(src, ranges.src, dst, ranges.dst,
                             umem_greater(ranges.src_bytes, ranges.dst_bytes));
  if (good) umem_copy_layout(src, src_adr, dst, dst_adr, layout, &ranges);
  umemAttempt_end(&held);
  return good && !umemAttempt_failed(&held);
}

/* Whether the CPU reaches the bytes of a side without a call for each run, or a GPU does. An
 * adaptor's upstream sees to that. */
static bool has_rows(umemVirtual *ctx) {
  return !UMEM_SLOT(ctx, upstream) &&
         ((ctx->capabilities & (umemCpuReadable | umemDeviceAccessible)) || UMEM_SLOT(ctx, window));
}

static bool is_on_gpu(umemVirtual const *ctx) {
  return (ctx->capabilities & (umemCpuReadable | umemDeviceAccessible)) == umemDeviceAccessible;
}

typedef struct Runs {
  umemVirtual *src, *dst;
  umemCopyRun *runs;
  size_t count;
} Runs;

/* Whether to stop after a failure, or when the time is over. */
static bool is_over(uint64_t before) {
  if (umem_thread.until && umemClock_read(CLOCK_MONOTONIC) >= umem_thread.until)
    umem_thread.stopped = true;
  return umem_thread.failures != before || umem_thread.stopped;
}

/* The bytes of the longest row of two contexts that is worth a layout; 0: none is. */
static size_t longest_row(umemVirtual *src, umemVirtual *dst, size_t nbytes) {
  if (!has_rows(src) || !has_rows(dst)) return 0;
  bool fills = (is_on_gpu(src) || is_on_gpu(dst)) && nbytes >= least_filled;
  return fills ? most_row_to_fill : most_row;
}

static void copy_some(Runs const *it, size_t begin, size_t end) {
  if (begin < end) copy_scattered(it->src, it->dst, it->runs + begin, end - begin);
}

static bool copy_job(void *job) {
  Runs const *it = job;
  uint64_t before = umem_thread.failures;
  size_t begin = 0, count = it->count, nbytes = bytes_of_runs(it->runs, count);
  size_t longest = count < least_rows ? 0 : longest_row(it->src, it->dst, nbytes);
  for (size_t i = 0, rows; longest && i < count; i += rows ? rows : 1) {
    Rows found;
    rows = count_rows(&found, it->runs + i, count - i, longest);
    if (!rows) continue;
    copy_some(it, begin, i);
    if (i && is_over(before)) return true;
    if (copy_rows(it->src, it->runs[i].src_adr, it->dst, it->runs[i].dst_adr, &found.layout, false))
      umem_set_runs_done(it->runs + i, rows);
    else
      copy_some(it, i, i + rows);
    begin = i + rows;
    if (begin < count && is_over(before)) return true;
  }
  copy_some(it, begin, count);
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

/* ---- a piece of the list ---- */

/* Of runs that a failed copy has left: the one that has failed, as far as that is known. */
static size_t find_failed(umemCopyRun const *runs, size_t count) {
  size_t first = count;
  for (size_t i = 0; i < count; i++) {
    if (runs[i].state == umemRunFailed) return i;
    if (runs[i].state == umemRunWaits && first == count) first = i;
  }
  return first < count ? first : 0;
}

/* Finds out which item of a run has failed, of those that are not known to be done: copies them one
 * by one until one fails, whose failure replaces what was held. Those before it are done. If none
 * fails now, it was the first. Returns its number in the sorted keys. */
static size_t find_item(umemList *list, size_t run, umemAttempt *held) {
  size_t begin = umem_greater(list->begins[run], list->marked), end = list->begins[run + 1];
  if (end - begin == 1) return begin;
  for (size_t i = begin; i < end; i++) {
    umemCopyItem const *item = &list->items[umemList_item(list, i)];
    umemAttempt again;
    umemAttempt_begin(&again);
    umem_copy_run(item->src, item->src_adr, item->dst, item->dst_adr, item->nbytes);
    umemAttempt_end(&again);
    if (!umemAttempt_failed(&again)) continue;
    *held = again;
    umemList_mark(list, begin, i);
    return i;
  }
  umemList_mark(list, begin + 1, end);
  return begin;
}

static void copy_over_itself(umemListPair const *pair, umemCopyRun *runs, size_t count) {
  uint64_t before = umem_thread.failures;
  for (size_t i = 0; i < count && umem_thread.failures == before; i++) {
    umem_copy_any_run(pair->src, runs[i].src_adr, pair->dst, runs[i].dst_adr, runs[i].nbytes);
    runs[i].state = umem_thread.failures == before ? umemRunDone : umemRunFailed;
  }
}

/* As umem_copy_runs, until the list's time has come. Returns how many are copied if none fails, of
 * which there is one in any case. */
static size_t copy_until(umemList const *list, umemListPair const *pair, umemCopyRun *runs,
                         size_t count) {
  uint64_t until = umem_thread.until;
  umem_thread.until = list->until;
  umem_thread.stopped = false;
  umem_copy_runs(pair->src, pair->dst, runs, count);
  umem_thread.until = until;
  size_t copied = umem_thread.stopped ? 0 : count;
  while (copied < count && runs[copied].state != umemRunWaits) copied++;
  return copied;
}

/* Copies runs of the list, or a part of the run `first`. Returns how many runs; 0 after a
 * failure. */
static size_t copy_these(umemList *list, umemListPair const *pair, umemCopyRun *runs, size_t count,
                         size_t first) {
  size_t copied = count;
  umemAttempt held;
  umemAttempt_begin(&held);
  if (pair->overlaps)
    copy_over_itself(pair, runs, count);
  else
    copied = copy_until(list, pair, runs, count);
  umemAttempt_end(&held);
  if (!umemAttempt_failed(&held)) return copied;
  for (size_t k = 0; runs == &list->runs[first] && k < count; k++)
    if (runs[k].state == umemRunDone)
      umemList_mark(list, list->begins[first + k], list->begins[first + k + 1]);
  size_t failed = find_item(list, first + find_failed(runs, count), &held);
  return umemList_fail(list, &held, umemList_item(list, failed));
}

/* Pieces have no more bytes: a GPU copies these in some ten milliseconds. */
static size_t const most_piece = 512 << 20;

/* The end of the next runs of one pair that have at most `most` bytes, but one in any case. With a
 * time, `most` is for those of them that are long. */
static size_t end_of_piece(umemList const *list, size_t most) {
  uint32_t pair = umemList_group(list, list->at);
  size_t end = list->at, all = 0, lengthy = 0, most_of_all = list->until ? most_piece : most;
  do {
    size_t nbytes = list->runs[end++].nbytes;
    all += nbytes;
    lengthy += nbytes < long_run ? 0 : nbytes;
    if (end == list->run_count || umemList_group(list, end) != pair) break;
    size_t next = list->runs[end].nbytes;
    if (next > most || all > most_of_all || next > most_of_all - all) break;
    if (next >= long_run && (lengthy > most || next > most - lengthy)) break;
  } while (true);
  return end;
}

/* Marks the items of the run that are whole, and begins the next run after the last one. */
static void skip(umemList *list, size_t nbytes) {
  size_t end = list->begins[list->at + 1];
  if (list->marked < list->begins[list->at]) list->marked = list->begins[list->at];
  list->skipped += nbytes;
  for (size_t size; list->marked < end; list->before += size, list->marked++) {
    size = list->items[umemList_item(list, list->marked)].nbytes;
    if (list->before + size > list->skipped) break;
    umemList_mark(list, list->marked, list->marked + 1);
  }
  if (list->skipped < list->runs[list->at].nbytes) return;
  list->at++;
  list->skipped = list->before = 0;
}

/* A part of a run, or what is left of it. */
static size_t copy_part_of_run(umemList *list, umemListPair const *pair, size_t most) {
  umemCopyRun const *run = &list->runs[list->at];
  size_t nbytes = umem_lesser(most, run->nbytes - list->skipped);
  umemCopyRun part = {run->src_adr + list->skipped, run->dst_adr + list->skipped, nbytes,
                      umemRunWaits};
  if (!copy_these(list, pair, &part, 1, list->at)) return 0;
  skip(list, nbytes);
  return nbytes;
}

size_t umemList_copy_piece(umemList *list, size_t most) {
  if (list->at == list->run_count) return 0;
  umemListPair pair = umemList_pair(list, list->at);
  umemCopyRun *runs = &list->runs[list->at];
  bool in_parts = list->skipped || runs->nbytes > most; /* a run that was begun goes on */
  if (in_parts && !pair.overlaps) return copy_part_of_run(list, &pair, most);
  size_t count = copy_these(list, &pair, runs, end_of_piece(list, most) - list->at, list->at);
  umemList_mark(list, list->begins[list->at], list->begins[list->at + count]);
  list->at += count;
  return bytes_of_runs(runs, count);
}

umemVirtual *umemList_target(umemList const *list) {
  return umemList_pair(list, umem_lesser(list->at, list->run_count - 1)).dst;
}

/* ---- lists that report how far they are ---- */

/* Short runs are copied for piece_time. Pieces of long ones begin with least_piece, or with a step,
 * and double up to most_piece while they take less than least_time. Below long_list a piece is a
 * step, and a list that is cancelled has not gone further. */
static size_t const least_piece = 8 << 20, long_list = 16 << 20;
static uint64_t const least_time = 10 * 1000 * 1000, piece_time = 20 * 1000 * 1000; /* ns */

/* Waits for what is queued on the contexts of a run. */
static bool settle(umemList const *list, size_t run) {
  umemListPair pair = umemList_pair(list, run);
  uint64_t before = umem_thread.failures;
  if (umem_can(pair.src, umemOrdered)) umem_synchronize(pair.src);
  if (umem_thread.failures == before && umem_can(pair.dst, umemOrdered)) umem_synchronize(pair.dst);
  return umem_thread.failures == before;
}

/* Where that is refused, nothing may be queued. */
static bool settle_all(umemList const *list) {
  for (size_t k = 0; k < list->run_count; k++) {
    bool follows = k && umemList_group(list, k) == umemList_group(list, k - 1);
    if (!follows && !settle(list, k)) return false;
  }
  return true;
}

/* Reports all steps up to done, but not the end. Whether to go on. */
static bool report_steps(umemList const *list, umemListSteps const *steps, uint64_t done,
                         uint64_t *reported) {
  while (done - *reported >= steps->step && list->nbytes - *reported > steps->step) {
    *reported += steps->step;
    if (!steps->report(steps->job, *reported, list->nbytes)) return false;
  }
  return true;
}

/* While a call waits for a server, its steps are asked whether it goes on. */
typedef struct Patience {
  umemWaiter waiter, *outer;
  umemListSteps const *steps;
  uint64_t reported, total;
} Patience;

static bool ask_steps(umemWaiter *waiter) {
  Patience *self = (Patience *)waiter;
  return self->steps->report(self->steps->job, self->reported, self->total);
}

/* Also when an exception of C++ passes. */
static void end_patience(Patience *self) { umem_thread.waiter = self->outer; }

static void copy_in_steps(umemList *list, umemListSteps const *steps) {
  __attribute__((cleanup(end_patience))) Patience patience = {
      .waiter = {ask_steps}, .outer = umem_thread.waiter, .steps = steps, .total = list->nbytes};
  uint64_t done = 0;
  size_t piece = steps->step;
  umem_thread.waiter = &patience.waiter;
  while (list->nbytes >= long_list && piece < least_piece) piece *= 2;
  if (!settle_all(list)) return;
  bool goes_on = steps->report(steps->job, 0, list->nbytes);
  while (goes_on && list->at < list->run_count) {
    uint64_t begin = umemClock_read(CLOCK_MONOTONIC);
    if (list->nbytes >= long_list) list->until = begin + piece_time;
    size_t run = list->at, nbytes = umemList_copy_piece(list, piece);
    if (!nbytes || !settle(list, run)) return;
    done += nbytes;
    bool quick = umemClock_read(CLOCK_MONOTONIC) - begin < least_time;
    if (list->nbytes >= long_list && quick && piece < most_piece) piece *= 2;
    goes_on = report_steps(list, steps, done, &patience.reported);
  }
  if (!goes_on)
    umemVirtual_fail(umemList_target(list), umemCancelledError, "cancelled after %ju of %ju bytes",
                     (uintmax_t)done, (uintmax_t)list->nbytes);
  else if (list->nbytes)
    steps->report(steps->job, list->nbytes, list->nbytes);
}

/* Whether the file has copied all runs, of which it needs no order. */
static bool copy_unsorted(umemList *list) {
  umemAttempt ignored; /* sorted, they meet it again */
  if (!list->unsorted || umem_is_watched()) return false;
  umemListPair pair = umemList_pair(list, 0);
  if (UMEM_SLOT(pair.src, upstream)) return false;
  umemAttempt_begin(&ignored);
  bool copied = does(pair.src, pair.src, pair.dst, list->runs, list->run_count);
  umemAttempt_end(&ignored);
  bool failed = umemAttempt_failed(&ignored),
       cancelled = failed && ignored.type == umemCancelledError;
  if (cancelled) umemAttempt_record(&ignored);
  if (copied && !failed) umemList_mark(list, 0, list->count);
  return (copied && !failed) || cancelled;
}

/* Whether all items are rows of two contexts at equal distances, the targets one behind the other.
 * They need no runs, which take longer to make than short rows to copy. */
static bool are_even(umemCopyItem const *items, size_t count) {
  umemCopyItem const *first = items;
  if (count < least_rows || count > UINT32_MAX / 2 || !items || !items->nbytes) return false;
  uintptr_t from = items[1].src_adr - first->src_adr, to = items[1].dst_adr - first->dst_adr;
  if ((ptrdiff_t)from <= 0 || (ptrdiff_t)to < 0 || to < first->nbytes) return false;
  size_t i = 1;
  while (i < count && items[i].src == first->src && items[i].dst == first->dst &&
         items[i].nbytes == first->nbytes && items[i].src_adr - items[i - 1].src_adr == from &&
         items[i].dst_adr - items[i - 1].dst_adr == to)
    i++;
  return i == count;
}

/* Copies such a list as one layout. Returns false, with nothing recorded, if it does not. */
static bool copy_even(umemCopyItem const *items, size_t count, uint8_t *done) {
  if (umem_is_watched() || umem_thread.until || !are_even(items, count)) return false;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umemVirtual *src = umem_check(items->src), *dst = umem_check(items->dst);
  umemAttempt_end(&forgotten);
  size_t row = items->nbytes;
  if (!src || !dst || row > longest_row(src, dst, count * umem_lesser(row, most_row))) return false;
  ptrdiff_t const from = (ptrdiff_t)(items[1].src_adr - items->src_adr),
                  to = (ptrdiff_t)(items[1].dst_adr - items->dst_adr);
  umemLayout const layout = {sizeof layout, row, 1, &count, &from, &to};
  if (!copy_rows(src, items->src_adr, dst, items->dst_adr, &layout, true)) return false;
  if (done) memset(done, 0xFF, count / 8);
  if (done && count % 8) done[count / 8] = (uint8_t)((1u << count % 8) - 1);
  return true;
}

/* Also when an exception of C++ passes. */
static void end_list(umemList **list) { umemList_release(*list); }

static void copy_list(umemCopyItem const *items, size_t count, uint8_t *done, size_t *failed,
                      umemListSteps const *steps) {
  umemList room;
  __attribute__((cleanup(end_list))) umemList *list = &room;
  bool good = umemList_prepare(list, items, count, done);
  if (good && !steps && copy_unsorted(list)) return;
  good = good && umemList_sort(list);
  if (good && steps)
    copy_in_steps(list, steps);
  else if (good)
    while (umemList_copy_piece(list, SIZE_MAX)) {
    }
  if (failed) *failed = list->failed;
}

void umem_copy_list(umemCopyItem const *items, size_t count, uint8_t *done, size_t *failed,
                    umemListSteps const *steps) {
  umemList_clear(count, NULL, failed);
  if (steps || !copy_even(items, count, done)) copy_list(items, count, done, failed, steps);
}
