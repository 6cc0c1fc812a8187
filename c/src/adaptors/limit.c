/* limit.c - at most so many bytes of another context. */
#include "adaptors/meter.h"
#include "base/number.h"
#include "core/status.h"

#include <umem/limit.h>

typedef struct Limit {
  umemMeter meter;
  size_t maximum;
  size_t used; /* atomic; includes requests that have begun */
} Limit;

static Limit *limit_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

static size_t used_by(Limit *limit) { return __atomic_load_n(&limit->used, __ATOMIC_RELAXED); }

/* ---- what counts ---- */

static bool limit_admit(umemVirtual *ctx, size_t more) {
  Limit *limit = limit_of(ctx);
  size_t used = used_by(limit);
  do {
    if (more > limit->maximum - used) {
      umemVirtual_fail(
          ctx, umemMemoryError,
          "no room for %zu more bytes: %zu of the %zu that the limit allows are in use", more, used,
          limit->maximum);
      return false;
    }
  } while (!__atomic_compare_exchange_n(&limit->used, &used, used + more, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return true;
}

static void limit_retract(umemVirtual *ctx, size_t more) {
  __atomic_fetch_sub(&limit_of(ctx)->used, more, __ATOMIC_RELAXED);
}

static void limit_resized(umemVirtual *ctx, size_t old_size, size_t new_size) {
  if (new_size < old_size) limit_retract(ctx, old_size - new_size);
}

/* ---- methods ---- */

static void limit_info(umemVirtual *ctx, umemInfo *info) {
  Limit *limit = limit_of(ctx);
  if (umem_get_info(umemAdaptor_upstream(ctx), info) != umemOK) return;
  info->capacity = umem_lesser(info->capacity, limit->maximum);
  info->available = umem_lesser(info->available, limit->maximum - used_by(limit));
}

static bool limit_usage(umemVirtual *ctx, umemUsage *usage) {
  usage->nbytes = used_by(limit_of(ctx));
  return true;
}

/* ---- construction ---- */

UMEM_ADAPTOR_ALLOCATES(umemMeter_ask)
UMEM_ADAPTOR_FREES(umemMeter_free)

static struct umemVtbl const limit_vtbl = {
    .dtor = umemMeter_dtor,
    .info = limit_info,
    .usage = limit_usage,
    UMEM_METER_BLOCKS,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
    UMEM_ADAPTOR_ALWAYS,
};

static bool limit_start(umemVirtual *ctx, void const *maximum) {
  static umemMeterHooks const hooks = {limit_admit, limit_retract, limit_resized};
  umemMeter_start(ctx, &hooks);
  limit_of(ctx)->maximum = *(size_t const *)maximum;
  return true;
}

/* "limit+host:?limit=1M" */
static umemOption const options[] = {
    {.name = "limit",
     .kind = umemSizeOption,
     .required = true,
     .help = "that may be live at once",
     .reserved = {0, sizeof(size_t)}},
};

umemKind const umem_limit_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemLimit, "limit", &limit_vtbl),
               UMEM_ADAPTOR_OPENS(umem_limit_kind), UMEM_OPTIONS(options),
               .help = "gives out no more than so many bytes"},
    .label = "Limit",
    .impl_size = sizeof(Limit),
    .options_size = sizeof(size_t),
    .start = limit_start,
};

UMEM_ADAPTOR_CTORS_WITH(umemLimit, umem_limit_kind, &maximum, size_t maximum)

size_t umemLimit_used(umemLimit *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_limit_kind);
  return self ? used_by(limit_of(self)) : 0;
}
