/* advise.c - hints about blocks, as methods take them and for RAM; blocks that move. */
#include "core/context.h"
#include "core/ram.h"
#include "core/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <umem/advise.h>
#include <umem/memory.h>
#include <unistd.h>

/* ---- names ---- */

static char const *const names[] = {"normal",   "sequential", "random",      "unneeded",
                                    "prefetch", "prefer",     "read mostly", "accessed by"};

umemStatusType umem_refuse_advice(umemVirtual *ctx, umemAdvice advice, int device) {
  if (device == UMEM_CPU)
    return umemVirtual_fail(ctx, umemNotSupportedError,
                            "memory of %s knows no hint \"%s\" for the CPU",
                            umem_get_device_name(ctx), names[advice]);
  return umemVirtual_fail(ctx, umemNotSupportedError,
                          "memory of %s knows no hint \"%s\" for GPU %d", umem_get_device_name(ctx),
                          names[advice], device);
}

/* ---- RAM ---- */

_Static_assert(MADV_NORMAL == POSIX_FADV_NORMAL && MADV_SEQUENTIAL == POSIX_FADV_SEQUENTIAL &&
                   MADV_RANDOM == POSIX_FADV_RANDOM && MADV_WILLNEED == POSIX_FADV_WILLNEED,
               "memory and files have the same hints");

int umem_kernel_advice(umemAdvice advice, int device, int unneeded) {
  switch (advice) {
  case umemAdviceNormal:
    return MADV_NORMAL;
  case umemAdviceSequential:
    return MADV_SEQUENTIAL;
  case umemAdviceRandom:
    return MADV_RANDOM;
  case umemAdviceUnneeded:
    return unneeded;
  case umemAdvicePrefetch:
    return device == UMEM_CPU ? MADV_WILLNEED : -1;
  default:
    return -1;
  }
}

#ifdef MADV_COLD
enum { cold = MADV_COLD };
#else
enum { cold = -1 };
#endif

/* The kernel takes whole pages: all that contain some of the bytes. */
void umem_ram_advise(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice,
                     int device) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = adr & ~(page - 1);
  int theirs = umem_kernel_advice(advice, device, cold);
  if (theirs < 0) {
    umem_refuse_advice(ctx, advice, device);
  } else if (madvise((void *)first, adr + nbytes - first, theirs) != 0) {
    umemStatusType type = errno == ENOMEM ? umemMemoryError : umemNotSupportedError;
    umemVirtual_fail(ctx, type, "the kernel refuses the hint \"%s\" for %zu bytes at 0x%jx: %s",
                     names[advice], nbytes, (uintmax_t)adr, strerror(errno));
  }
}

/* ---- dispatch ---- */

umemStatusType umem_advise(void *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice, int device) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self || !nbytes || !umem_validate(self, adr, nbytes, 0)) return umem_result(before);
  if ((unsigned)advice > umemAdviceAccessedBy || device < UMEM_CPU)
    return umemVirtual_fail(self, umemValueError, "there is no advice %d for device %d",
                            (int)advice, device);
  umemVirtual *layer = UMEM_LAYER_WITH(self, advise);
  if (layer)
    layer->vptr->advise(layer, adr, nbytes, advice, device);
  else
    umem_refuse_advice(self, advice, device);
  return umem_record_on_layers(layer, self, before);
}

/* ---- moving ---- */

uintptr_t umem_move(void *src, uintptr_t adr, size_t nbytes, void *dst) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  uintptr_t moved = umem_alloc(dst, nbytes);
  if (umem_thread.failures != before) return umem_null(dst);
  bool copied = umem_copy_to(src, adr, dst, moved, nbytes) == umemOK &&
                umem_synchronize(dst) == umemOK && umem_synchronize(src) == umemOK;
  if (copied) umem_free(src, adr);
  if (umem_thread.failures == before) return moved;
  umem_free(dst, moved); /* the old block is as it was */
  return umem_null(dst);
}
