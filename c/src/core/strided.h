/* strided.h - the two halves of umem_copy_strided, and runs whose sides may overlap. */
#ifndef UMEM_STRIDED_H
#define UMEM_STRIDED_H

#include "core/overlap.h"
#include "core/run.h"

/* Whether the items of layout can be copied; false with a status otherwise. */
bool umem_check_strided(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        umemLayout const *layout);

/* Copies the items of a layout that was checked. */
void umem_copy_layout(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout);

/* umem_copy_run for sides of which umem_may_overlap knows nothing better. */
void umem_copy_bytes_over(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                          size_t nbytes);

/* Copies a validated run of nbytes > 0, also over itself. */
static inline __attribute__((always_inline)) void
umem_copy_any_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                  size_t nbytes) {
  if (umem_may_overlap(src, src_adr, dst, dst_adr, nbytes))
    umem_copy_bytes_over(src, src_adr, dst, dst_adr, nbytes);
  else
    umem_copy_run(src, src_adr, dst, dst_adr, nbytes);
}

#endif
