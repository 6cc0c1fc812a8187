/* limit.c - at most so many bytes of another context. */
#include "adaptors/meter.h"
#include "open/schemes.h"

#include <umem/limit.h>

typedef struct Limit {
  umemMeter meter;
  size_t maximum;
  size_t used; /* atomic; also what is being asked for */
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

/* ---- construction ---- */

UMEM_ADAPTOR_ALLOCATES(umemMeter_ask)
UMEM_ADAPTOR_FREES(umemMeter_free)

static struct umemVtbl const limit_vtbl = {
    .dtor = umemMeter_dtor,
    .info = limit_info,
    UMEM_METER_BLOCKS,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
    UMEM_ADAPTOR_ALWAYS,
};

static umemStatusType construct(umemLimit *ctx, void *upstream, size_t maximum, bool adopts) {
  static umemMeterHooks const hooks = {limit_admit, limit_retract, limit_resized};
  uint64_t before = umem_thread.failures;
  Limit *limit =
      umemMeter_construct(ctx, upstream, adopts, &limit_vtbl, "Limit", sizeof *limit, &hooks);
  if (!limit) return umem_result(before);
  limit->maximum = maximum;
  return umemOK;
}

umemStatusType umemLimit_ctor(umemLimit *ctx, void *upstream, size_t maximum) {
  UMEM_ENTER();
  return construct(ctx, upstream, maximum, false);
}

umemStatusType umemLimit_adopt(umemLimit *ctx, void *upstream, size_t maximum) {
  UMEM_ENTER();
  return construct(ctx, upstream, maximum, true);
}

size_t umemLimit_used(umemLimit *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemAdaptor_of_kind(ctx, &limit_vtbl, "umemLimit");
  return self ? used_by(limit_of(self)) : 0;
}

/* ---- by name: "limit+host:?limit=1M" ---- */

static umemOption const options[] = {
    {.name = "limit", .kind = umemSizeOption, .required = true, .help = "that may be live at once"},
};

static umemStatusType open_limit(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)place, (void)user;
  return umemLimit_ctor(ctx, upstream, given[0].number);
}

umemScheme const umem_limit_scheme = {
    .size = sizeof(umemScheme),
    .name = "limit",
    .context_size = sizeof(umemLimit),
    .decorates = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_limit,
    .help = "gives out no more than so many bytes",
};
