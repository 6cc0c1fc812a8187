/* access.h - whether a call may read or write bytes of a context. */
#ifndef UMEM_ACCESS_H
#define UMEM_ACCESS_H

#include <stddef.h>
#include <umem/base.h>

#include "core/guard.h"

/* Whether ctx allows access: umemReadable or umemWritable. Otherwise returns false and records a status. */
bool umem_allows(umemVirtual *ctx, umemCapability access);

/* Whether [adr, adr + nbytes) can be bytes of ctx: adr is not null, the sum does not overflow, and ctx allows
 * access. Otherwise returns false and records a status. */
bool umem_validate_slowly(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access);
static inline bool umem_validate(umemVirtual *ctx, uintptr_t adr, size_t nbytes,
                                 umemCapability access) {
  bool good = adr != umem_null_of(ctx) && adr <= UINTPTR_MAX - nbytes && umem_can(ctx, access);
  return __builtin_expect(good, 1) || umem_validate_slowly(ctx, adr, nbytes, access);
}

/* Whether nbytes exceed neither of the bounds that a _safe function was given. Otherwise returns false and
 * records umemIndexError on the context, or on both contexts, whose bound they exceed. */
bool umem_both_within(void *src, size_t src_size, void *dst, size_t dst_size, size_t nbytes);

#endif
