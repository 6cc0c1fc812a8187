/* retry.c - asks the program for help when memory is out, and tries again. */
#include "core/adaptor.h"

#include <umem/retry.h>

typedef struct Retry {
  umemAdaptor adaptor;
  umemRetryCallback *callback;
  void *user;
} Retry;

/* What was asked for, in whatever form. */
typedef struct Request {
  uintptr_t (*ask)(umemVirtual *upstream, struct Request const *request);
  size_t nbytes, alignment;
  size_t nmemb, size; /* of calloc */
  uintptr_t adr;      /* of realloc */
  size_t old_size;
} Request;

/* ---- trying ---- */

static bool is_helped(umemVirtual *ctx, Request const *request, unsigned attempt) {
  Retry *retry = umemAdaptor_impl(ctx);
  UMEM_STEP_ASIDE(running);
  return retry->callback(retry->user, ctx, request->nbytes, request->alignment, attempt);
}

static uintptr_t keep_asking(umemVirtual *ctx, Request const *request) {
  for (unsigned attempt = 1;; attempt++) {
    umemAttempt held;
    umemAttempt_begin(&held);
    uintptr_t adr = request->ask(umemAdaptor_upstream(ctx), request);
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

/* ---- methods ---- */

static uintptr_t ask_alloc(umemVirtual *upstream, Request const *request) {
  return umem_alloc(upstream, request->nbytes);
}

static uintptr_t ask_calloc(umemVirtual *upstream, Request const *request) {
  return umem_calloc(upstream, request->nmemb, request->size);
}

static uintptr_t ask_aligned(umemVirtual *upstream, Request const *request) {
  return umem_aligned_alloc(upstream, request->alignment, request->nbytes);
}

static uintptr_t ask_realloc(umemVirtual *upstream, Request const *request) {
  return umem_realloc(upstream, request->adr, request->old_size, request->nbytes);
}

static uintptr_t retry_alloc(umemVirtual *ctx, size_t nbytes) {
  return keep_asking(ctx,
                     &(Request){.ask = ask_alloc, .nbytes = nbytes, .alignment = ctx->alignment});
}

static uintptr_t retry_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  return keep_asking(ctx, &(Request){.ask = ask_calloc,
                                     .nbytes = nmemb * size,
                                     .alignment = ctx->alignment,
                                     .nmemb = nmemb,
                                     .size = size});
}

static uintptr_t retry_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  return keep_asking(ctx, &(Request){.ask = ask_aligned, .nbytes = size, .alignment = alignment});
}

static uintptr_t retry_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  return keep_asking(ctx, &(Request){.ask = ask_realloc,
                                     .nbytes = new_size,
                                     .alignment = ctx->alignment,
                                     .adr = adr,
                                     .old_size = old_size});
}

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
    .alloc = retry_alloc,
    .calloc = retry_calloc,
    .aligned_alloc = retry_aligned_alloc,
    .realloc = retry_realloc,
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

umemStatusType umemRetry_ctor(umemRetry *ctx, void *upstream, umemRetryCallback *callback,
                              void *user) {
  UMEM_ENTER();
  return umemAdaptor_construct(ctx, upstream, false, &umem_retry_kind, &(Help){callback, user});
}

umemStatusType umemRetry_adopt(umemRetry *ctx, void *upstream, umemRetryCallback *callback,
                               void *user) {
  UMEM_ENTER();
  return umemAdaptor_construct(ctx, upstream, true, &umem_retry_kind, &(Help){callback, user});
}
