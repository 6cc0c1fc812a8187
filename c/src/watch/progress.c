/* progress.c - copies that report how far they are, can be cancelled, and write down their route.
 *
 * Methods that copy a long run in pieces of their own report while they do so, by a meter
 * (core/threads.h). Every other copy is a series of shorter ones, its pieces, each planned anew
 * and, on ordered contexts, waited for. Pieces become longer until they take long enough. */
#include "watch/watch.h"
#include "base/number.h"
#include "core/layout.h"
#include "core/copy.h"
#include "core/threads.h"

static size_t const default_step = 64 << 20;
/* Below this a piece is a step, and a copy that is cancelled has not gone further. */
static size_t const long_copy = 16 << 20;
/* Pieces of a long copy are no shorter than that. They double while they have less than so many
 * bytes and take less than so many nanoseconds. */
static size_t const most_piece = 512 << 20;
static uint64_t const least_time = 10 * 1000 * 1000;

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

typedef struct Steps {
  umemMeter meter; /* of the piece that is copied now */
  umemWaiter waiter, *outer;
  Progress const *copy;
  size_t step;     /* from report to report, in bytes */
  size_t piece;    /* bytes of the next one */
  size_t done;     /* before the piece */
  size_t reported; /* all steps up to here */
  bool cancelled;
} Steps;

/* Reports all steps that are done, but not the end. Whether to go on. */
static bool report_steps(Steps *steps, size_t done) {
  while (!steps->cancelled && done - steps->reported >= steps->step &&
         steps->copy->nbytes - steps->reported > steps->step) {
    steps->reported += steps->step;
    steps->cancelled = !report(steps->copy, steps->reported);
  }
  return !steps->cancelled;
}

static bool report_of_meter(umemMeter *self, size_t done) {
  Steps *steps = (Steps *)self;
  return report_steps(steps, steps->done + done);
}

/* For who waits: the last report once more. */
static bool repeat_report(umemWaiter *self) {
  Steps *steps = (Steps *)((char *)self - offsetof(Steps, waiter));
  steps->cancelled = !report(steps->copy, steps->reported);
  return !steps->cancelled;
}

/* Waits for what a piece has queued, and reports. Whether to go on. */
static bool end_piece(Steps *steps, size_t nbytes, uint64_t before, uint64_t begin) {
  if (umem_thread.failures != before || settle(steps->copy) != umemOK) return false;
  bool quick = umemClock_read(CLOCK_MONOTONIC) - begin < least_time;
  if (steps->copy->nbytes >= long_copy && quick && steps->piece < most_piece) steps->piece *= 2;
  steps->done += nbytes;
  return report_steps(steps, steps->done);
}

/* ---- runs ---- */

/* Also when an exception of C++ passes. */
static void take_back(umemMeter **meter) { umem_thread.meter = *meter = NULL; }

/* Returns how many bytes were copied: of this piece, or of all. */
static size_t copy_metered(Steps *steps, size_t nbytes) {
  Progress const *copy = steps->copy;
  umemMeter *self = &steps->meter;
  self->src_adr = copy->src_adr + steps->done;
  self->dst_adr = copy->dst_adr + steps->done;
  self->nbytes = nbytes;
  self->rest = copy->nbytes - steps->done;
  __attribute__((cleanup(take_back), unused)) umemMeter *offered = umem_thread.meter = self;
  move(copy, steps->done, nbytes);
  return self->taken ? self->rest : nbytes;
}

static void copy_run(Steps *steps) {
  size_t nbytes = steps->copy->nbytes, n = 1;
  bool metered = nbytes >= long_copy && steps->step < nbytes;
  uint64_t before = umem_thread.failures, begin;
  do {
    n = umem_lesser(nbytes - steps->done, steps->piece);
    begin = umemClock_read(CLOCK_MONOTONIC);
    if (metered)
      n = copy_metered(steps, n);
    else if (n)
      move(steps->copy, steps->done, n);
  } while (!steps->cancelled && end_piece(steps, n, before, begin) && steps->done < nbytes);
}

/* ---- items: one part after the other ---- */

/* Whether to go on. */
static bool copy_part(Steps *steps, umemLayout const *layout, ptrdiff_t src_offset,
                      ptrdiff_t dst_offset) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  int k = layout->rank ? umem_widest(layout, layout->extents) : 0;
  if (nbytes > steps->piece && layout->rank && layout->extents[k] > 1) {
    umemHalves halves;
    umem_halve(&halves, layout, k);
    return copy_part(steps, &halves.first, src_offset, dst_offset) &&
           copy_part(steps, &halves.second, src_offset + halves.src, dst_offset + halves.dst);
  }
  uint64_t begin = umemClock_read(CLOCK_MONOTONIC), before = umem_thread.failures;
  move_items(steps->copy, layout, src_offset, dst_offset);
  return end_piece(steps, nbytes, before, begin);
}

/* ---- the copy ---- */

/* Also when an exception of C++ passes. */
static void end_steps(Steps *steps) {
  umem_thread.waiter = steps->outer;
  pthread_mutex_destroy(&steps->meter.lock);
}

static umemStatusType copy_in_steps(Progress const *copy) {
  size_t step = copy->options->step ? copy->options->step : default_step;
  if (overlaps(copy)) step = SIZE_MAX;
  umemStatusType settled = settle(copy); /* where that is refused, nothing may be queued */
  if (settled != umemOK) return settled;
  __attribute__((cleanup(end_steps)))
  Steps steps = {.meter = {.src = copy->src,
                           .dst = copy->dst,
                           .caller = pthread_self(),
                           .report = report_of_meter},
                 .waiter = {repeat_report},
                 .outer = umem_thread.waiter,
                 .copy = copy,
                 .step = step,
                 .piece = copy->nbytes < long_copy ? step : umem_greater(step, long_copy)};
  pthread_mutex_init(&steps.meter.lock, NULL);
  umem_thread.waiter = &steps.waiter;
  uint64_t before = umem_thread.failures;
  steps.cancelled = !report(copy, 0);
  if (!steps.cancelled && copy->layout)
    copy_part(&steps, copy->layout, 0, 0);
  else if (!steps.cancelled)
    copy_run(&steps);
  if (umem_thread.failures != before) return umem_result(before);
  if (steps.cancelled)
    return umemVirtual_fail(copy->dst, umemCancelledError, "cancelled after %zu of %zu bytes",
                            steps.reported, copy->nbytes);
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
