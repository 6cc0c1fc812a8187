/* move.c - blocks whose bytes move: realloc and its default, umem_move, and addresses that are
 * paired with those of another context, with their syncs. */
#include "base/number.h"
#include "core/hook.h"
#include "core/memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <umem/advise.h>
#include <unistd.h>

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
  umem_leave_block(self, adr);
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
