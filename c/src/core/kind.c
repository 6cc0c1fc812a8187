/* kind.c - see kind.h. */
#include "core/kind.h"
#include "core/status.h"
#include "base/number.h"
#include "core/guard.h"

#include <string.h>

umemVirtual *umemKind_check(void *ctx, umemKind const *kind) {
  umemVirtual *self = umem_guard(ctx);
  if (!self || umemKind_has(kind, self)) return self;
  return UMEM_FAIL_NULL(self, umemTypeError, "this %s is no umem%s", umem_get_device_name(self),
                        kind->label);
}

/* ---- options of names ---- */

/* What umemOption.reserved of a kind's options means: see UMEM_OPTION. */
enum { at, width, not_zero };

static uint64_t largest(size_t bytes) {
  return bytes < sizeof(uint64_t) ? (UINT64_C(1) << 8 * bytes) - 1 : UINT64_MAX;
}

/* member: an integer of 4 or 8 bytes. */
static void store_number(void *member, size_t bytes, uint64_t number) {
  number = umem_lesser(number, largest(bytes));
  if (bytes == sizeof(uint64_t))
    memcpy(member, &number, bytes);
  else
    memcpy(member, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
}

static void store(umemOption const *option, umemOptionValue const *value, void *member) {
  if (option->kind == umemTextOption || option->kind == umemPathOption)
    memcpy(member, &value->text, sizeof value->text);
  else if (option->kind == umemShareOption)
    memcpy(member, &value->share, sizeof value->share);
  else
    store_number(member, option->reserved[width], value->number);
}

bool umemKind_read(umemKind const *kind, umemOptionValue const *given, void *options) {
  if (kind->defaults)
    memcpy(options, kind->defaults, kind->options_size);
  else
    memset(options, 0, kind->options_size);
  for (size_t i = 0; i < kind->scheme.option_count; i++) {
    umemOption const *option = &kind->scheme.options[i];
    if (!given[i].given || !option->reserved[width]) continue;
    if (option->reserved[not_zero] && !given[i].number)
      return UMEM_FAIL(NULL, umemValueError, "%s=0 is of no use: without %s it is the default",
                       option->name, option->name);
    store(option, &given[i], (char *)options + option->reserved[at]);
  }
  return true;
}
