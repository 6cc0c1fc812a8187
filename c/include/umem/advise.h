/* umem/advise.h - hints about blocks that exist, and blocks that move to another place. */
#ifndef UMEM_ADVISE_H
#define UMEM_ADVISE_H

#include <umem/context.h>

/* What the program will do with bytes, or where they should be. A hint changes no byte. */
typedef enum umemAdvice {
  umemAdviceNormal = 0, /* takes sequential and random back */
  umemAdviceSequential, /* is read from the beginning to the end: read further ahead */
  umemAdviceRandom,     /* is read here and there: do not read ahead */
  umemAdviceUnneeded,   /* is not used for some time: may leave RAM before other bytes */
  umemAdvicePrefetch,   /* is used soon by device: move it there, or read it from the disk */
  umemAdvicePrefer,     /* belongs on device, also when others use it */
  umemAdviceReadMostly, /* is hardly written: device and the CPU may each have a copy */
  umemAdviceAccessedBy  /* is used by device: map it there, so that it needs not fault */
} umemAdvice;

#define UMEM_CPU (-1) /* the CPU as the device of an advice */

/* Gives a hint about nbytes at adr. device: the number of a GPU, or UMEM_CPU; unused by the first
 * four. On an ordered context the hint takes effect in the order of its queue. 0 bytes: does
 * nothing.
 *
 *   managed memory   prefetch, prefer, read mostly, accessed by
 *   RAM, shared and mapped memory, files
 *                    normal, sequential, random, unneeded, and prefetch to the CPU; about whole
 *                    pages that contain the bytes
 *
 * Adaptors pass the hint on. Errors: umemNotSupportedError for a hint that this memory does not
 * know: the program can go on without; umemValueError for null, for another advice, for a device
 * that does not exist, and if adr + nbytes overflows; umemMemoryError where no pages are. */
UMEM_EXTERN umemStatusType umem_advise(void *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice,
                                       int device);

/* Moves a block of umem_alloc to another context: allocates nbytes in dst, copies them, and frees
 * the block in src. Returns the new address, which is a block of dst. The old address is no longer
 * valid. All work on both is done on return. nbytes: of the block, or as many of its first bytes as
 * are needed. Errors: as umem_alloc, umem_copy_to and umem_free. After a failure the block in src
 * is as it was, the caller still owns it, and the result is umem_null(dst). */
UMEM_EXTERN uintptr_t umem_move(void *src, uintptr_t adr, size_t nbytes, void *dst);

#endif
