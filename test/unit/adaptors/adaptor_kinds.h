/* adaptor_kinds.h - all small adaptors, for tests of what holds for each. */
#pragma once

#include "adaptor_help.h"
#include "backends.h"

typedef umemStatusType Construct(void *ctx, void *upstream);

static bool give_up(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  (void)user, (void)ctx, (void)nbytes, (void)alignment, (void)attempt;
  return false;
}

/* Both constructors of a kind, with what they need. */
#define KIND(kind, arguments)                                                                      \
  static umemStatusType kind##_borrows(void *ctx, void *upstream) {                                \
    return umem##kind##_ctor arguments;                                                            \
  }                                                                                                \
  static umemStatusType kind##_adopts(void *ctx, void *upstream) {                                 \
    return umem##kind##_adopt arguments;                                                           \
  }
KIND(Limit, (ctx, upstream, SIZE_MAX))
KIND(Stats, (ctx, upstream))
KIND(Track, (ctx, upstream, NULL))
KIND(Retry, (ctx, upstream, give_up, NULL))
KIND(Fault, (ctx, upstream, NULL))
KIND(Guarded, (ctx, upstream))
static umemStatusType Debug_borrows(void *ctx, void *upstream) {
  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  options.frames = 4;
  return umemDebug_ctor(ctx, upstream, &options);
}
static umemStatusType Debug_adopts(void *ctx, void *upstream) {
  return umemDebug_adopt(ctx, upstream, NULL);
}
static umemStatusType Log_borrows(void *ctx, void *upstream) {
  return backend_log(umemLog_ctor, ctx, upstream);
}
static umemStatusType Log_adopts(void *ctx, void *upstream) {
  return backend_log(umemLog_adopt, ctx, upstream);
}

static struct {
  char const *name;
  Construct *borrows, *adopts;
} const kinds[] = {
    {"Limit", Limit_borrows, Limit_adopts}, {"Stats", Stats_borrows, Stats_adopts},
    {"Track", Track_borrows, Track_adopts}, {"Retry", Retry_borrows, Retry_adopts},
    {"Fault", Fault_borrows, Fault_adopts}, {"Log", Log_borrows, Log_adopts},
    {"Debug", Debug_borrows, Debug_adopts}, {"Guarded", Guarded_borrows, Guarded_adopts},
};
enum { kind_count = sizeof kinds / sizeof *kinds };

/* As large as each of them. */
typedef umemLimit Any;

#define FOR_EACH_KIND for (size_t kind = 0; kind < kind_count; kind++)
