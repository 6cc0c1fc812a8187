#include "clocks.h"
#include "scoped.h"

#include <stdio.h>
#include <string.h>

enum { unit = 4096, units = clockBytes / unit, grains = clockBytes / clockGrain };

typedef struct Clock {
  uint32_t of[clockQueues];
} Clock;

struct Clocks {
  pthread_mutex_t mutex;
  Clock queue[clockQueues]; /* [q].of[p]: the uses of p that later work of q comes after */
  Clock host;               /* ... that the program has waited for */
  Clock stamps[grains];
  uint16_t taken[units]; /* at the first unit of a block its units, at others 1; 0: free */
  size_t allocated;
  unsigned long waits;
  unsigned failing;
  unsigned allowed; /* bit q: calls on queue q */
  bool forgets;
  char race[200];
};

static void join(Clock *clock, Clock const *other) {
  for (int p = 0; p < clockQueues; p++)
    if (clock->of[p] < other->of[p]) clock->of[p] = other->of[p];
}

static void note(Clocks *clocks, char const *what, uintptr_t adr, int later, int earlier) {
  if (clocks->race[0]) return;
  snprintf(clocks->race, sizeof clocks->race, "%s at %#jx by queue %d races with queue %d", what,
           (uintmax_t)adr, later, earlier);
}

/* That clock, of queue q or (-1) of the host, has come to all uses of the range. */
static void check(Clocks *clocks, char const *what, int q, uintptr_t adr, size_t nbytes) {
  Clock const *clock = q < 0 ? &clocks->host : &clocks->queue[q];
  size_t first = (adr - clock_base) / clockGrain,
         end = first + (nbytes + clockGrain - 1) / clockGrain;
  for (size_t i = first; i < end; i++)
    for (int p = 0; p < clockQueues; p++)
      if (clocks->stamps[i].of[p] > clock->of[p]) note(clocks, what, adr, q, p);
}

static bool is_allocated(Clocks *clocks, uintptr_t adr, size_t nbytes) {
  if (adr < clock_base || adr - clock_base > clockBytes - nbytes) return false;
  for (size_t i = (adr - clock_base) / unit; i <= (adr + nbytes - 1 - clock_base) / unit; i++)
    if (!clocks->taken[i]) return false;
  return true;
}

/* Under the mutex. */
static void use(Clocks *clocks, char const *what, int q, uintptr_t adr, size_t nbytes) {
  if (!is_allocated(clocks, adr, nbytes)) {
    note(clocks, "use of what is not allocated", adr, q, q);
    return;
  }
  if (q >= 0) { /* the program queues it after all that it has waited for */
    join(&clocks->queue[q], &clocks->host);
    clocks->queue[q].of[q]++;
  }
  check(clocks, what, q, adr, nbytes);
  size_t first = (adr - clock_base) / clockGrain,
         end = first + (nbytes + clockGrain - 1) / clockGrain;
  for (size_t i = first; q >= 0 && i < end; i++) clocks->stamps[i].of[q] = clocks->queue[q].of[q];
}

void clock_use(ClockQueue *ctx, uintptr_t adr, size_t nbytes) {
  LOCKED(&ctx->clocks->mutex);
  use(ctx->clocks, "use", ctx->number, adr, nbytes);
}

/* ---- methods ---- */

static ClockQueue *of(umemVirtual *ctx) { return (ClockQueue *)ctx; }

static void clock_wait(umemVirtual *ctx, umemVirtual *other);

static bool fits(Clocks const *clocks, size_t at, size_t count) {
  if (at + count > units) return false;
  for (size_t i = at; i < at + count; i++)
    if (clocks->taken[i]) return false;
  return true;
}

static uintptr_t take(Clocks *clocks, size_t alignment, size_t count) {
  size_t step = alignment > unit ? alignment / unit : 1;
  for (size_t at = 0; at + count <= units; at += step)
    if (fits(clocks, at, count)) {
      for (size_t i = 0; i < count; i++) clocks->taken[at + i] = 1;
      clocks->taken[at] = (uint16_t)count;
      clocks->allocated += count * unit;
      return clock_base + at * unit;
    }
  return 0;
}

static uintptr_t clock_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  Clocks *clocks = of(ctx)->clocks;
  pthread_mutex_lock(&clocks->mutex);
  uintptr_t adr = size < clockBytes ? take(clocks, alignment, (size + unit - 1) / unit) : 0;
  if (adr) use(clocks, "allocation", of(ctx)->number, adr, size);
  pthread_mutex_unlock(&clocks->mutex);
  if (!adr) umemVirtual_fail(ctx, umemMemoryError, "no room for %zu bytes", size);
  return adr;
}

static uintptr_t clock_alloc(umemVirtual *ctx, size_t nbytes) {
  return clock_aligned_alloc(ctx, unit, nbytes);
}

static uintptr_t clock_origin(umemVirtual *ctx UNUSED, uintptr_t adr) { return adr; }

static void clock_free(umemVirtual *ctx, uintptr_t adr) {
  Clocks *clocks = of(ctx)->clocks;
  LOCKED(&clocks->mutex);
  size_t at = (adr - clock_base) / unit, count = clocks->taken[at];
  use(clocks, "free", of(ctx)->number, adr, count * unit);
  for (size_t i = 0; i < count; i++) clocks->taken[at + i] = 0;
  clocks->allocated -= count * unit;
}

static void clock_set(umemVirtual *ctx, uintptr_t adr, int c UNUSED, size_t nbytes) {
  clock_use(of(ctx), adr, nbytes);
}

static void clock_copy(umemVirtual *ctx, uintptr_t adr, umemVirtual *that UNUSED,
                       uintptr_t that_adr UNUSED, size_t nbytes) {
  clock_use(of(ctx), adr, nbytes);
}

/* Notes a call on a queue with marks that nobody may use now. Under the mutex. */
static void touch(Clocks *clocks, umemVirtual *ctx) {
  if (ctx->vptr->mark && of(ctx)->number >= 0 && !(clocks->allowed >> of(ctx)->number & 1))
    note(clocks, "a call", 0, of(ctx)->number, of(ctx)->number);
}

/* Whether this wait works. Under the mutex. */
static bool may_wait(Clocks *clocks) {
  clocks->waits++;
  if (!clocks->failing) return true;
  clocks->failing--;
  return false;
}

static void clock_synchronize(umemVirtual *ctx) {
  Clocks *clocks = of(ctx)->clocks;
  pthread_mutex_lock(&clocks->mutex);
  touch(clocks, ctx);
  bool waits = of(ctx)->number < 0 || may_wait(clocks);
  if (waits && of(ctx)->number >= 0 && !clocks->forgets)
    join(&clocks->host, &clocks->queue[of(ctx)->number]);
  pthread_mutex_unlock(&clocks->mutex);
  if (!waits) umemVirtual_fail(ctx, umemRuntimeError, "waiting has failed");
}

static void clock_wait(umemVirtual *ctx, umemVirtual *other) {
  Clocks *clocks = of(ctx)->clocks;
  bool is_queue = other->vptr && other->vptr->wait == clock_wait;
  if (!is_queue || of(ctx)->number < 0) {
    umem_synchronize(other);
    return;
  }
  pthread_mutex_lock(&clocks->mutex);
  touch(clocks, ctx);
  touch(clocks, other);
  bool waits = may_wait(clocks);
  if (waits && !clocks->forgets)
    join(&clocks->queue[of(ctx)->number], &clocks->queue[of(other)->number]);
  pthread_mutex_unlock(&clocks->mutex);
  if (!waits) umemVirtual_fail(ctx, umemRuntimeError, "waiting has failed");
}

/* ---- marks ---- */

static bool mark_reached(umemVirtual *ctx, umemMark *mark, bool waits) {
  Clocks *clocks = of(ctx)->clocks;
  pthread_mutex_lock(&clocks->mutex);
  waits = may_wait(clocks) && waits;
  if (waits && !clocks->forgets) join(&clocks->host, (Clock *)mark->own[0]);
  pthread_mutex_unlock(&clocks->mutex);
  if (!waits) umemVirtual_fail(ctx, umemRuntimeError, "waiting has failed");
  return true;
}

static bool mark_wait(umemVirtual *ctx, umemMark *mark, umemVirtual *later) {
  Clocks *clocks = of(ctx)->clocks;
  if (!later->vptr || later->vptr->wait != clock_wait || of(later)->number < 0) {
    uint64_t before = umem_thread_failures();
    return mark_reached(ctx, mark, true) && umem_thread_failures() == before;
  }
  pthread_mutex_lock(&clocks->mutex);
  touch(clocks, later);
  bool waits = may_wait(clocks);
  if (waits && !clocks->forgets) join(&clocks->queue[of(later)->number], (Clock *)mark->own[0]);
  pthread_mutex_unlock(&clocks->mutex);
  if (!waits) umemVirtual_fail(later, umemRuntimeError, "waiting has failed");
  return waits;
}

static void mark_release(umemVirtual *ctx UNUSED, umemMark *mark) { free((void *)mark->own[0]); }

/* A mark has a clock. */
static bool clock_mark(umemVirtual *ctx, umemMark *mark) {
  Clocks *clocks = of(ctx)->clocks;
  pthread_mutex_lock(&clocks->mutex);
  touch(clocks, ctx);
  bool works = !clocks->failing;
  if (!works) clocks->failing--;
  Clock *clock = (Clock *)mark->own[0];
  if (works && !clock) clock = calloc(1, sizeof *clock);
  if (works && clock) *clock = clocks->queue[of(ctx)->number];
  pthread_mutex_unlock(&clocks->mutex);
  if (works && clock && !mark->reached)
    *mark = (umemMark){mark_reached, mark_release, {(uintptr_t)clock}, mark_wait};
  if (works && clock) return true;
  umemVirtual_fail(ctx, umemRuntimeError, "marking has failed");
  return false;
}

/* ---- construction ---- */

#define METHODS                                                                                    \
  .alloc = clock_alloc, .free = clock_free, .aligned_alloc = clock_aligned_alloc,                  \
  .aligned_origin = clock_origin, .aligned_free = clock_free, .set = clock_set,                    \
  .copy_to = clock_copy, .copy_from = clock_copy, .synchronize = clock_synchronize,                \
  .wait = clock_wait

void clock_queue_have_marks(ClockQueue *ctx) {
  static struct umemVtbl const vtbl = {METHODS, .mark = clock_mark};
  ctx->super.vptr = &vtbl;
}

umemStatusType clock_queue_ctor(ClockQueue *ctx, Clocks *clocks, int number) {
  static struct umemVtbl const vtbl = {METHODS};
  umemVirtual_ctor(&ctx->super, NULL);
  ctx->super.vptr = &vtbl;
  ctx->super.type = umemUserDevice;
  ctx->super.name = number < 0 ? "ClockHost" : "ClockQueue";
  ctx->super.alignment = clockGrain;
  ctx->super.capabilities |= umemConcurrent | (number < 0 ? 0 : umemOrdered);
  ctx->super.space[0] = (uintptr_t)clocks;
  ctx->clocks = clocks;
  ctx->number = number;
  return umemOK;
}

Clocks *clocks_create(void) {
  Clocks *clocks = calloc(1, sizeof *clocks);
  if (clocks) pthread_mutex_init(&clocks->mutex, NULL);
  if (clocks) clocks->allowed = ~0U;
  return clocks;
}

void clocks_destroy(Clocks *clocks) {
  pthread_mutex_destroy(&clocks->mutex);
  free(clocks);
}

/* ---- questions and settings ---- */

char const *clocks_race(Clocks *clocks) { return clocks->race[0] ? clocks->race : NULL; }

unsigned long clocks_waits(Clocks *clocks) { return clocks->waits; }

void clocks_forget_waits(Clocks *clocks) { clocks->forgets = true; }

void clocks_fail_waits(Clocks *clocks, unsigned count) { clocks->failing = count; }

void clocks_allow(Clocks *clocks, unsigned queues) {
  LOCKED(&clocks->mutex);
  clocks->allowed = queues;
}

size_t clocks_allocated(Clocks *clocks) { return clocks->allocated; }
