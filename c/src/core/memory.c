/* memory.c - allocation, free, set and hints, blocks whose bytes move (realloc, umem_move), and
 * addresses that are paired with those of another context, with their syncs. */
#include "core/memory.h"
#include "base/thread.h"
#include "base/number.h"
#include "core/context.h"
#include "core/status.h"
#include "core/live.h"
#include "core/ram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <umem/advise.h>
#include <unistd.h>

/* ---- allocation ---- */

/* umem_check for the methods alloc and free: also contexts with umemPromptBlocks do not put
 * cancellation off. */
static inline umemVirtual *check_blocks(void *ctx) {
  umemVirtual *self = ctx;
  bool good = self && self->vptr && umem_is_in_place(self) &&
              (self->capabilities & (umemPrompt | umemPromptBlocks));
  return __builtin_expect(good, 1) ? self : umem_check_slowly(ctx);
}

__attribute__((noinline)) uintptr_t umem_alloc_in_full(void *ctx, size_t nbytes,
                                                       void const *caller) {
  UMEM_ENTER_AS("umem_alloc", caller);
  umemVirtual *self = check_blocks(ctx);
  if (!self) return umem_null(ctx);
  if (!self->vptr->alloc) return umem_lacks(self, "alloc");
  uintptr_t adr = self->vptr->alloc(self, nbytes + !nbytes);
  return adr != umem_null_of(self) ? adr : umem_refused(self, umem_entry_.failures, nbytes);
}

static __attribute__((noinline)) uintptr_t alloc_silently(umemVirtual *ctx, size_t nbytes,
                                                          void const *caller) {
  /* Volatile: on the stack, and not in registers, which would have to be saved first. */
  umemVirtual *volatile const kept_ctx = ctx;
  size_t volatile const kept_nbytes = nbytes;
  void const *volatile const kept_caller = caller;
  uintptr_t adr = ctx->vptr->alloc(ctx, nbytes + !nbytes);
  if (__builtin_expect(adr != 0, 1)) return adr;
  return umem_alloc_in_full(kept_ctx, kept_nbytes, kept_caller);
}

/* The two functions whose cost shows. A context with quick functions or umemSilent is constructed,
 * or a copy of one, needs no name for messages, and null is 0; all else, and what failed, takes the
 * long way. */
uintptr_t umem_alloc(void *ctx, size_t nbytes) {
  umemVirtual *self = ctx;
  if (__builtin_expect(self && umem_is_in_place(self), 1)) {
    umemQuickAlloc *quick = umemQuick_alloc_of(self);
    if (quick) return quick(self, nbytes, __builtin_return_address(0));
    if (umem_can(self, umemSilent))
      return alloc_silently(self, nbytes, __builtin_return_address(0));
  }
  return umem_alloc_in_full(ctx, nbytes, __builtin_return_address(0));
}

uintptr_t umemVirtual_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  uintptr_t adr = umem_alloc(ctx, nmemb * size);
  if (adr == umem_null_of(ctx) || umem_set(ctx, adr, 0, nmemb * size) == umemOK) return adr;
  umem_free(ctx, adr);
  return umem_null_of(ctx);
}

uintptr_t umem_calloc(void *ctx, size_t nmemb, size_t size) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_null(ctx);
  size_t nbytes;
  if (__builtin_mul_overflow(nmemb, size, &nbytes)) {
    umemVirtual_fail(self, umemMemoryError, "%zu members of %zu bytes exceed any memory", nmemb,
                     size);
    return umem_null_of(self);
  }
  if (!nbytes) nmemb = size = 1;
  if (!umem_allows(self, umemWritable)) return umem_null_of(self);
  uintptr_t (*calloc)(umemVirtual *, size_t, size_t) = self->vptr->calloc;
  uintptr_t adr = (calloc ? calloc : umemVirtual_calloc)(self, nmemb, size);
  return adr != umem_null_of(self) ? adr : umem_refused(self, before, nbytes);
}

__attribute__((noinline)) void umem_free_in_full(void *ctx, uintptr_t adr, void const *caller) {
  UMEM_ENTER_AS("umem_free", caller);
  umemVirtual *self = check_blocks(ctx);
  if (!self || adr == umem_null_of(self)) return;
  if (self->vptr->free)
    self->vptr->free(self, adr);
  else
    umem_lacks(self, "free");
}

void umem_free(void *ctx, uintptr_t adr) {
  umemVirtual *self = ctx;
  if (__builtin_expect(self && adr && umem_is_in_place(self), 1)) {
    if (umem_can(self, umemSilent)) {
      self->vptr->free(self, adr);
      return;
    }
    umemQuickFree *quick = umemQuick_free_of(self);
    if (quick) {
      quick(self, adr, __builtin_return_address(0));
      return;
    }
  }
  umem_free_in_full(ctx, adr, __builtin_return_address(0));
}

/* ---- set ---- */

enum { set_chunk = 1 << 20 };

void umemVirtual_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemVirtual *host = ctx->host;
  if (!host || !ctx->vptr->copy_from) {
    umemVirtual_fail(ctx, umemNotImplementedError, "%s has no method set, and no %s to do without",
                     umem_get_device_name(ctx), host ? "copy_from" : "host");
    return;
  }
  size_t chunk = nbytes < set_chunk ? nbytes : set_chunk;
  uint64_t before = umem_thread.failures;
  uintptr_t buffer = umem_alloc(host, chunk);
  if (buffer == umem_null_of(host)) {
    umemVirtual_adopt(ctx, before);
    return;
  }
  memset((void *)buffer, c, chunk);
  for (size_t done = 0; done < nbytes && umem_thread.failures == before; done += chunk) {
    if (chunk > nbytes - done) chunk = nbytes - done;
    ctx->vptr->copy_from(ctx, adr + done, host, buffer, chunk);
  }
  umem_finish(ctx); /* the buffer may still be read */
  umem_free(host, buffer);
}

umemStatusType umem_set(void *ctx, uintptr_t adr, int c, size_t nbytes) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  if (!self || !nbytes || !umem_validate(self, adr, nbytes, umemWritable)) return UMEM_RESULT();
  void (*slot)(umemVirtual *, uintptr_t, int, size_t) = self->vptr->set;
  (slot ? slot : umemVirtual_set)(self, adr, c, nbytes);
  return UMEM_RESULT();
}

/* ---- alignment ---- */

/* Whether the origin of aligned could be kept. */
static bool keep_origin(umemVirtual *ctx, uintptr_t aligned, uintptr_t origin) {
  umemLock_acquire_global();
  umemExtra *extra = umemExtra_make(ctx);
  bool kept = extra && umemTable_insert(&extra->origins, aligned, origin);
  umemLock_release_global();
  return kept;
}

/* The origin of aligned, which leaves the table when taken; aligned itself when it is not there. */
static uintptr_t origin_of(umemVirtual *ctx, uintptr_t aligned, bool take) {
  uintptr_t origin = aligned;
  umemLock_acquire_global();
  umemExtra *extra = ctx->base;
  umemTableCell *cell = extra ? umemTable_find(&extra->origins, aligned) : NULL;
  if (cell) {
    origin = cell->value;
    if (take) umemTable_remove(&extra->origins, cell);
  }
  umemLock_release_global();
  return origin;
}

uintptr_t umemVirtual_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  if (alignment <= ctx->alignment) return umem_alloc(ctx, size);
  uintptr_t null = umem_null_of(ctx);
  uintptr_t origin = umem_alloc(ctx, size + alignment - 1);
  if (origin == null) return null;
  uintptr_t aligned = (origin + alignment - 1) & ~(uintptr_t)(alignment - 1);
  if (keep_origin(ctx, aligned, origin)) return aligned;
  umemVirtual_fail(ctx, umemMemoryError, "no memory to remember an aligned block");
  umem_free(ctx, origin);
  return null;
}

uintptr_t umemVirtual_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return origin_of(ctx, adr, false);
}

/* A block whose free is refused lives on, and can be freed again. */
void umemVirtual_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  uint64_t before = umem_thread.failures;
  uintptr_t origin = origin_of(ctx, adr, true);
  umem_free(ctx, origin);
  if (umem_thread.failures != before && origin != adr) keep_origin(ctx, adr, origin);
}

/* A large alignment takes addresses, and on some contexts memory. */
static uintptr_t refused(umemVirtual *ctx, uint64_t before, size_t alignment, size_t size) {
  if (umem_thread.failures == before && alignment > ctx->alignment)
    umemVirtual_fail(ctx, umemMemoryError, "%s cannot allocate %zu bytes at a multiple of %zu",
                     umem_get_device_name(ctx), size, alignment);
  return umem_refused(ctx, before, size);
}

uintptr_t umem_aligned_alloc(void *ctx, size_t alignment, size_t size) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_null(ctx);
  if (!umem_is_power_of_two(alignment)) {
    umemVirtual_fail(self, umemValueError, "alignment %zu is not a power of two", alignment);
    return umem_null_of(self);
  }
  if (size > SIZE_MAX - alignment) {
    umemVirtual_fail(self, umemMemoryError, "%zu bytes at alignment %zu exceed any memory", size,
                     alignment);
    return umem_null_of(self);
  }
  uintptr_t (*slot)(umemVirtual *, size_t, size_t) = self->vptr->aligned_alloc;
  uintptr_t adr = (slot ? slot : umemVirtual_aligned_alloc)(self, alignment, size + !size);
  return adr != umem_null_of(self) ? adr : refused(self, before, alignment, size);
}

uintptr_t umem_aligned_origin(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_null(ctx);
  if (adr == umem_null_of(self)) {
    umemVirtual_fail(self, umemValueError, "the address is null");
    return adr;
  }
  uintptr_t (*slot)(umemVirtual *, uintptr_t) = self->vptr->aligned_origin;
  return (slot ? slot : umemVirtual_aligned_origin)(self, adr);
}

void umem_aligned_free(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  if (!self || adr == umem_null_of(self)) return;
  void (*slot)(umemVirtual *, uintptr_t) = self->vptr->aligned_free;
  (slot ? slot : umemVirtual_aligned_free)(self, adr);
}

void umem_free_aligned(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umem_aligned_free(ctx, adr);
}

/* ---- hints ---- */

umemStatusType umem_advise(void *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice, int device) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self || !nbytes || !umem_validate(self, adr, nbytes, 0)) return umem_result(before);
  if ((unsigned)advice > umemAdviceAccessedBy || device < UMEM_CPU)
    return umemVirtual_fail(self, umemValueError, "there is no advice %d for device %d",
                            (int)advice, device);
  umemVirtual *layer = UMEM_LAYER_WITH(self, advise);
  if (layer)
    layer->vptr->advise(layer, adr, nbytes, advice, device);
  else
    umem_refuse_advice(self, advice, device);
  return umem_record_on_layers(layer, self, before);
}

/* ---- blocks of objects that end ---- */

unsigned umem_generation(void) { return umem_fork_count(); }

void umemVirtual_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  while (ctx && ctx->vptr) {
    void (*leave)(umemVirtual *, uintptr_t, bool) = UMEM_SLOT(ctx, leave);
    if (leave) {
      leave(ctx, adr, aligned);
      return;
    }
    ctx = umem_below(ctx);
  }
}

umemStatusType umem_end_block(void *ctx, uintptr_t adr, bool aligned, bool keeps,
                              unsigned generation) {
  UMEM_ENTER_AS(aligned ? "umem_aligned_free" : "umem_free", __builtin_return_address(0));
  umemVirtual *self = ctx;
  bool kept = self && (umem_is_of_parent(self, generation) || (keeps && umem_can(self, umemKeeps)));
  if (!kept)
    umem_free_as(ctx, adr, aligned);
  else if (umem_is_in_place(self) && adr != umem_null_of(self))
    umemVirtual_leave(self, adr, aligned);
  return umem_result_of(&umem_entry_);
}

/* ---- realloc ---- */

bool umem_has_size(umemVirtual *ctx, uintptr_t adr, uint64_t size, size_t old_size) {
  if (old_size <= size) return true;
  return UMEM_FAIL(ctx, umemValueError,
                   "old_size is %zu, but the block at %ju of %s has at most %ju bytes", old_size,
                   (uintmax_t)adr, umem_get_device_name(ctx), (uintmax_t)size);
}

/* With probe the last of the old_size bytes is read first, where the copy does not reach that far:
 * contexts that know their blocks refuse it. */
static uintptr_t move(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size,
                      bool probe) {
  uintptr_t moved = umem_alloc(ctx, new_size);
  if (moved == umem_null_of(ctx)) return moved;
  size_t kept = old_size < new_size ? old_size : new_size;
  uint64_t before = umem_thread.failures;
  bool read = !probe || kept == old_size ||
              umem_copy_to(ctx, adr + (old_size - 1), ctx, moved, 1) == umemOK;
  if (read && umem_copy_to(ctx, adr, ctx, moved, kept) == umemOK) umem_free(ctx, adr);
  if (umem_thread.failures == before) return moved;
  umem_free(ctx, moved); /* the old block is as it was */
  return umem_null_of(ctx);
}

uintptr_t umem_move_block(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  return move(ctx, adr, old_size, new_size, false);
}

/* Whether all pages of these bytes are mapped: reading where none is ends the program. (So does
 * reading a page that is mapped and not readable; this does not check that.) mincore fails where
 * there is a gap, and touches no page. */
static bool is_mapped(uintptr_t adr, size_t nbytes) {
  enum { pages = 256 };
  unsigned char ignored[pages];
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = adr & ~(page - 1), end = adr + nbytes;
  for (;; at += pages * page) {
    size_t length = umem_lesser(end - at, pages * page);
    if (mincore((void *)at, length, ignored) != 0 && errno == ENOMEM) return false;
    if (end - at <= pages * page) return true;
  }
}

/* umem knows of the block only what free and the copies of ctx report. It checks as much as it can
 * before it reads: the copy must neither read a block that ctx refuses nor read past its end. */
uintptr_t umem_move_unknown(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uintptr_t moved = umem_null_of(ctx);
  if (adr > UINTPTR_MAX - old_size ||
      (umem_can(ctx, umemCpuReadable) && !is_mapped(adr, old_size))) {
    umem_has_size(ctx, adr, 0, old_size);
    return moved;
  }
  umemAttempt held;
  umemAttempt_begin(&held);
  moved = move(ctx, adr, old_size, new_size, true);
  umemAttempt_end(&held);
  if (!umemAttempt_failed(&held)) return moved;
  if (held.type == umemIndexError)
    umem_has_size(ctx, adr, 0, old_size);
  else
    umemAttempt_record(&held);
  return umem_null_of(ctx);
}

uintptr_t umem_realloc(void *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_null(ctx);
  if (adr == umem_null_of(self)) return umem_alloc(self, new_size);
  uintptr_t (*slot)(umemVirtual *, uintptr_t, size_t, size_t) = UMEM_SLOT(self, realloc);
  uintptr_t moved =
      (slot ? slot : umem_move_unknown)(self, adr, old_size + !old_size, new_size + !new_size);
  return moved != umem_null_of(self) ? moved : umem_refused(self, before, new_size);
}

/* ---- blocks that move to another context ---- */

uintptr_t umem_move(void *src, uintptr_t adr, size_t nbytes, void *dst) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  uintptr_t moved = umem_alloc(dst, nbytes);
  if (umem_thread.failures != before) return umem_null(dst);
  bool copied = umem_copy_to(src, adr, dst, moved, nbytes) == umemOK &&
                umem_synchronize(dst) == umemOK && umem_synchronize(src) == umemOK;
  if (copied) umem_free(src, adr);
  if (umem_thread.failures == before) return moved;
  umem_free(dst, moved); /* the old block is as it was */
  return umem_null(dst);
}

/* ---- paired addresses ---- */

/* Whether an address of src can serve as one of dst. Also false, with a status, where that
 * is not known: no caller may then take them for two memories. */
static bool one_memory(umemVirtual *src, umemVirtual *dst) {
  return umem_is_one_memory(src, dst) || (umem_can(src, umemCpuReadable) &&
                                          !umem_can(src, umemSeparate) && umem_is_plain_host(dst));
}

static bool suffices(uintptr_t adr, size_t alignment) { return !(adr & (alignment - 1)); }

/* 0: none is wanted. */
static bool valid_alignment(umemVirtual *dst, size_t *alignment) {
  if (!*alignment) *alignment = 1;
  if (umem_is_power_of_two(*alignment)) return true;
  return UMEM_FAIL(dst, umemValueError, "alignment %zu is not a power of two", *alignment);
}

uintptr_t umem_connect(void *src, uintptr_t src_adr, size_t nbytes, void *dst,
                       size_t dst_alignment) {
  UMEM_ENTER();
  umemVirtual *from = umem_check(src);
  umemVirtual *to = umem_check(dst);
  if (!from || !to || !valid_alignment(to, &dst_alignment)) return umem_null(dst);
  uintptr_t null = umem_null_of(to);
  if (!umem_validate(from, src_adr, nbytes, umemReadable)) return null;
  uint64_t before = umem_thread.failures;
  bool shared = one_memory(from, to) && suffices(src_adr, dst_alignment);
  if (umem_thread.failures != before) return null;
  if (umem_finish(from) != umemOK || umem_finish(to) != umemOK) return null;
  if (shared) return src_adr;

  uintptr_t adr = umem_aligned_alloc(to, dst_alignment, nbytes);
  if (adr == null) return null;
  if (umem_copy_to(from, src_adr, to, adr, nbytes) == umemOK && umem_finish(from) == umemOK &&
      umem_finish(to) == umemOK)
    return adr;
  umem_aligned_free(to, adr);
  return null;
}

umemStatusType umem_disconnect(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                               size_t dst_alignment) {
  UMEM_ENTER();
  umemVirtual *from = umem_check(src);
  umemVirtual *to = umem_check(dst);
  if (!from || !to || !valid_alignment(to, &dst_alignment)) return UMEM_RESULT();
  if (dst_adr == umem_null_of(to)) return umemOK;
  bool shared = one_memory(from, to) && suffices(src_adr, dst_alignment);
  if (UMEM_RESULT() != umemOK) return UMEM_RESULT();
  if (shared && src_adr != dst_adr)
    return umemVirtual_fail(to, umemValueError, "the address %ju is not paired with %ju",
                            (uintmax_t)dst_adr, (uintmax_t)src_adr);
  umem_finish(from); /* the connection ends even if these fail: no one could free the block later */
  umem_finish(to);
  if (!shared) umem_aligned_free(to, dst_adr);
  return UMEM_RESULT();
}

/* Equal addresses are one memory, whichever of the two connect returned. Where nothing moves, this
 * still refuses what a copy would refuse, and waits for what a copy would wait for. */
static umemStatusType sync_pair(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *from = umem_check(src);
  umemVirtual *to = umem_check(dst);
  if (!from || !to) return umem_result(before);
  if (src_adr != dst_adr || !(one_memory(from, to) || one_memory(to, from)))
    return umem_copy_to(from, src_adr, to, dst_adr, nbytes);
  if (!nbytes || !umem_validate(from, src_adr, nbytes, umemReadable) ||
      !umem_validate(to, dst_adr, nbytes, umemWritable))
    return umem_result(before);
  if (!umem_can(to, umemOrdered)) {
    if (umem_settle(from)) umem_settle(to);
  } else if (umem_can(from, umemOrdered)) {
    umem_wait(to, from);
  } else {
    umem_finish(from);
  }
  return umem_result(before);
}

static umemStatusType sync_safe(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                uintptr_t dst_adr, size_t dst_size, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  if (!umem_both_within(src, src_size, dst, dst_size, nbytes)) return umem_result(before);
  return sync_pair(src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_sync_to(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                            size_t nbytes) {
  UMEM_ENTER();
  return sync_pair(src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_sync_from(void *dst, uintptr_t dst_adr, void *src, uintptr_t src_adr,
                              size_t nbytes) {
  UMEM_ENTER();
  return sync_pair(src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_sync_to_safe(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                 uintptr_t dst_adr, size_t dst_size, size_t nbytes) {
  UMEM_ENTER();
  return sync_safe(src, src_adr, src_size, dst, dst_adr, dst_size, nbytes);
}

umemStatusType umem_sync_from_safe(void *dst, uintptr_t dst_adr, size_t dst_size, void *src,
                                   uintptr_t src_adr, size_t src_size, size_t nbytes) {
  UMEM_ENTER();
  return sync_safe(src, src_adr, src_size, dst, dst_adr, dst_size, nbytes);
}
