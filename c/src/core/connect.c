/* connect.c - paired addresses and their syncs. */
#include "core/status.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/context.h"

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
static umemStatusType sync(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
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
  return sync(src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_sync_to(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                            size_t nbytes) {
  UMEM_ENTER();
  return sync(src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_sync_from(void *dst, uintptr_t dst_adr, void *src, uintptr_t src_adr,
                              size_t nbytes) {
  UMEM_ENTER();
  return sync(src, src_adr, dst, dst_adr, nbytes);
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
