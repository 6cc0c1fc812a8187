/* retry.c - asks the program for help when memory is out, and tries again. */
#include "core/adaptor.h"

#include <umem/retry.h>

typedef struct Retry {
  umemAdaptor adaptor;
  umemRetryCallback *callback;
  void *user;
} Retry;

/* ---- trying ---- */

static bool is_helped(umemVirtual *ctx, umemRequest const *request, unsigned attempt) {
  Retry *retry = umemAdaptor_impl(ctx);
  size_t alignment = request->how == umemByAligned ? request->alignment : ctx->alignment;
  UMEM_STEP_ASIDE(running);
  return retry->callback(retry->user, ctx, request->nbytes, alignment, attempt);
}

static uintptr_t retry_ask(umemVirtual *ctx, umemRequest const *request) {
  for (unsigned attempt = 1;; attempt++) {
    umemAttempt held;
    umemAttempt_begin(&held);
    uintptr_t adr = umemRequest_ask(umemAdaptor_upstream(ctx), request);
    umemAttempt_end(&held);
    if (!umemAttempt_failed(&held)) return adr;
    bool hopeless = adr != umem_null_of(ctx) || held.type != umemMemoryError;
    if (!hopeless && is_helped(ctx, request, attempt)) continue;
    uint64_t before = umem_thread.failures;
    umemAttempt_record(&held);
    umemAdaptor_failed(ctx, before);
    return adr;
  }
}
UMEM_ADAPTOR_ALLOCATES(retry_ask)

/* ---- construction ---- */

static umemStatusType construct(umemRetry *ctx, void *upstream, umemRetryCallback *callback,
                                void *user, bool adopts) {
  static struct umemVtbl const vtbl = {
      .dtor = umemAdaptor_dtor,
      UMEM_ADAPTOR_ALLOCATION_BY(retry_ask),
      UMEM_ADAPTOR_FREE,
      UMEM_ADAPTOR_BYTES,
      UMEM_ADAPTOR_ORDER,
      UMEM_ADAPTOR_ALWAYS,
  };
  uint64_t before = umem_thread.failures;
  Retry *retry = umemAdaptor_construct(ctx, upstream, adopts, &vtbl, "Retry", sizeof *retry);
  if (!retry) return umem_result(before);
  retry->callback = callback;
  retry->user = user;
  if (callback) return umemOK;
  umemVirtual_fail(ctx, umemValueError, "the callback is NULL");
  umemAdaptor_abandon(&ctx->super);
  return umemValueError;
}

umemStatusType umemRetry_ctor(umemRetry *ctx, void *upstream, umemRetryCallback *callback,
                              void *user) {
  UMEM_ENTER();
  return construct(ctx, upstream, callback, user, false);
}

umemStatusType umemRetry_adopt(umemRetry *ctx, void *upstream, umemRetryCallback *callback,
                               void *user) {
  UMEM_ENTER();
  return construct(ctx, upstream, callback, user, true);
}
