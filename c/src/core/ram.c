/* ram.c - the methods of contexts whose memory is RAM of this process, wherever it comes from. */
#include "core/ram.h"

#include <string.h>
#include <unistd.h>

void umem_ram_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  (void)ctx;
  memset((void *)adr, c, nbytes);
}

/* memmove rather than memcpy: as fast, and an overlap stays defined for the machine. */
void umem_ram_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes) {
  (void)ctx, (void)that;
  memmove((void *)dst_adr, (void const *)src_adr, nbytes);
}

void umem_ram_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes) {
  umem_ram_copy_to(ctx, src_adr, that, dst_adr, nbytes);
}

void umem_ram_info(umemVirtual *ctx, umemInfo *info) {
  (void)ctx;
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  info->page_size = page;
  info->capacity = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
  info->available = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * page;
}
