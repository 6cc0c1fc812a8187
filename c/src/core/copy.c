/* copy.c - copies of runs between any two contexts. */
#include "core/access.h"
#include "core/enter.h"
#include "core/guard.h"
#include "core/strided.h"

static umemStatusType copy(umemEntry const *entry, void *src, uintptr_t src_adr, void *dst,
                           uintptr_t dst_adr, size_t nbytes) {
  umemVirtual *from = umem_guard(src);
  umemVirtual *to = umem_guard(dst);
  if (!from || !to || !nbytes) return umem_result_of(entry);
  if (umem_validate(from, src_adr, nbytes, umemReadable) &&
      umem_validate(to, dst_adr, nbytes, umemWritable))
    umem_copy_any_run(from, src_adr, to, dst_adr, nbytes);
  return umem_result_of(entry);
}

umemStatusType umem_copy_to(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                            size_t nbytes) {
  UMEM_ENTER();
  return copy(&umem_entry_, src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_copy_from(void *dst, uintptr_t dst_adr, void *src, uintptr_t src_adr,
                              size_t nbytes) {
  UMEM_ENTER();
  return copy(&umem_entry_, src, src_adr, dst, dst_adr, nbytes);
}

static umemStatusType copy_safe(umemEntry const *entry, void *src, uintptr_t src_adr,
                                size_t src_size, void *dst, uintptr_t dst_adr, size_t dst_size,
                                size_t nbytes) {
  if (!umem_both_within(src, src_size, dst, dst_size, nbytes)) return umem_result_of(entry);
  return copy(entry, src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_copy_to_safe(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                 uintptr_t dst_adr, size_t dst_size, size_t nbytes) {
  UMEM_ENTER();
  return copy_safe(&umem_entry_, src, src_adr, src_size, dst, dst_adr, dst_size, nbytes);
}

umemStatusType umem_copy_from_safe(void *dst, uintptr_t dst_adr, size_t dst_size, void *src,
                                   uintptr_t src_adr, size_t src_size, size_t nbytes) {
  UMEM_ENTER();
  return copy_safe(&umem_entry_, src, src_adr, src_size, dst, dst_adr, dst_size, nbytes);
}
