/* ahead.h - copies that AMD's processors do slowly.
 *
 * Where the destination begins 1 to 31 bytes after the source, modulo the size of a page, their
 * `rep movsb` takes up to twenty times as long as elsewhere (glibc's bug 30994). Some C libraries
 * copy runs with it that fit into the second cache, and Linux the bytes of every read and write.
 * Large blocks of malloc begin 16 bytes after the start of a page. */
#ifndef UMEM_AHEAD_H
#define UMEM_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  umemShortRun = 1024,    /* bytes that every C library copies by loads and stores */
  umemCachedRun = 1 << 20 /* so do they with longer runs, past the caches */
};

static inline bool umem_is_ahead(uintptr_t dst, uintptr_t src) {
  return (dst - src) % 4096 - 1 < 31;
}

/* For tests: every processor takes the way of AMD's. */
extern bool umem_all_are_slow __attribute__((visibility("hidden")));

/* Whether this processor copies slowly from src to dst: others than AMD's copy at all distances
 * alike. */
static inline bool umem_is_slow(uintptr_t dst, uintptr_t src) {
#ifdef __x86_64__
  return umem_is_ahead(dst, src) && (umem_all_are_slow || __builtin_cpu_is("amd"));
#else
  return umem_all_are_slow && umem_is_ahead(dst, src);
#endif
}

/* As memcpy. Where that may be slow, in short runs. */
static inline void umem_copy_bytes(char *dst, char const *src, size_t n) {
  if (n > umemShortRun && n <= umemCachedRun && umem_is_slow((uintptr_t)dst, (uintptr_t)src)) {
    size_t run = umemShortRun;
    /* Of a memcpy whose size it knows, GCC makes `rep movsq` (test/style/long_copies.py). */
    __asm__("" : "+r"(run));
    for (; n > run; n -= run, dst += run, src += run) memcpy(dst, src, run);
  }
  memcpy(dst, src, n);
}

#endif
