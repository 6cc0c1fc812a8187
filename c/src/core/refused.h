/* refused.h - the end of every failed allocation. */
#ifndef UMEM_REFUSED_H
#define UMEM_REFUSED_H

#include "base/thread.h"
#include "core/guard.h"

/* Returns the null of ctx. Makes sure that the method has recorded a failure since before, which old methods
 * may forget. */
static inline uintptr_t umem_refused(umemVirtual *ctx, uint64_t before, size_t nbytes) {
  if (umem_thread.failures == before)
    umemVirtual_fail(ctx, umemMemoryError, "%s cannot allocate %zu bytes",
                     umem_get_device_name(ctx), nbytes);
  return umem_null_of(ctx);
}

#endif
