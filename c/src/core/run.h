/* run.h - copies of runs, bytes without gaps. */
#ifndef UMEM_RUN_H
#define UMEM_RUN_H

#include <stddef.h>
#include <umem/base.h>

/* Lets self, which is src or dst, copy the layout by a route of its own (copy_direct in virtual.h). Returns
 * false, with nothing touched or recorded, where it has none. */
bool umem_copy_direct(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                      uintptr_t dst_adr, umemLayout const *layout);

/* The same as a leg of its own, for a copy that is watched (route.h). */
bool umem_copy_direct_watched(umemVirtual *self, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout);

/* Copies a validated run of nbytes > 0 by the best route. */
void umem_copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                   size_t nbytes);

#endif
