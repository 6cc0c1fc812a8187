/* ram.h - methods for contexts whose memory is RAM of this process. */
#ifndef UMEM_RAM_H
#define UMEM_RAM_H

#include <umem/base.h>

void umem_ram_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umem_ram_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes);
void umem_ram_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes);
void umem_ram_info(umemVirtual *ctx, umemInfo *info);

/* What madvise and posix_fadvise call the hint; -1 where they have no name for it. unneeded: their
 * name for umemAdviceUnneeded, in which they differ. */
int umem_kernel_advice(umemAdvice advice, int device, int unneeded);

/* The method advise. */
void umem_ram_advise(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice, int device);

/* Records that ctx does not know the hint, for methods advise. Returns its status. */
umemStatusType umem_refuse_advice(umemVirtual *ctx, umemAdvice advice, int device);

/* Whether the system has so many bytes left for this process (base/system.h). Records a
 * umemMemoryError, and returns false, if not: before any memory is taken. */
bool umem_ram_has(umemVirtual *ctx, size_t nbytes);

#endif
