/* order.h - how work of contexts waits for other work, beside the public functions. */
#ifndef UMEM_ORDER_H
#define UMEM_ORDER_H

#include <umem/base.h>

#include "core/context.h"

/* umem_synchronize before umem frees or uses memory that queued work may use. If it fails, waits
 * once more: the error may be about the call, and the work go on. The first failure is recorded. */
umemStatusType umem_finish_work(umemVirtual *ctx);

/* umem_finish_work if ctx has the method synchronize or an upstream. Otherwise there is nothing to
 * wait for. */
static inline umemStatusType umem_finish(umemVirtual *ctx) {
  bool queues = UMEM_SLOT(ctx, synchronize) || UMEM_SLOT(ctx, upstream);
  return queues ? umem_finish_work(ctx) : umemOK;
}

/* Before the CPU touches memory of ctx for umem: returns when the GPU work that may use it is
 * done. Returns false, and records a status, when that fails. */
static inline bool umem_settle(umemVirtual *ctx) {
  if (!umem_can(ctx, umemDeviceShared)) return true;
  bool cpu = ctx->capabilities & (umemCpuReadable | umemCpuWritable);
  return !cpu || umem_synchronize(ctx) == umemOK;
}

/* umem_wait and umem_synchronize for contexts that the program has not named in this call. They
 * do not touch a capture into a graph, which another thread may have begun by now: ctx does not
 * become a part of it, and no thread waits for what it records. That is umemNotSupportedError. */
umemStatusType umem_wait_apart(umemVirtual *ctx, umemVirtual *other);
umemStatusType umem_synchronize_apart(umemVirtual *ctx);

/* Whether the work of ctx is at the moment recorded for later instead of queued (see is_captured
 * in virtual.h): nothing outside of that recording can then be ordered after it, nor it after
 * others. Records nothing, takes no lock. */
bool umem_ask_captured(umemVirtual *ctx);
static inline bool umem_is_captured(umemVirtual *ctx) {
  return ctx->capabilities & umemOrdered && umem_ask_captured(ctx);
}

#endif
