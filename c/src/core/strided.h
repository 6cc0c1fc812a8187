/* strided.h - the two halves of umem_copy_strided. */
#ifndef UMEM_STRIDED_H
#define UMEM_STRIDED_H

#include <umem/base.h>

/* Whether the items of layout can be copied; false with a status otherwise. */
bool umem_check_strided(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        umemLayout const *layout);

/* Copies the items of a layout that was checked. */
void umem_copy_layout(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout);

#endif
