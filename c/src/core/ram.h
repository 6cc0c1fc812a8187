/* ram.h - copies between memory that the CPU can address, and methods for contexts whose memory is
 * RAM of this process. */
#ifndef UMEM_RAM_H
#define UMEM_RAM_H

#include <stdbool.h>
#include <stddef.h>
#include <umem/base.h>

#include "base/faultable.h"

/* ---- methods ---- */

void umem_ram_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umem_ram_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes);
void umem_ram_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes);
#define UMEM_RAM_BYTES                                                                             \
  .set = umem_ram_set, .copy_to = umem_ram_copy_to, .copy_from = umem_ram_copy_from
void umem_ram_info(umemVirtual *ctx, umemInfo *info);

/* What madvise and posix_fadvise call the hint; -1 where they have no name for it. unneeded: their
 * name for umemAdviceUnneeded, in which they differ. */
int umem_kernel_advice(umemAdvice advice, int device, int unneeded);

/* The method advise. */
void umem_ram_advise(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice, int device);

/* Records that ctx does not know the hint, for methods advise. Returns its status. */
umemStatusType umem_refuse_advice(umemVirtual *ctx, umemAdvice advice, int device);

/* The method zero_pages, of private memory: the kernel gives a page zeros when it is touched again.
 * Memory that is locked (mlock) stays. */
bool umem_ram_zero_pages(umemVirtual *ctx, uintptr_t adr, size_t nbytes);

/* Whether the system has so many bytes left for this process (base/system.h). Records a
 * umemMemoryError, and returns false, if not: before any memory is taken. */
bool umem_ram_has(umemVirtual *ctx, size_t nbytes);

/* ---- items ---- */

/* Copies a layout in normal form in the calling thread. Only reads and writes memory: no lock, no
 * allocation, no system call. */
void umem_copy_tiles(char *dst, char const *src, umemLayout const *layout);

/* Copies a layout in normal form of rank > 0, by several threads if it is long. With ranges, of
 * dst and src, returns false when an access to one of these ranges raised SIGBUS, or when there
 * can be no guard: some of the items are copied then. */
bool umem_copy_pointers(char *dst, char const *src, umemLayout const *layout,
                        umemFaultableRange const ranges[2]);

/* How many threads umem_copy_pointers uses for layout. */
unsigned umem_pointer_workers(umemLayout const *layout);

#endif
