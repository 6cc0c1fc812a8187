/* stats.c - counts what is allocated from another context. */
#include "adaptors/meter.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/live.h"
#include "core/context.h"

#include <stdlib.h>
#include <string.h>
#include <umem/stats.h>

/* The life of the context, or a part of it. */
typedef struct Scope {
  struct Scope *outer; /* NULL for the life */
  umemStatsFigures figures;
} Scope;

typedef struct Stats {
  umemMeter meter;
  umemLock lock; /* of all that follows */
  Scope life;
  Scope *innermost; /* the life; or owned, as are those between */
} Stats;

static Stats *stats_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- counting ---- */

static void raise_to(int64_t *peak, int64_t current) {
  if (*peak < current) *peak = current;
}

static void count(umemStatsFigures *figures, int64_t old_size, int64_t new_size) {
  figures->current_bytes += new_size - old_size;
  figures->current_count += (new_size != 0) - (old_size != 0);
  figures->total_bytes += new_size;
  figures->total_count += new_size != 0;
  raise_to(&figures->peak_bytes, figures->current_bytes);
  raise_to(&figures->peak_count, figures->current_count);
}

static void stats_resized(umemVirtual *ctx, size_t old_size, size_t new_size) {
  Stats *stats = stats_of(ctx);
  umemLock_acquire(&stats->lock);
  for (Scope *scope = stats->innermost; scope; scope = scope->outer)
    count(&scope->figures, (int64_t)old_size, (int64_t)new_size);
  umemLock_release(&stats->lock);
}

static bool stats_usage(umemVirtual *ctx, umemUsage *usage) {
  Stats *stats = stats_of(ctx);
  if (!umemLock_try(&stats->lock)) return false;
  usage->nbytes = (uint64_t)stats->life.figures.current_bytes;
  usage->peak = (uint64_t)stats->life.figures.peak_bytes;
  umemLock_release(&stats->lock);
  return true;
}

static void stats_dtor(umemVirtual *ctx) {
  Stats *stats = stats_of(ctx);
  umemAdaptor_unlist(ctx);
  for (Scope *scope = stats->innermost, *outer; scope != &stats->life; scope = outer) {
    outer = scope->outer;
    free(scope);
  }
  umemLock_destroy(&stats->lock);
  umemMeter_dtor(ctx);
}

/* ---- construction ---- */

UMEM_ADAPTOR_ALLOCATES(umemMeter_ask)
UMEM_ADAPTOR_FREES(umemMeter_free)

static struct umemVtbl const stats_vtbl = {
    .dtor = stats_dtor,
    .usage = stats_usage,
    UMEM_METER_BLOCKS,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
    UMEM_ADAPTOR_ALWAYS,
};

static bool stats_start(umemVirtual *ctx, void const *options) {
  (void)options;
  static umemMeterHooks const hooks = {.resized = stats_resized};
  Stats *stats = stats_of(ctx);
  umemMeter_start(ctx, &hooks);
  umemLock_init(&stats->lock);
  stats->innermost = &stats->life;
  return true;
}

/* "stats+host:" */
umemKind const umem_stats_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemStats, "stats", &stats_vtbl),
               UMEM_ADAPTOR_OPENS(umem_stats_kind), .help = "counts blocks and bytes"},
    .label = "Stats",
    .impl_size = sizeof(Stats),
    .start = stats_start,
};

UMEM_ADAPTOR_CTORS(umemStats, umem_stats_kind)

/* ---- figures ---- */

/* Whether ctx is one; false with a status otherwise. */
static bool is_stats(umemStats *ctx) { return umemKind_check(ctx, &umem_stats_kind) != NULL; }

/* Whether figures can be written; false with a status otherwise. */
static bool check_figures(umemStats *ctx, umemStatsFigures const *figures) {
  return umem_can_write_sized(ctx, figures, offsetof(umemStatsFigures, peak_bytes), "figures",
                              "umemStatsFigures");
}

/* With the label, which is copied before the lock is taken. */
static void write_figures(umemStatsFigures *to, umemStatsFigures const *from, char const *label) {
  umemStatsFigures full = *from;
  memcpy(full.label, label, sizeof full.label);
  umem_write_sized(to, &full, sizeof full);
}

umemStatusType umemStats_get(umemStats *ctx, umemStatsFigures *figures) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (!is_stats(ctx) || !check_figures(ctx, figures)) return umem_result(before);
  Stats *stats = ctx->impl;
  char label[UMEM_LABEL_SIZE];
  umemExtra_label(&ctx->super, label);
  umemLock_acquire(&stats->lock);
  write_figures(figures, &stats->life.figures, label);
  umemLock_release(&stats->lock);
  return umemOK;
}

umemStatusType umemStats_push(umemStats *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (!is_stats(ctx)) return umem_result(before);
  Stats *stats = ctx->impl;
  Scope *scope = calloc(1, sizeof *scope);
  if (!scope) return umemVirtual_fail(ctx, umemMemoryError, "no memory for a scope");
  umemLock_acquire(&stats->lock);
  scope->outer = stats->innermost;
  stats->innermost = scope;
  umemLock_release(&stats->lock);
  return umemOK;
}

umemStatusType umemStats_pop(umemStats *ctx, umemStatsFigures *figures) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (!is_stats(ctx) || (figures && !check_figures(ctx, figures))) return umem_result(before);
  Stats *stats = ctx->impl;
  char label[UMEM_LABEL_SIZE];
  umemExtra_label(&ctx->super, label);
  umemLock_acquire(&stats->lock);
  Scope *scope = stats->innermost;
  if (scope->outer) stats->innermost = scope->outer;
  umemLock_release(&stats->lock);
  if (!scope->outer) return umemVirtual_fail(ctx, umemValueError, "no scope is open");
  if (figures) write_figures(figures, &scope->figures, label);
  free(scope);
  return umemOK;
}

static int64_t not_negative(int64_t n) { return n > 0 ? n : 0; }

umemStatusType umemStats_reset(umemStats *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (!is_stats(ctx)) return umem_result(before);
  Stats *stats = ctx->impl;
  umemLock_acquire(&stats->lock);
  for (Scope *scope = stats->innermost; scope; scope = scope->outer) {
    umemStatsFigures *figures = &scope->figures;
    figures->peak_bytes = not_negative(figures->current_bytes);
    figures->peak_count = not_negative(figures->current_count);
    figures->total_bytes = figures->total_count = 0;
  }
  umemLock_release(&stats->lock);
  return umemOK;
}
