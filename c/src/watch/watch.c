/* watch.c - notes the steps of copies in their routes. */
#include "watch/watch.h"
#include "base/text.h"
#include "core/context.h"
#include "core/status.h"

#include <stdio.h>
#include <string.h>

umemSink *umem_sink;

static char const *const way_names[] = {
    [umemWayMethod] = "method", [umemWayMemcpy] = "memcpy",         [umemWayItems] = "items",
    [umemWayWindow] = "window", [umemWayPageCache] = "page cache",  [umemWayDirect] = "direct I/O",
    [umemWayDma] = "dma",       [umemWayBoxes] = "boxes",           [umemWayPacked] = "packed",
    [umemWayPeer] = "peer",     [umemWayGds] = "GPUDirect Storage", [umemWayHttp] = "http",
};

static uint64_t now(void) { return umemClock_read(CLOCK_MONOTONIC); }

uint64_t umem_watched_clock(void) { return umem_thread.step ? now() : 0; }

/* ---- places ---- */

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

/* The label of a context as its name in umem_open is written: "CudaHost" becomes "cuda-host". */
static void write_kind(char *kind, size_t size, char const *label) {
  size_t used = 0;
  for (char const *c = label; *c && used + 2 < size; c++) {
    if (c != label && is_upper(*c) && is_lower(c[-1])) kind[used++] = '-';
    kind[used++] = is_upper(*c) ? (char)(*c - 'A' + 'a') : *c;
  }
  kind[used] = 0;
}

/* Of the innermost layer. A method upstream only looks it up. */
static umemRoutePlace place_of(umemVirtual *ctx) {
  umemRoutePlace place = {.ordinal = -1};
  for (umemVirtual *(*slot)(umemVirtual *); (slot = UMEM_SLOT(ctx, upstream)) != NULL;) {
    umemVirtual *upstream = slot(ctx);
    if (!upstream || !upstream->vptr || !umem_is_in_place(upstream)) break;
    ctx = upstream;
  }
  char const *label = umem_get_device_name(ctx);
  write_kind(place.kind, sizeof place.kind, label ? label : "");
  return place;
}

umemRoutePlace umem_device_place(umemVirtual *ctx, int ordinal) {
  umemRoutePlace place = place_of(ctx);
  place.ordinal = ordinal;
  return place;
}

umemRoutePlace umem_buffer_place(umemVirtual const *host) {
  umemRoutePlace place = {.ordinal = -1};
  strcpy(place.kind, umem_can(host, umemDeviceAccessible) ? "pinned" : "host");
  return place;
}

bool umem_is_same_place(umemRoutePlace const *a, umemRoutePlace const *b) {
  return a->ordinal == b->ordinal && !strcmp(a->kind, b->kind);
}

/* ---- notes ---- */

/* The entry of these places and this way: an old one, or a new one behind those of the same
 * places. NULL: no room. */
static umemRouteLeg *find(umemRoute *route, umemRoutePlace const *src, umemRoutePlace const *dst,
                          char const *way) {
  uint32_t at = route->leg_count;
  for (uint32_t i = 0; i < route->leg_count; i++) {
    umemRouteLeg *entry = &route->legs[i];
    if (!umem_is_same_place(&entry->src, src) || !umem_is_same_place(&entry->dst, dst)) continue;
    if (!strcmp(entry->way, way)) return entry;
    at = i + 1;
  }
  if (route->leg_count == UMEM_ROUTE_LEGS) return NULL;
  umemRouteLeg *entry = &route->legs[at];
  memmove(entry + 1, entry, (route->leg_count++ - at) * sizeof *entry);
  *entry = (umemRouteLeg){.src = *src, .dst = *dst};
  strcpy(entry->way, way);
  return entry;
}

static void note(umemOpenStep const *step, umemRoutePlace const *src, umemRoutePlace const *dst,
                 umemWay way, size_t nbytes, unsigned workers, uint64_t nanoseconds) {
  umemTrace *trace = step->trace;
  workers = workers ? workers * step->sharers : 1;
  UMEM_TEXTS_LOCKED();
  umemRouteLeg *entry = find(&trace->route, src, dst, way_names[way]);
  if (entry) {
    entry->bytes += nbytes;
    entry->seconds += (double)nanoseconds * 1e-9;
    entry->calls++;
    if (workers > entry->workers) entry->workers = workers;
  } else {
    trace->route.left_out++;
  }
}

/* Marks step, and the outer ones, as having a better note. */
static void mark(umemOpenStep *step) {
  for (; step; step = step->whole ? NULL : step->outer)
    __atomic_store_n(&step->noted, true, __ATOMIC_RELAXED);
}

void umem_note_between(umemRoutePlace const *src, umemRoutePlace const *dst, umemWay way,
                       size_t nbytes, unsigned workers, uint64_t begin) {
  umemOpenStep *step = umem_thread.step;
  if (!begin || !step) return;
  uint64_t nanoseconds = now() - begin;
  mark(step);
  note(step, src ? src : &step->src, dst ? dst : &step->dst, way, nbytes, workers, nanoseconds);
}

/* ---- steps ---- */

static umemRoutePlace place_in(umemVirtual *ctx, bool is_buffer, umemRoutePlace const *outer) {
  if (!ctx) return *outer;
  return is_buffer ? umem_buffer_place(ctx) : place_of(ctx);
}

/* Inside of the open one, outer. */
static void open_step(umemOpenStep *open, umemStep const *step, umemOpenStep *outer) {
  *open = (umemOpenStep){.outer = outer,
                         .trace = outer->trace,
                         .src = place_in(step->src, step->from_buffer, &outer->src),
                         .dst = place_in(step->dst, step->to_buffer, &outer->dst),
                         .way = step->way,
                         .workers = step->workers ? step->workers : 1,
                         .sharers = outer->sharers,
                         .nbytes = step->nbytes,
                         .failures = umem_thread.failures};
  umem_thread.step = open;
  open->begin = now();
}

static void close_inner(umemOpenStep *step) {
  umem_thread.step = step->outer;
  if (__atomic_load_n(&step->noted, __ATOMIC_RELAXED) || !step->nbytes) return;
  mark(step->outer);
  bool failed = umem_thread.failures != step->failures;
  note(step, &step->src, &step->dst, step->way, failed ? 0 : step->nbytes, step->workers,
       now() - step->begin);
}

void umem_share_begin(umemOpenStep *share, unsigned sharers) {
  umemOpenStep *outer = umem_thread.step;
  share->trace = NULL;
  if (!outer) return;
  *share = (umemOpenStep){.outer = outer, /* a share is noted in it, and has no end of its own */
                          .trace = outer->trace,
                          .src = outer->src,
                          .dst = outer->dst,
                          .sharers = sharers * outer->sharers};
  umem_thread.step = share;
}

void umem_share_end(umemOpenStep *share) {
  if (share->trace) umem_thread.step = share->outer;
}

static bool has_pinned_buffers(umemVirtual const *ctx) {
  return ctx->host && umem_can(ctx->host, umemDeviceAccessible);
}

bool umem_is_staged(umemVirtual const *src, umemVirtual const *dst) {
  return has_pinned_buffers(src) || has_pinned_buffers(dst);
}

/* Only those who move the bytes know the number of a GPU. */
static void name_ends(umemTrace *trace) {
  for (uint32_t i = 0; i < trace->route.leg_count; i++) {
    umemRouteLeg const *entry = &trace->route.legs[i];
    if (!strcmp(entry->src.kind, trace->src.kind)) trace->src = entry->src;
    if (!strcmp(entry->dst.kind, trace->dst.kind)) trace->dst = entry->dst;
  }
}

/* The outermost step stands for the whole call, and has no entry in the route. */
static void close_trace(umemTrace *trace, bool failed) {
  name_ends(trace);
  trace->route.seconds = (double)(now() - trace->begin) * 1e-9;
  umemSink *sink = trace->counts ? __atomic_load_n(&umem_sink, __ATOMIC_ACQUIRE) : NULL;
  if (sink) sink(trace, failed);
  __atomic_fetch_sub(&umem_watched, 1, __ATOMIC_RELAXED);
}

void umem_step_close(umemOpenStep *step) {
  if (!step->trace) return;
  if (!step->whole) {
    close_inner(step);
    return;
  }
  umem_thread.step = step->outer;
  close_trace(step->trace, umem_thread.failures != step->trace->failures);
}

void umem_trace_let_go(umemOpenStep *step) {
  if (step->trace) umem_thread.step = step->outer;
}

void umem_trace_close(umemOpenStep *step, bool failed) {
  if (step->trace) close_trace(step->trace, failed);
  step->trace = NULL;
}

static bool has_sink(void) { return __atomic_load_n(&umem_sink, __ATOMIC_RELAXED); }

void umem_trace_open_for(umemTrace *trace, umemOpenStep *step, umemVirtual *src, umemVirtual *dst,
                         size_t nbytes) {
  __atomic_fetch_add(&umem_watched, 1, __ATOMIC_RELAXED); /* also if the ledger stops meanwhile */
  *trace = (umemTrace){.route = {.size = sizeof trace->route, .bytes = nbytes},
                       .src = place_of(src),
                       .dst = place_of(dst),
                       .counts = !umem_thread.step && has_sink(),
                       .failures = umem_thread.failures,
                       .begin = now()};
  *step = (umemOpenStep){.outer = umem_thread.step,
                         .trace = trace,
                         .src = trace->src,
                         .dst = trace->dst,
                         .sharers = 1,
                         .whole = true};
  umem_thread.step = step;
}

void umem_trace_open(umemTrace *trace, umemOpenStep *step, umemVirtual *src, umemVirtual *dst,
                     size_t nbytes) {
  *step = (umemOpenStep){0};
  if (!umem_thread.step && has_sink()) umem_trace_open_for(trace, step, src, dst, nbytes);
}

static bool do_step(umemStep const *step, umemWork *work, void *job) {
  umemOpenStep *outer = umem_thread.step;
  if (!outer) return work(job);
  __attribute__((cleanup(umem_step_close))) umemOpenStep open;
  open_step(&open, step, outer);
  bool moved = work(job);
  if (!moved) open.nbytes = 0;
  return moved;
}

static __attribute__((noinline)) bool do_copy(umemStep const *step, umemWork *work, void *job) {
  umemTrace trace;
  __attribute__((cleanup(umem_step_close))) umemOpenStep whole;
  umem_trace_open(&trace, &whole, step->src, step->dst, step->nbytes);
  return do_step(step, work, job);
}

static bool watch_step(umemStep const *step, umemWork *work, void *job) {
  return step->is_copy && !umem_thread.step ? do_copy(step, work, job) : do_step(step, work, job);
}

__attribute__((constructor(101))) static void hook_in(void) { umem_step_hook = watch_step; }

bool umem_route_clear(umemVirtual *ctx, umemRoute *route) {
  static umemRoute const none = UMEM_ROUTE_INIT;
  if (!route) return true;
  if (!umem_can_write_sized(ctx, route, offsetof(umemRoute, legs), "route", "umemRoute"))
    return false;
  umem_write_sized(route, &none, sizeof none);
  return true;
}

/* ---- one line ---- */

static void add_place(umemLine *line, umemRoutePlace const *place) {
  if (place->ordinal >= 0)
    umemLine_add(line, "%.23s:%d", place->kind, (int)place->ordinal);
  else
    umemLine_add(line, "%.23s", place->kind);
}

/* "16 workers, page cache"; nothing for what goes without saying. */
static bool add_way(umemLine *line, umemRouteLeg const *entry, char const *before) {
  bool plain = !strcmp(entry->way, "memcpy") || !strcmp(entry->way, "dma");
  if (entry->workers > 1)
    umemLine_add(line, plain ? "%s%u workers" : "%s%u workers, %.23s", before,
                 (unsigned)entry->workers, entry->way);
  else if (!plain)
    umemLine_add(line, "%s%.23s", before, entry->way);
  return entry->workers > 1 || !plain;
}

size_t umem_entries_text(umemRouteLeg const *entries, uint32_t count, char *text, size_t size) {
  umemLine line = {text, size, 0};
  if (size) *text = 0;
  for (uint32_t i = 0; i < count;) {
    umemRouteLeg const *entry = &entries[i];
    if (!i || !umem_is_same_place(&entry->src, &entries[i - 1].dst)) {
      if (i) umemLine_add(&line, "; ");
      add_place(&line, &entry->src);
    }
    bool said = false;
    do said = add_way(&line, &entries[i], said ? " + " : " -> ") || said;
    while (++i < count && umem_is_same_place(&entries[i].src, &entry->src) &&
           umem_is_same_place(&entries[i].dst, &entry->dst));
    umemLine_add(&line, " -> ");
    add_place(&line, &entry->dst);
  }
  return line.used;
}

size_t umemRoute_text(umemRoute const *route, char *text, size_t size) {
  size_t const least = offsetof(umemRoute, legs);
  uint32_t count = route && route->size >= least ? route->leg_count : 0;
  uint32_t room = count ? (uint32_t)((route->size - least) / sizeof *route->legs) : 0;
  if (count > room) count = room;
  if (count > UMEM_ROUTE_LEGS) count = UMEM_ROUTE_LEGS;
  return umem_entries_text(count ? route->legs : NULL, count, text, size);
}
