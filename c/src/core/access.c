/* access.c - see access.h. Only what is refused comes here. */
#include "core/access.h"
#include "core/status.h"
#include "core/guard.h"

bool umem_allows_slowly(umemVirtual *ctx, umemCapability access) {
  char const *can_not = access == umemReadable ? "readable" : "writable";
  char const *kind = umem_get_device_name(ctx);
  umemInfo info = UMEM_INFO_INIT;
  umemAttempt forgotten; /* asking for a name must not fail in place of the call */
  umemAttempt_begin(&forgotten);
  umem_get_info(ctx, &info);
  umemAttempt_end(&forgotten);
  if (*info.name)
    return UMEM_FAIL(ctx, umemNotSupportedError, "%s \"%s\" is not %s", kind, info.name, can_not);
  return UMEM_FAIL(ctx, umemNotSupportedError, "this %s is not %s", kind, can_not);
}

bool umem_validate_slowly(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access) {
  if (adr == umem_null_of(ctx))
    return UMEM_FAIL(ctx, umemValueError, "the address in %s is null", umem_get_device_name(ctx));
  if (adr > UINTPTR_MAX - nbytes)
    return UMEM_FAIL(ctx, umemValueError, "%zu bytes at %ju exceed the address space of %s", nbytes,
                     (uintmax_t)adr, umem_get_device_name(ctx));
  return umem_allows(ctx, access);
}

static bool within(void *ctx, size_t size, size_t nbytes) {
  umemVirtual *self = umem_guard(ctx);
  if (!self) return false;
  if (nbytes <= size) return true;
  return UMEM_FAIL(self, umemIndexError, "%zu bytes exceed the %zu bytes given of %s", nbytes, size,
                   umem_get_device_name(self));
}

bool umem_both_within(void *src, size_t src_size, void *dst, size_t dst_size, size_t nbytes) {
  bool inside = within(src, src_size, nbytes);
  return within(dst, dst_size, nbytes) && inside; /* records both, if both exceed */
}
