/* retry.c - calls a function of the program when upstream is out of memory, and tries again. */
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

static uintptr_t retry_allocate(umemVirtual *ctx, umemRequest const *request) {
  for (unsigned attempt = 1;; attempt++) {
    umemAttempt held;
    umemAttempt_begin(&held);
    uintptr_t adr = umem_alloc_as(umemAdaptor_upstream(ctx), request);
    umemAttempt_end(&held);
    if (!umemAttempt_failed(&held)) return adr;
    bool hopeless = adr != umem_null_of(ctx) || held.type != umemMemoryError;
    if (!hopeless)
      UMEM_DECIDED(umemDecisionMemory, ctx,
                   "no memory for %zu bytes, attempt %u: the callback may "
                   "free some",
                   request->nbytes, attempt);
    if (!hopeless && is_helped(ctx, request, attempt)) continue;
    UMEM_ADAPTOR_RECORDS(ctx);
    umemAttempt_record(&held);
    return adr;
  }
}
UMEM_ADAPTOR_ALLOCATES(retry_allocate)

/* ---- construction ---- */

typedef struct Help {
  umemRetryCallback *callback;
  void *user;
} Help;

static bool retry_start(umemVirtual *ctx, void const *options) {
  Help const *help = options;
  Retry *retry = umemAdaptor_impl(ctx);
  retry->callback = help->callback;
  retry->user = help->user;
  if (!help->callback) umemVirtual_fail(ctx, umemValueError, "the callback is NULL");
  return help->callback;
}

static struct umemVtbl const retry_vtbl = {
    .dtor = umemAdaptor_dtor,
    UMEM_ADAPTOR_ALLOCATION_BY(retry_allocate),
    UMEM_ADAPTOR_FREE,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
    UMEM_ADAPTOR_ALWAYS,
};

umemKind const umem_retry_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemRetry, "retry", &retry_vtbl),
               .help = "asks the program for help when memory is out"},
    .label = "Retry",
    .impl_size = sizeof(Retry),
    .start = retry_start,
};

UMEM_ADAPTOR_CTORS(umemRetry, umem_retry_kind, (&(Help){callback, user}), void *upstream,
                   umemRetryCallback *callback, void *user)
