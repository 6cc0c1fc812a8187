/* progress.c - copies that report how far they are, can be cancelled, and write down their route.
 *
 * Such a copy is a series of shorter ones, its pieces, each planned anew and, on ordered contexts,
 * waited for. A piece ends with less and less to do for the threads that share it. Therefore two
 * lanes, threads that each copy one piece after the other, take turns in a long copy: one piece
 * begins while another ends. Pieces become longer until they take long enough. */
#include "watch/watch.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"
#include "core/layout.h"
#include "core/copy.h"
#include "core/threads.h"

static size_t const default_step = 64 << 20;
/* Below this a piece is a step, and a copy that is cancelled has not gone further. */
static size_t const long_copy = 16 << 20;
/* Pieces of a long copy begin with the first of these, and double up to the second while they take
 * less than so many nanoseconds. */
static size_t const least_piece = 8 << 20, most_piece = 512 << 20;
static uint64_t const least_time = 10 * 1000 * 1000;
enum { most_lanes = 2 };

typedef struct Progress {
  umemVirtual *src, *dst;
  uintptr_t src_adr, dst_adr;
  size_t nbytes;
  umemCopyOptions const *options;
  umemLayout const *layout; /* of items with strides, in normal form; NULL: a run */
  umemRanges ranges;
} Progress;

/* Whether to go on. */
static bool report(Progress const *copy, size_t done) {
  umemCopyOptions const *options = copy->options;
  UMEM_STEP_ASIDE(running);
  return options->progress(options->user, done, copy->nbytes) || done == copy->nbytes;
}

/* Returns when what is queued on both sides is done. */
static umemStatusType settle(Progress const *copy) {
  uint64_t before = umem_thread.failures;
  if (umem_can(copy->src, umemOrdered)) umem_synchronize(copy->src);
  if (umem_thread.failures == before && umem_can(copy->dst, umemOrdered))
    umem_synchronize(copy->dst);
  return umem_result(before);
}

/* Queues nbytes after the first done ones of a run. */
static void move(Progress const *copy, size_t done, size_t nbytes) {
  umem_copy_any_run(copy->src, copy->src_adr + done, copy->dst, copy->dst_adr + done, nbytes);
}

/* Queues the items of a layout, whose first are so far from those of the copy. */
static void move_items(Progress const *copy, umemLayout const *layout, ptrdiff_t src_offset,
                       ptrdiff_t dst_offset) {
  umem_copy_layout(copy->src, copy->src_adr + (uintptr_t)src_offset, copy->dst,
                   copy->dst_adr + (uintptr_t)dst_offset, layout, &copy->ranges);
}

/* A piece could overwrite what a later one reads. */
static bool overlaps(Progress const *copy) {
  umemLayout const run = {.size = sizeof run, .item_size = copy->nbytes};
  umemRanges const *ranges = &copy->ranges;
  size_t length = umem_greater(ranges->src_bytes, ranges->dst_bytes);
  return umem_may_overlap(copy->src, ranges->src, copy->dst, ranges->dst, length) &&
         umem_overlap(copy->src, copy->src_adr, copy->dst, copy->dst_adr,
                      copy->layout ? copy->layout : &run) != umemOverlapNone;
}

/* ---- pieces ---- */

/* The lock protects what lanes share: next, at, piece, over and failed. */
typedef struct Lanes {
  Progress const *copy;
  size_t step;     /* from report to report, in bytes */
  size_t reported; /* all steps up to here; of the caller alone, as is cancelled */
  bool cancelled;
  unsigned count; /* of lanes */
  umemLock lock;
  size_t piece;          /* bytes of the next one: a number of steps */
  size_t next;           /* the first byte that no lane has taken */
  size_t at[most_lanes]; /* the first byte of a lane's piece; SIZE_MAX: it has none */
  bool over, failed;     /* over: take no other piece */
} Lanes;

/* Lanes must not end their pieces together, but the copy: the first piece is shorter, and the last
 * ones are. */
static bool take_piece(Lanes *lanes, unsigned lane, size_t *at, size_t *nbytes) {
  umemLock_acquire(&lanes->lock);
  size_t rest = lanes->copy->nbytes - lanes->next, piece = lanes->piece;
  if (!lanes->next || (lanes->count > 1 && rest / 2 < piece))
    piece = umem_greater(umem_lesser(rest, piece) / 2 / lanes->step, 1) * lanes->step;
  bool more = rest && !lanes->over;
  *at = lanes->at[lane] = more ? lanes->next : SIZE_MAX;
  *nbytes = umem_lesser(rest, piece);
  if (more) lanes->next += *nbytes;
  umemLock_release(&lanes->lock);
  return more;
}

static void end_piece(Lanes *lanes, unsigned lane, bool good, uint64_t begin) {
  bool quick = umemClock_read(CLOCK_MONOTONIC) - begin < least_time;
  umemLock_acquire(&lanes->lock);
  lanes->at[lane] = SIZE_MAX;
  if (!good) lanes->over = lanes->failed = true;
  bool longer = lanes->copy->nbytes >= long_copy && quick && lanes->piece < most_piece;
  if (longer) lanes->piece *= 2;
  umemLock_release(&lanes->lock);
}

/* How many bytes, the first of a run, are there; 0 where nothing more is to be reported. */
static size_t count_done(Lanes *lanes) {
  umemLock_acquire(&lanes->lock);
  size_t done = lanes->failed ? 0 : lanes->next;
  for (unsigned k = 0; k < most_lanes; k++) done = umem_lesser(done, lanes->at[k]);
  umemLock_release(&lanes->lock);
  return done;
}

/* Reports all steps that are done, but not the end. Whether to go on. */
static bool report_steps(Lanes *lanes) {
  size_t done = count_done(lanes);
  while (!lanes->cancelled && lanes->reported < done && done - lanes->reported >= lanes->step &&
         lanes->copy->nbytes - lanes->reported > lanes->step) {
    lanes->reported += lanes->step;
    lanes->cancelled = !report(lanes->copy, lanes->reported);
  }
  return !lanes->cancelled;
}

/* Waits for what a piece has queued. Whether all is well. */
static bool settle_piece(Progress const *copy, uint64_t before) {
  return umem_thread.failures == before && settle(copy) == umemOK;
}

/* ---- runs: in lanes ---- */

static void copy_pieces(Lanes *lanes, unsigned lane) {
  size_t at, nbytes;
  while (take_piece(lanes, lane, &at, &nbytes)) {
    uint64_t begin = umemClock_read(CLOCK_MONOTONIC), before = umem_thread.failures;
    move(lanes->copy, at, nbytes);
    end_piece(lanes, lane, settle_piece(lanes->copy, before), begin);
    if (!lane && !report_steps(lanes)) return;
  }
}

/* Also when an exception of C++ passes. */
static void stop_lanes(Lanes **lanes) {
  umemLock_acquire(&(*lanes)->lock);
  (*lanes)->over = true;
  umemLock_release(&(*lanes)->lock);
}

static void share_no_more(unsigned *sharers) { umem_thread.sharers = *sharers; }

/* The caller has lane 0, and reports. */
static void run_lane(void *job, unsigned lane) {
  Lanes *lanes = job;
  __attribute__((cleanup(share_no_more), unused)) unsigned sharers = umem_thread.sharers;
  __attribute__((cleanup(umem_share_end))) umemOpenStep share = {.trace = NULL};
  if (lanes->count > 1 && umem_is_staged(lanes->copy->src, lanes->copy->dst)) {
    umem_thread.sharers = lanes->count;
    umem_share_begin(&share, lanes->count);
  }
  if (lane) {
    copy_pieces(lanes, lane);
    return;
  }
  __attribute__((cleanup(stop_lanes))) Lanes *running = lanes;
  copy_pieces(running, lane);
}

static void copy_run(Lanes *lanes) {
  umemVirtual const *src = lanes->copy->src, *dst = lanes->copy->dst;
  bool queues = (src->capabilities | dst->capabilities) & umemOrdered;
  bool both = src->capabilities & dst->capabilities & umemConcurrent;
  bool shares = lanes->copy->nbytes >= long_copy && lanes->step < lanes->copy->nbytes;
  if (shares && both && !queues && umem_parallel_threads() > 1) lanes->count = most_lanes;
  umem_parallel(lanes->count, run_lane, lanes);
}

/* ---- items: one part after the other ---- */

/* Whether to go on. */
static bool copy_part(Lanes *lanes, umemLayout const *layout, ptrdiff_t src_offset,
                      ptrdiff_t dst_offset) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  int k = layout->rank ? umem_widest(layout, layout->extents) : 0;
  if (nbytes > lanes->piece && layout->rank && layout->extents[k] > 1) {
    umemHalves halves;
    umem_halve(&halves, layout, k);
    return copy_part(lanes, &halves.first, src_offset, dst_offset) &&
           copy_part(lanes, &halves.second, src_offset + halves.src, dst_offset + halves.dst);
  }
  uint64_t begin = umemClock_read(CLOCK_MONOTONIC), before = umem_thread.failures;
  move_items(lanes->copy, layout, src_offset, dst_offset);
  bool good = settle_piece(lanes->copy, before);
  lanes->next += nbytes;
  end_piece(lanes, 0, good, begin);
  return good && report_steps(lanes);
}

/* ---- the copy ---- */

static void destroy_lock(Lanes *lanes) { umemLock_destroy(&lanes->lock); }

static umemStatusType copy_in_steps(Progress const *copy) {
  size_t step = copy->options->step ? copy->options->step : default_step;
  if (overlaps(copy)) step = SIZE_MAX;
  umemStatusType settled = settle(copy); /* where that is refused, nothing may be queued */
  if (settled != umemOK) return settled;
  __attribute__((cleanup(destroy_lock)))
  Lanes lanes = {.copy = copy, .step = step, .count = 1, .piece = step, .at = {SIZE_MAX, SIZE_MAX}};
  umemLock_init(&lanes.lock);
  while (copy->nbytes >= long_copy && lanes.piece < least_piece) lanes.piece *= 2;
  uint64_t before = umem_thread.failures;
  lanes.cancelled = !report(copy, 0);
  if (!lanes.cancelled && copy->layout)
    copy_part(&lanes, copy->layout, 0, 0);
  else if (!lanes.cancelled)
    copy_run(&lanes);
  if (umem_thread.failures != before) return umem_result(before);
  if (!report_steps(&lanes))
    return umemVirtual_fail(copy->dst, umemCancelledError, "cancelled after %zu of %zu bytes",
                            lanes.reported, copy->nbytes);
  if (copy->nbytes) report(copy, copy->nbytes);
  return umemOK;
}

/* The copy itself. Without progress nothing is waited for. */
static void do_copy(Progress const *copy) {
  if (copy->options->progress)
    copy_in_steps(copy);
  else if (copy->layout)
    move_items(copy, copy->layout, 0, 0);
  else if (copy->nbytes)
    move(copy, 0, copy->nbytes);
}

typedef struct Watch {
  umemTrace trace;
  umemOpenStep step;
  umemRoute *route; /* of the caller */
} Watch;

/* Also when an exception of C++ passes. */
static void end_watch(Watch *watch) {
  umem_step_close(&watch->step);
  umem_write_sized(watch->route, &watch->trace.route, sizeof watch->trace.route);
}

static void do_watched(Progress const *copy) {
  __attribute__((cleanup(end_watch))) Watch watch;
  watch.route = copy->options->route;
  umem_trace_open_for(&watch.trace, &watch.step, copy->src, copy->dst, copy->nbytes);
  do_copy(copy);
}

/* Whether what the options ask for can be done; fills in *full. */
static bool read_options(umemVirtual *src, umemCopyOptions *full, umemCopyOptions const *options) {
  return umem_read_sized(src, full, sizeof *full, options, "umemCopyOptions") &&
         umem_route_clear(src, full->route);
}

static void copy_with(Progress *copy, umemCopyOptions const *full) {
  copy->options = full;
  if (full->route)
    do_watched(copy);
  else
    do_copy(copy);
}

umemStatusType umem_copy_to_with(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                 size_t nbytes, umemCopyOptions const *options) {
  UMEM_ENTER();
  umemVirtual *from = umem_check(src);
  umemVirtual *to = umem_check(dst);
  umemCopyOptions full = UMEM_COPY_OPTIONS_INIT;
  if (!from || !to || !read_options(from, &full, options)) return UMEM_RESULT();
  if (nbytes && !(umem_validate(from, src_adr, nbytes, umemReadable) &&
                  umem_validate(to, dst_adr, nbytes, umemWritable)))
    return UMEM_RESULT();
  Progress copy = {.src = from,
                   .dst = to,
                   .src_adr = src_adr,
                   .dst_adr = dst_adr,
                   .nbytes = nbytes,
                   .ranges = {src_adr, dst_adr, nbytes, nbytes}};
  copy_with(&copy, &full);
  return UMEM_RESULT();
}

umemStatusType umem_copy_strided_with(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                      umemLayout const *layout, umemCopyOptions const *options) {
  UMEM_ENTER();
  umemVirtual *from = umem_check(src);
  umemVirtual *to = umem_check(dst);
  umemCopyOptions full = UMEM_COPY_OPTIONS_INIT;
  umemRanges ranges;
  if (!from || !to || !read_options(from, &full, options) ||
      !umem_check_strided(from, src_adr, to, dst_adr, layout, &ranges))
    return UMEM_RESULT();
  umemNormalLayout n;
  if (ranges.src_bytes) umem_normalise(&n, layout, &src_adr, &dst_adr);
  Progress copy = {.src = from,
                   .dst = to,
                   .src_adr = src_adr,
                   .dst_adr = dst_adr,
                   .nbytes = umem_count_items(layout) * layout->item_size,
                   .layout = ranges.src_bytes && n.layout.rank ? &n.layout : NULL,
                   .ranges = ranges};
  copy_with(&copy, &full);
  return UMEM_RESULT();
}

/* ---- lists ---- */

typedef struct Many {
  umemCopyItem const *items;
  size_t count;
  umemCopyManyOptions options;
} Many;

static bool report_list(void *job, uint64_t done, uint64_t total) {
  umemCopyManyOptions const *options = &((Many const *)job)->options;
  UMEM_STEP_ASIDE(running);
  return options->progress(options->user, done, total) || done == total;
}

static void copy_many(Many const *many) {
  umemListSteps steps = {.step = many->options.step ? many->options.step : default_step,
                         .report = report_list,
                         .job = (void *)(uintptr_t)many};
  umem_copy_list(many->items, many->count, many->options.done, many->options.failed,
                 many->options.progress ? &steps : NULL);
}

/* The places are those of the first item. */
static void copy_many_watched(Many const *many) {
  __attribute__((cleanup(end_watch))) Watch watch;
  watch.route = many->options.route;
  size_t nbytes = 0;
  for (size_t i = 0; i < many->count; i++) nbytes += many->items[i].nbytes;
  umem_trace_open_for(&watch.trace, &watch.step, many->items->src, many->items->dst, nbytes);
  copy_many(many);
}

umemStatusType umem_copy_many(umemCopyItem const *items, size_t count,
                              umemCopyManyOptions const *options) {
  UMEM_ENTER();
  umem_defer_cancel();
  Many many = {items, count, UMEM_COPY_MANY_OPTIONS_INIT};
  if (!umem_read_sized(NULL, &many.options, sizeof many.options, options, "umemCopyManyOptions"))
    return UMEM_RESULT();
  if (!umem_route_clear(NULL, many.options.route)) return UMEM_RESULT();
  bool watches =
      many.options.route && count && items && umem_check(items->src) && umem_check(items->dst);
  if (UMEM_RESULT() != umemOK) return UMEM_RESULT();
  if (watches)
    copy_many_watched(&many);
  else
    copy_many(&many);
  return UMEM_RESULT();
}
