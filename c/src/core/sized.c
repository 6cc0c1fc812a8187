/* sized.c - see sized.h. */
#include "core/sized.h"
#include "core/status.h"

#include <string.h>
#include <umem/base.h>

bool umem_read_sized(void *ctx, void *full, size_t full_size, void const *given, char const *type) {
  size_t size;
  if (!given) return true;
  memcpy(&size, given, sizeof size);
  if (size < sizeof size)
    return UMEM_FAIL(ctx, umemValueError,
                     "the size in the %s is %zu, too small: set it to sizeof(%s)", type, size,
                     type);
  memcpy(full, given, size < full_size ? size : full_size);
  memcpy(full, &full_size, sizeof full_size);
  return true;
}

bool umem_can_write_sized(void *ctx, void const *out, size_t least, char const *argument,
                          char const *type) {
  size_t size = 0;
  if (out) memcpy(&size, out, sizeof size);
  if (out && size >= least) return true;
  if (out)
    return UMEM_FAIL(ctx, umemValueError, "%s->size is %zu: set it to sizeof(%s) before the call",
                     argument, size, type);
  return UMEM_FAIL(ctx, umemValueError, "%s is NULL", argument);
}

void umem_write_sized(void *out, void const *full, size_t full_size) {
  size_t size;
  memcpy(&size, out, sizeof size);
  memcpy(out, full, size < full_size ? size : full_size);
  memcpy(out, &size, sizeof size);
}
