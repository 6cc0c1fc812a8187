/* watch.c - see watch.h. */
#include "core/watch.h"
#include "base/lock.h"
#include "base/thread.h"
#include "core/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

unsigned umem_watched;
umemSink *umem_sink;

static char const *const way_names[] = {
    [umemWayMethod] = "method", [umemWayMemcpy] = "memcpy",         [umemWayItems] = "items",
    [umemWayWindow] = "window", [umemWayPageCache] = "page cache",  [umemWayDirect] = "direct I/O",
    [umemWayDma] = "dma",       [umemWayBoxes] = "boxes",           [umemWayPacked] = "packed",
    [umemWayPeer] = "peer",     [umemWayGds] = "GPUDirect Storage",
};

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time); /* fails for no argument but a wrong one */
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t umem_watched_clock(void) { return umem_thread.leg ? now() : 0; }

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

static bool is_same_place(umemRoutePlace const *a, umemRoutePlace const *b) {
  return a->ordinal == b->ordinal && !strcmp(a->kind, b->kind);
}

/* ---- notes ---- */

/* False in a signal handler that has interrupted this thread while it holds the lock. */
static bool open_notes(void) {
  if (umem_thread.in_texts) return false;
  umem_thread.in_texts = true;
  umemLock_acquire_global();
  return true;
}

static void close_notes(void) {
  umemLock_release_global();
  umem_thread.in_texts = false;
}

/* The leg of these places and this way: an old one, or a new one behind those of the same places. NULL: no room. */
static umemRouteLeg *find(umemRoute *route, umemRoutePlace const *src, umemRoutePlace const *dst,
                          char const *way) {
  uint32_t at = route->leg_count;
  for (uint32_t i = 0; i < route->leg_count; i++) {
    umemRouteLeg *leg = &route->legs[i];
    if (!is_same_place(&leg->src, src) || !is_same_place(&leg->dst, dst)) continue;
    if (!strcmp(leg->way, way)) return leg;
    at = i + 1;
  }
  if (route->leg_count == UMEM_ROUTE_LEGS) return NULL;
  umemRouteLeg *leg = &route->legs[at];
  memmove(leg + 1, leg, (route->leg_count++ - at) * sizeof *leg);
  *leg = (umemRouteLeg){.src = *src, .dst = *dst};
  strcpy(leg->way, way);
  return leg;
}

static void note(umemTrace *trace, umemRoutePlace const *src, umemRoutePlace const *dst,
                 umemWay way, size_t nbytes, unsigned workers, uint64_t nanoseconds) {
  if (!open_notes()) return;
  umemRouteLeg *leg = find(&trace->route, src, dst, way_names[way]);
  if (leg) {
    leg->bytes += nbytes;
    leg->seconds += (double)nanoseconds * 1e-9;
    leg->calls++;
    if (workers > leg->workers) leg->workers = workers;
  } else {
    trace->route.left_out++;
  }
  close_notes();
}

/* Marks leg, and those around it, as having a better note. */
static void mark(umemOpenLeg *leg) {
  for (; leg; leg = leg->whole ? NULL : leg->outer)
    __atomic_store_n(&leg->noted, true, __ATOMIC_RELAXED);
}

void umem_note_between(umemRoutePlace const *src, umemRoutePlace const *dst, umemWay way,
                       size_t nbytes, unsigned workers, uint64_t begin) {
  umemOpenLeg *leg = umem_thread.leg;
  if (!begin || !leg) return;
  uint64_t nanoseconds = now() - begin;
  mark(leg);
  note(leg->trace, src ? src : &leg->src, dst ? dst : &leg->dst, way, nbytes, workers, nanoseconds);
}

/* ---- legs ---- */

void umem_leg_open(umemOpenLeg *leg, umemVirtual *src, umemVirtual *dst, umemWay way,
                   size_t nbytes) {
  umemOpenLeg *outer = umem_thread.leg;
  *leg = (umemOpenLeg){.outer = outer};
  if (!outer) return;
  leg->trace = outer->trace;
  leg->src = src ? place_of(src) : outer->src;
  leg->dst = dst ? place_of(dst) : outer->dst;
  leg->way = way;
  leg->nbytes = nbytes;
  leg->failures = umem_thread.failures;
  umem_thread.leg = leg;
  leg->begin = now();
}

static void close_inner(umemOpenLeg *leg) {
  umem_thread.leg = leg->outer;
  if (__atomic_load_n(&leg->noted, __ATOMIC_RELAXED) || !leg->nbytes) return;
  mark(leg->outer);
  bool failed = umem_thread.failures != leg->failures;
  note(leg->trace, &leg->src, &leg->dst, leg->way, failed ? 0 : leg->nbytes, 1, now() - leg->begin);
}

/* Only those who move the bytes know the number of a GPU. */
static void name_ends(umemTrace *trace) {
  for (uint32_t i = 0; i < trace->route.leg_count; i++) {
    umemRouteLeg const *leg = &trace->route.legs[i];
    if (!strcmp(leg->src.kind, trace->src.kind)) trace->src = leg->src;
    if (!strcmp(leg->dst.kind, trace->dst.kind)) trace->dst = leg->dst;
  }
}

/* The outermost leg stands for the whole call, and is no leg of the route. */
static void close_trace(umemTrace *trace, bool failed) {
  name_ends(trace);
  trace->route.seconds = (double)(now() - trace->begin) * 1e-9;
  umemSink *sink = trace->counts ? __atomic_load_n(&umem_sink, __ATOMIC_ACQUIRE) : NULL;
  if (sink) sink(trace, failed);
  __atomic_fetch_sub(&umem_watched, 1, __ATOMIC_RELAXED);
}

void umem_leg_close(umemOpenLeg *leg) {
  if (!leg->trace) return;
  if (!leg->whole) {
    close_inner(leg);
    return;
  }
  umem_thread.leg = leg->outer;
  close_trace(leg->trace, umem_thread.failures != leg->trace->failures);
}

void umem_trace_let_go(umemOpenLeg *leg) {
  if (leg->trace) umem_thread.leg = leg->outer;
}

void umem_trace_close(umemOpenLeg *leg, bool failed) {
  if (leg->trace) close_trace(leg->trace, failed);
  leg->trace = NULL;
}

static bool has_sink(void) { return __atomic_load_n(&umem_sink, __ATOMIC_RELAXED); }

static void open_trace(umemTrace *trace, umemOpenLeg *leg, umemVirtual *src, umemVirtual *dst,
                       size_t nbytes) {
  __atomic_fetch_add(&umem_watched, 1, __ATOMIC_RELAXED); /* also if the ledger stops meanwhile */
  *trace = (umemTrace){.route = {.size = sizeof trace->route, .bytes = nbytes},
                       .src = place_of(src),
                       .dst = place_of(dst),
                       .counts = !umem_thread.leg && has_sink(),
                       .failures = umem_thread.failures,
                       .begin = now()};
  *leg = (umemOpenLeg){.outer = umem_thread.leg,
                       .trace = trace,
                       .src = trace->src,
                       .dst = trace->dst,
                       .whole = true};
  umem_thread.leg = leg;
}

void umem_trace_open(umemTrace *trace, umemOpenLeg *leg, umemVirtual *src, umemVirtual *dst,
                     size_t nbytes) {
  *leg = (umemOpenLeg){0};
  if (umem_thread.leg) return;
  if (has_sink()) open_trace(trace, leg, src, dst, nbytes);
}

void umem_trace_open_for(umemTrace *trace, umemOpenLeg *leg, umemVirtual *src, umemVirtual *dst,
                         size_t nbytes) {
  open_trace(trace, leg, src, dst, nbytes);
}

/* ---- one line ---- */

typedef struct Line {
  char *text;
  size_t size, used;
} Line;

static void __attribute__((format(printf, 2, 3))) add(Line *line, char const *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t rest = line->used < line->size ? line->size - line->used : 0;
  int n = vsnprintf(rest ? line->text + line->used : NULL, rest, format, arguments);
  va_end(arguments);
  if (n > 0) line->used += (size_t)n;
}

static void add_place(Line *line, umemRoutePlace const *place) {
  if (place->ordinal >= 0)
    add(line, "%.23s:%d", place->kind, (int)place->ordinal);
  else
    add(line, "%.23s", place->kind);
}

/* "16 workers, page cache"; nothing for what goes without saying. */
static bool add_way(Line *line, umemRouteLeg const *leg, char const *before) {
  bool plain = !strcmp(leg->way, "memcpy") || !strcmp(leg->way, "dma");
  if (leg->workers > 1)
    add(line, plain ? "%s%u workers" : "%s%u workers, %.23s", before, (unsigned)leg->workers,
        leg->way);
  else if (!plain)
    add(line, "%s%.23s", before, leg->way);
  return leg->workers > 1 || !plain;
}

size_t umem_legs_text(umemRouteLeg const *legs, uint32_t count, char *text, size_t size) {
  Line line = {text, size, 0};
  if (size) *text = 0;
  for (uint32_t i = 0; i < count;) {
    umemRouteLeg const *leg = &legs[i];
    if (!i || !is_same_place(&leg->src, &legs[i - 1].dst)) {
      if (i) add(&line, "; ");
      add_place(&line, &leg->src);
    }
    bool said = false;
    do said = add_way(&line, &legs[i], said ? " + " : " -> ") || said;
    while (++i < count && is_same_place(&legs[i].src, &leg->src) &&
           is_same_place(&legs[i].dst, &leg->dst));
    add(&line, " -> ");
    add_place(&line, &leg->dst);
  }
  return line.used;
}

size_t umemRoute_text(umemRoute const *route, char *text, size_t size) {
  size_t const least = offsetof(umemRoute, legs);
  uint32_t count = route && route->size >= least ? route->leg_count : 0;
  uint32_t room = count ? (uint32_t)((route->size - least) / sizeof *route->legs) : 0;
  if (count > room) count = room;
  if (count > UMEM_ROUTE_LEGS) count = UMEM_ROUTE_LEGS;
  return umem_legs_text(count ? route->legs : NULL, count, text, size);
}
