/* adaptor_kinds.h - all small adaptors, for tests of what holds for each. */
#ifndef UMEM_TEST_ADAPTOR_KINDS_H
#define UMEM_TEST_ADAPTOR_KINDS_H

#include "adaptor_help.h"
#include "adaptors.h"

typedef umemStatusType Construct(void *ctx, void *upstream);

static umemStatusType limit_borrows(void *ctx, void *upstream) {
  return umemLimit_ctor(ctx, upstream, SIZE_MAX);
}
static umemStatusType limit_adopts(void *ctx, void *upstream) {
  return umemLimit_adopt(ctx, upstream, SIZE_MAX);
}
static umemStatusType stats_borrows(void *ctx, void *upstream) {
  return umemStats_ctor(ctx, upstream);
}
static umemStatusType stats_adopts(void *ctx, void *upstream) {
  return umemStats_adopt(ctx, upstream);
}
static umemStatusType track_borrows(void *ctx, void *upstream) {
  return umemTrack_ctor(ctx, upstream, NULL);
}
static umemStatusType track_adopts(void *ctx, void *upstream) {
  return umemTrack_adopt(ctx, upstream, NULL);
}
static umemStatusType debug_borrows(void *ctx, void *upstream) {
  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  options.frames = 4;
  return umemDebug_ctor(ctx, upstream, &options);
}
static umemStatusType debug_adopts(void *ctx, void *upstream) {
  return umemDebug_adopt(ctx, upstream, NULL);
}
static bool give_up(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  (void)user, (void)ctx, (void)nbytes, (void)alignment, (void)attempt;
  return false;
}
static umemStatusType retry_borrows(void *ctx, void *upstream) {
  return umemRetry_ctor(ctx, upstream, give_up, NULL);
}
static umemStatusType retry_adopts(void *ctx, void *upstream) {
  return umemRetry_adopt(ctx, upstream, give_up, NULL);
}
static umemStatusType fault_borrows(void *ctx, void *upstream) {
  return umemFault_ctor(ctx, upstream, NULL);
}
static umemStatusType fault_adopts(void *ctx, void *upstream) {
  return umemFault_adopt(ctx, upstream, NULL);
}
static umemStatusType log_borrows(void *ctx, void *upstream) {
  return adaptor_log(umemLog_ctor, ctx, upstream);
}
static umemStatusType log_adopts(void *ctx, void *upstream) {
  return adaptor_log(umemLog_adopt, ctx, upstream);
}
static umemStatusType guarded_borrows(void *ctx, void *upstream) {
  return umemGuarded_ctor(ctx, upstream);
}
static umemStatusType guarded_adopts(void *ctx, void *upstream) {
  return umemGuarded_adopt(ctx, upstream);
}

static struct {
  char const *name;
  Construct *borrows, *adopts;
} const kinds[] = {
    {"Limit", limit_borrows, limit_adopts}, {"Stats", stats_borrows, stats_adopts},
    {"Track", track_borrows, track_adopts}, {"Retry", retry_borrows, retry_adopts},
    {"Fault", fault_borrows, fault_adopts}, {"Log", log_borrows, log_adopts},
    {"Debug", debug_borrows, debug_adopts}, {"Guarded", guarded_borrows, guarded_adopts},
};
enum { kind_count = sizeof kinds / sizeof *kinds };

/* As large as each of them. */
typedef umemLimit Any;

#define FOR_EACH_KIND for (size_t kind = 0; kind < kind_count; kind++)

#endif
