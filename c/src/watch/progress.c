/* progress.c - copies that report how far they are, can be cancelled, and write down their route.
 *
 * Such a copy is a series of shorter ones, each planned anew and, on ordered contexts, waited
 * for. Steps are long enough that what is lost between them is little. */
#include "watch/watch.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"
#include "core/layout.h"
#include "core/copy.h"

static size_t const default_step = 64 << 20;

typedef struct Progress {
  umemVirtual *src, *dst;
  uintptr_t src_adr, dst_adr;
  size_t nbytes;
  umemCopyOptions const *options;
  umemLayout const *layout; /* of a strided copy, or NULL */
  umemRanges ranges;        /* of its items */
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

/* Queues nbytes after the first done ones. */
static void move(Progress const *copy, size_t done, size_t nbytes) {
  if (copy->layout)
    umem_copy_layout(copy->src, copy->src_adr, copy->dst, copy->dst_adr, copy->layout,
                     &copy->ranges);
  else
    umem_copy_any_run(copy->src, copy->src_adr + done, copy->dst, copy->dst_adr + done, nbytes);
}

static umemStatusType copy_step(Progress const *copy, size_t done, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  move(copy, done, nbytes);
  return umem_thread.failures == before ? settle(copy) : umem_result(before);
}

/* A step could overwrite what a later one reads. */
static bool overlaps(Progress const *copy) {
  umemLayout const run = {.size = sizeof run, .item_size = copy->nbytes};
  return umem_may_overlap(copy->src, copy->src_adr, copy->dst, copy->dst_adr, copy->nbytes) &&
         umem_overlap(copy->src, copy->src_adr, copy->dst, copy->dst_adr, &run) != umemOverlapNone;
}

static umemStatusType copy_in_steps(Progress const *copy) {
  size_t step = copy->options->step ? copy->options->step : default_step;
  if (copy->layout || overlaps(copy)) step = SIZE_MAX;
  umemStatusType settled = settle(copy); /* where that is refused, nothing may be queued */
  if (settled != umemOK) return settled;
  for (size_t done = 0;;) {
    if (!report(copy, done))
      return umemVirtual_fail(copy->dst, umemCancelledError, "cancelled after %zu of %zu bytes",
                              done, copy->nbytes);
    size_t rest = copy->nbytes - done;
    if (!rest) return umemOK;
    size_t nbytes = rest < step ? rest : step;
    umemStatusType status = copy_step(copy, done, nbytes);
    if (status != umemOK) return status;
    done += nbytes;
  }
}

/* The copy itself. Without progress nothing is waited for. */
static void do_copy(Progress const *copy) {
  if (copy->options->progress)
    copy_in_steps(copy);
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
  umemRoute none = UMEM_ROUTE_INIT;
  if (!umem_read_sized(src, full, sizeof *full, options, "umemCopyOptions")) return false;
  if (!full->route) return true;
  if (!umem_can_write_sized(src, full->route, offsetof(umemRoute, legs), "route", "umemRoute"))
    return false;
  umem_write_sized(full->route, &none, sizeof none); /* for a copy that is refused */
  return true;
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
  Progress copy = {
      .src = from, .dst = to, .src_adr = src_adr, .dst_adr = dst_adr, .nbytes = nbytes};
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
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  Progress copy = {.src = from,
                   .dst = to,
                   .src_adr = src_adr,
                   .dst_adr = dst_adr,
                   .nbytes = nbytes,
                   .layout = layout,
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

static void copy_many(Many const *many) {
  umem_copy_list(many->items, many->count, many->options.done, many->options.failed);
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
  umemRoute none = UMEM_ROUTE_INIT;
  Many many = {items, count, UMEM_COPY_MANY_OPTIONS_INIT};
  if (!umem_read_sized(NULL, &many.options, sizeof many.options, options, "umemCopyManyOptions"))
    return UMEM_RESULT();
  umemRoute *route = many.options.route;
  if (route && !umem_can_write_sized(NULL, route, offsetof(umemRoute, legs), "route", "umemRoute"))
    return UMEM_RESULT();
  if (route) umem_write_sized(route, &none, sizeof none);
  bool watches = route && count && items && umem_check(items->src) && umem_check(items->dst);
  if (UMEM_RESULT() != umemOK) return UMEM_RESULT();
  if (watches)
    copy_many_watched(&many);
  else
    copy_many(&many);
  return UMEM_RESULT();
}
