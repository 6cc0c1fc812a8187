/* guard.h - the first questions to a context that a call was given: is it one, and what can it do. */
#ifndef UMEM_GUARD_H
#define UMEM_GUARD_H

#include <stddef.h>
#include <umem/base.h>

#include "base/lock.h"
#include "core/slot.h"

/* Whether ctx, which is not NULL, stands where it was constructed: false for a copy by value. */
static inline bool umem_is_in_place(umemVirtual const *ctx) { return ctx->self == ctx; }

static inline bool umem_can(umemVirtual const *ctx, unsigned capabilities) {
  return (ctx->capabilities & capabilities) == capabilities;
}

/* Returns ctx if it is a constructed context; else NULL, and records a status. Puts cancellation off, but for
 * contexts with umemPrompt. */
umemVirtual *umem_guard_slowly(void const *ctx);
static inline umemVirtual *umem_guard(void const *ctx) {
  umemVirtual *self = (umemVirtual *)(uintptr_t)ctx;
  bool good = self && self->vptr && umem_is_in_place(self) && umem_can(self, umemPrompt);
  return __builtin_expect(good, 1) ? self : umem_guard_slowly(ctx);
}

/* The same for the methods alloc and free. */
static inline umemVirtual *umem_guard_blocks(void const *ctx) {
  umemVirtual *self = (umemVirtual *)(uintptr_t)ctx;
  bool good = self && self->vptr && umem_is_in_place(self) &&
              (self->capabilities & (umemPrompt | umemPromptBlocks));
  return __builtin_expect(good, 1) ? self : umem_guard_slowly(ctx);
}

/* Whether this is a child of fork, and a block of ctx that was there in that generation is its parent's still. */
static inline bool umem_is_of_parent(umemVirtual const *ctx, unsigned generation) {
  return umem_can(ctx, umemShared) && generation != umem_fork_count();
}

static inline uintptr_t umem_null_of(umemVirtual const *ctx) {
  return umem_can(ctx, umemOffsets) ? UINTPTR_MAX : 0;
}

/* Whether ctx is RAM that its own addresses point to: a genuine umemHost. */
static inline bool umem_is_plain_host(umemVirtual const *ctx) { return ctx->host == ctx; }

/* Whether umem itself may read or write through ctx's addresses. */
static inline bool umem_cpu_reads(umemVirtual const *ctx) {
  return (ctx->capabilities & (umemCpuReadable | umemFaultable)) == umemCpuReadable;
}
static inline bool umem_cpu_writes(umemVirtual const *ctx) {
  return (ctx->capabilities & (umemCpuWritable | umemFaultable)) == umemCpuWritable;
}

#endif
