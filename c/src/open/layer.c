/* layer.c - finds a layer of a stack by its kind. */
#include "core/status.h"
#include "open/kinds.h"
#include "base/thread.h"
#include "core/context.h"

/* The method table of the kind of this name; NULL, with a status on ctx, where it is unknown. */
static struct umemVtbl const *table_of(umemVirtual *ctx, char const *name) {
  umemNames known = {"", 0};
  umemScheme const *scheme = name ? umem_find_named(name) : NULL;
  if (scheme && scheme->vtbl) return scheme->vtbl;
  if (scheme)
    return UMEM_FAIL_NULL(
        ctx, umemValueError,
        "the scheme \"%.60s\" names no method table by which to find its contexts", name);
  umemNames_add_kinds(&known);
  return UMEM_FAIL_NULL(ctx, umemValueError, "\"%.60s\" is no kind of context; there are %s",
                        name ? name : "NULL", known.text);
}

/* "Pool over Host" */
static void describe(umemVirtual *ctx, umemNames *stack) {
  for (; ctx; ctx = umem_get_upstream(ctx)) umemNames_add(stack, "%s", umem_get_device_name(ctx));
}

void *umem_find_layer(void *ctx, char const *kind) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  struct umemVtbl const *table = self ? table_of(self, kind) : NULL;
  if (!table) return NULL;
  umemKind const *own = umem_find_kind(kind); /* NULL for a scheme of the program */
  uint64_t before = umem_thread.failures;
  for (umemVirtual *layer = self; layer; layer = umem_get_upstream(layer))
    if (layer->vptr == table || (own && umemKind_has(own, layer))) return layer;
  if (umemVirtual_adopt(self, before) != umemOK) return NULL;
  umemNames stack = {"", 0};
  describe(self, &stack);
  return UMEM_FAIL_NULL(self, umemValueError, "there is no \"%s\" in this stack: %s", kind,
                        stack.text);
}
