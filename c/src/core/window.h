/* window.h - copies of items through pointers to the bytes of contexts that have windows (umem/virtual.h). */
#ifndef UMEM_CORE_WINDOW_H
#define UMEM_CORE_WINDOW_H

#include <stddef.h>
#include <umem/base.h>

/* Copies a validated layout of rank > 0 in normal form, where each side has a window or addresses that the CPU may
 * use. Returns true if all is copied, or if waiting for a side failed with a status. Returns false, with nothing
 * recorded, if there are no windows or fewer items than make them worth it, or if a page could not be touched: some
 * of the items may be in dst then. */
bool umem_copy_windows(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                       umemLayout const *layout);

#endif
