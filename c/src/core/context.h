/* context.h - the checks at the start of a call, the methods and layers of a context, the order of
 * its work, and its beginning and end. */
#ifndef UMEM_CORE_CONTEXT_H
#define UMEM_CORE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <umem/base.h>
#include <umem/virtual.h>

#include "core/kind.h"
#include "core/status.h"

/* ---- entry checks ---- */

/* Whether ctx, which is not NULL, stands where it was constructed: false for a copy by value. */
static inline bool umem_is_in_place(umemVirtual const *ctx) { return ctx->self == ctx; }

static inline bool umem_can(umemVirtual const *ctx, unsigned capabilities) {
  return (ctx->capabilities & capabilities) == capabilities;
}

/* Returns ctx if it is a constructed context; else NULL, and records a status. Puts cancellation
 * off, but for contexts with umemPrompt. */
umemVirtual *umem_check_slowly(void const *ctx);
static inline umemVirtual *umem_check(void const *ctx) {
  umemVirtual *self = (umemVirtual *)(uintptr_t)ctx;
  bool good = self && self->vptr && umem_is_in_place(self) && umem_can(self, umemPrompt);
  return __builtin_expect(good, 1) ? self : umem_check_slowly(ctx);
}

/* Whether this is a child of fork, and a block of ctx that was there in that generation is its
 * parent's still. */
static inline bool umem_is_of_parent(umemVirtual const *ctx, unsigned generation) {
  return umem_can(ctx, umemShared) && generation != umem_fork_count();
}

static inline uintptr_t umem_null_of(umemVirtual const *ctx) {
  return ctx->capabilities & umemOffsets ? UINTPTR_MAX : 0;
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

/* Records that ctx has no such method. Returns the null of ctx. */
uintptr_t umem_lacks(umemVirtual *ctx, char const *method);

/* ---- access ---- */

/* Whether ctx allows access: umemReadable or umemWritable. Otherwise returns false and records a
 * status. */
bool umem_allows_slowly(umemVirtual *ctx, umemCapability access);
static inline bool umem_allows(umemVirtual *ctx, umemCapability access) {
  return __builtin_expect(umem_can(ctx, access), 1) || umem_allows_slowly(ctx, access);
}

/* Whether [adr, adr + nbytes) can be bytes of ctx: adr is not null, the sum does not overflow,
 * and ctx allows access. Otherwise returns false and records a status. */
bool umem_validate_slowly(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access);
static inline bool umem_validate(umemVirtual *ctx, uintptr_t adr, size_t nbytes,
                                 umemCapability access) {
  bool good = adr != umem_null_of(ctx) && adr <= UINTPTR_MAX - nbytes && umem_can(ctx, access);
  return __builtin_expect(good, 1) || umem_validate_slowly(ctx, adr, nbytes, access);
}

/* Whether nbytes exceed neither of the bounds that a _safe function was given. Otherwise returns
 * false and records umemIndexError on the context, or on both contexts, whose bound they exceed. */
bool umem_both_within(void *src, size_t src_size, void *dst, size_t dst_size, size_t nbytes);

/* ---- layers of a stack ---- */

/* The upstream of ctx. NULL where it has none; NULL, and records a status, where that was
 * destructed. */
static inline umemVirtual *umem_upstream_of(umemVirtual *ctx) {
  umemVirtual *(*slot)(umemVirtual *) = UMEM_SLOT(ctx, upstream);
  umemVirtual *upstream = slot ? slot(ctx) : NULL;
  return upstream ? umem_check(upstream) : NULL;
}

/* The innermost layer of ctx; ctx itself where it has no upstream. Records a failure, and stops,
 * at an upstream that is not constructed any more. */
umemVirtual *umem_innermost(umemVirtual *ctx);

/* The outermost layer of ctx whose table has a method at this offset, or NULL. An adaptor thus
 * inherits the methods that it leaves out. */
static inline umemVirtual *umem_layer_with(umemVirtual *ctx, size_t offset) {
  for (;;) {
    void (*method)(void) = NULL;
    if (offset < ctx->vtbl_size) memcpy(&method, (char const *)ctx->vptr + offset, sizeof method);
    if (method) return ctx;
    ctx = umem_upstream_of(ctx);
    if (!ctx) return NULL;
  }
}
#define UMEM_LAYER_WITH(ctx, slot) umem_layer_with((ctx), offsetof(struct umemVtbl, slot))

/* The layer of ctx whose memory it is: the innermost, or one over it with blocks of its own.
 * Records a failure, and stops, at an upstream that is not constructed any more. */
umemVirtual *umem_owner_of_memory(umemVirtual *ctx);

/* umem_is_same_device for two constructed contexts. */
bool umem_is_one_memory(umemVirtual *one, umemVirtual *other);

/* ---- order: how work of contexts waits for other work ---- */

/* umem_synchronize before umem frees or uses memory that queued work may use. If it fails, waits
 * once more: the error may be about the call, and the work go on. The first failure is recorded. */
umemStatusType umem_finish_work(umemVirtual *ctx);

/* umem_finish_work if ctx has the method synchronize or an upstream. Otherwise there is nothing to
 * wait for. */
static inline umemStatusType umem_finish(umemVirtual *ctx) {
  bool queues = UMEM_SLOT(ctx, synchronize) || UMEM_SLOT(ctx, upstream);
  return queues ? umem_finish_work(ctx) : umemOK;
}

/* How often the process could not wait because the stream was being captured, which another thread
 * had begun: what was queued before goes on. Atomic. */
extern uint64_t umem_unfinished __attribute__((visibility("hidden")));

static inline uint64_t umem_unfinished_so_far(void) {
  return __atomic_load_n(&umem_unfinished, __ATOMIC_RELAXED);
}

/* Frees a buffer for queued work, which was taken when umem_unfinished was before. If work may
 * still use it, the buffer stays for ever. */
static inline void umem_free_buffer(umemVirtual *host, uintptr_t adr, uint64_t before) {
  if (umem_unfinished_so_far() == before) umem_free(host, adr);
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
umemStatusType umem_wait_uncaptured(umemVirtual *ctx, umemVirtual *other);
umemStatusType umem_synchronize_uncaptured(umemVirtual *ctx);

/* Whether the work of ctx is at the moment recorded for later instead of queued (see is_captured
 * in virtual.h): nothing outside of that recording can then be ordered after it, nor it after
 * others. Records nothing, takes no lock. */
bool umem_ask_captured(umemVirtual *ctx);
static inline bool umem_is_captured(umemVirtual *ctx) {
  return ctx->capabilities & umemOrdered && umem_ask_captured(ctx);
}

/* ---- construction ---- */

/* Makes *ctx the base of a context of this kind. */
void umem_construct(umemVirtual *ctx, umemKind const *kind, void *host);

/* For a constructor that has recorded a failure: from now on *ctx answers every call with a
 * status. umem_null and the recorded status stay. The library will not call the method dtor. */
void umem_construct_failed(umemVirtual *ctx);

/* ---- structs that begin with their own size ---- */

/* Copies given over full, a struct of full_size bytes that holds the defaults. given may be
 * shorter or longer, as its first member says; NULL leaves the defaults. Returns false, and
 * records a status on ctx, for a size that cannot be true; type is the name of the struct. */
bool umem_read_sized(void *ctx, void *full, size_t full_size, void const *given, char const *type);

/* Whether out, a struct of the program that begins with its size, has at least `least` bytes.
 * Returns false, and records umemValueError on ctx, otherwise and for NULL. argument and type
 * are the names of out and of the struct. */
bool umem_can_write_sized(void *ctx, void const *out, size_t least, char const *argument,
                          char const *type);

/* Copies full, a struct of full_size bytes, to out, whose first member holds the bytes that
 * there is room for, and keeps that member. */
void umem_write_sized(void *out, void const *full, size_t full_size);

#endif
