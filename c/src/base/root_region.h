/* root_region.h - what LeakSanitizer must know of memory that is mapped: what only such memory points to is no leak. It
 * reads the pages that have memory. Does nothing in a program without LeakSanitizer. */
#ifndef UMEM_ROOT_REGION_H
#define UMEM_ROOT_REGION_H

#include <stddef.h>

#pragma weak __lsan_register_root_region
#pragma weak __lsan_unregister_root_region
void __lsan_register_root_region(void const *adr, size_t nbytes);
void __lsan_unregister_root_region(void const *adr, size_t nbytes);

static inline void umem_root_add(void const *adr, size_t nbytes) {
  if (__lsan_register_root_region) __lsan_register_root_region(adr, nbytes);
}

static inline void umem_root_remove(void const *adr, size_t nbytes) {
  if (__lsan_unregister_root_region) __lsan_unregister_root_region(adr, nbytes);
}

#endif
