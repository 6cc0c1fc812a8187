/* ahead.h - copies that AMD's processors do slowly.
 *
 * Where the destination begins 1 to 31 bytes after the source, modulo the size of a page, their `rep movsb` takes up to
 * thirteen times as long as elsewhere (glibc's bug 30994). The C library copies long runs with it, and Linux the bytes
 * of every read and write. Large blocks of malloc begin 16 bytes after the start of a page. */
#ifndef UMEM_AHEAD_H
#define UMEM_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

static inline bool umem_is_ahead(uintptr_t dst, uintptr_t src) {
  return (dst - src) % 4096 - 1 < 31;
}

#endif
