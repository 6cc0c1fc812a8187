/* context.c - construction, destruction and questions that any context answers. */
#include "core/kind.h"

#include <string.h>

char const *umem_version(void) { return UMEM_VERSION; }

/* ---- construction ---- */

enum { first_slots = 11 };

void umemVirtual_ctor_sized(umemVirtual *ctx, void *host, size_t vtbl_size) {
  UMEM_ENTER();
  if (!ctx) {
    umemVirtual_fail(NULL, umemValueError, "the context is NULL");
    return;
  }
  memset(ctx, 0, sizeof *ctx);
  ctx->host = host;
  ctx->vtbl_size = (uint32_t)vtbl_size;
  ctx->capabilities = umemReadable | umemWritable;
  ctx->alignment = 1;
  ctx->space[0] = (uintptr_t)ctx;
  ctx->self = ctx;
}

void(umemVirtual_ctor)(umemVirtual *ctx, void *host) {
  umemVirtual_ctor_sized(ctx, host, first_slots * sizeof(void (*)(void)));
}

void umem_construct(umemVirtual *ctx, umemKind const *kind, void *host) {
  umemVirtual_ctor_sized(ctx, host, sizeof *kind->scheme.vtbl);
  if (!(kind->capabilities & umemPrompt))
    umem_defer_cancel(); /* what the constructor takes is not lost */
  ctx->vptr = kind->scheme.vtbl;
  ctx->type = kind->type;
  ctx->name = kind->label;
  ctx->capabilities = kind->capabilities;
  ctx->alignment = kind->alignment;
}

/* Leaves what umem_null, the name and the status need, and nothing that could be called. */
static void close_base(umemVirtual *ctx) {
  ctx->vptr = NULL;
  ctx->host = NULL;
  ctx->capabilities &= umemOffsets;
}

bool umem_read_sized(void *ctx, void *full, size_t full_size, void const *given, char const *type) {
  size_t size;
  if (!given) return true;
  memcpy(&size, given, sizeof size);
  if (size < sizeof size) {
    umemVirtual_fail(ctx, umemValueError,
                     "the size in the %s is %zu, too small: set it to sizeof(%s)", type, size,
                     type);
    return false;
  }
  memcpy(full, given, size < full_size ? size : full_size);
  memcpy(full, &full_size, sizeof full_size);
  return true;
}

void umem_construct_failed(umemVirtual *ctx) { close_base(ctx); }

void umem_dtor(void *ctx) {
  UMEM_ENTER();
  umemVirtual *self = ctx;
  if (!self || !self->vptr || !umem_guard(self)) return;
  if (self->vptr->dtor) self->vptr->dtor(self);
  umemVirtual_dtor(self);
  close_base(self);
  self->vtbl_size = 0; /* tells the destructed from those whose constructor failed */
}

umemVirtual *umem_guard_slowly(void const *ctx) {
  umemVirtual *self = (umemVirtual *)(uintptr_t)ctx;
  if (self && self->vptr && umem_is_in_place(self)) {
    umem_defer_cancel();
    return self;
  }
  if (!self) {
    umemVirtual_fail(NULL, umemValueError, "the context is NULL");
    return NULL;
  }
  if (self->vptr) {
    umemVirtual_fail(self, umemValueError,
                     "a context must not be copied or moved: this %s was constructed elsewhere",
                     umem_get_device_name(self));
    return NULL;
  }
  umemStatusType known = umem_get_status(self);
  if (known == umemOK || !self->vtbl_size) {
    umemVirtual_fail(self, umemValueError, "the context is not constructed: zeroed or destructed");
  } else { /* a failed constructor's story stands there already: do not bury it under repetitions */
    char story[UMEM_MESSAGE_SIZE];
    umem_copy_message(self, story);
    umemVirtual_fail(NULL, known, "the context is not constructed: %s", story);
  }
  return NULL;
}

bool umem_allows(umemVirtual *ctx, umemCapability access) {
  if (umem_can(ctx, access)) return true;
  char const *can_not = access == umemReadable ? "readable" : "writable";
  char const *kind = umem_get_device_name(ctx);
  umemInfo info = UMEM_INFO_INIT;
  umemAttempt forgotten; /* asking for a name must not fail in place of the call */
  umemAttempt_begin(&forgotten);
  umem_get_info(ctx, &info);
  umemAttempt_end(&forgotten);
  if (*info.name)
    umemVirtual_fail(ctx, umemNotSupportedError, "%s \"%s\" is not %s", kind, info.name, can_not);
  else
    umemVirtual_fail(ctx, umemNotSupportedError, "this %s is not %s", kind, can_not);
  return false;
}

bool umem_validate(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access) {
  if (adr == umem_null_of(ctx)) {
    umemVirtual_fail(ctx, umemValueError, "the address in %s is null", umem_get_device_name(ctx));
    return false;
  }
  if (adr > UINTPTR_MAX - nbytes) {
    umemVirtual_fail(ctx, umemValueError, "%zu bytes at %ju exceed the address space of %s", nbytes,
                     (uintmax_t)adr, umem_get_device_name(ctx));
    return false;
  }
  return umem_allows(ctx, access);
}

/* ---- questions ---- */

uintptr_t umem_null(void const *ctx) { return ctx ? umem_null_of(ctx) : 0; }

char const *umem_get_device_name(void const *ctx) {
  umemVirtual const *self = ctx;
  if (!self || (!self->vptr && !self->name)) return "None";
  return self->name ? self->name : "User";
}

/* What ctx decorates; NULL where that is nothing and, with a status, where it was destructed. */
static umemVirtual *upstream_of(umemVirtual *ctx) {
  umemVirtual *(*slot)(umemVirtual *) = UMEM_SLOT(ctx, upstream);
  umemVirtual *upstream = slot ? slot(ctx) : NULL;
  return upstream ? umem_guard(upstream) : NULL;
}

umemVirtual *umem_innermost(umemVirtual *ctx) {
  for (;;) {
    umemVirtual *upstream = upstream_of(ctx);
    if (!upstream) return ctx;
    ctx = upstream;
  }
}

void *umem_get_upstream(void *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  if (!self) return NULL;
  umemVirtual *upstream = upstream_of(self);
  umemVirtual_adopt(self, before);
  return upstream;
}

bool umem_is_same_device(void *one, void *other) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *a = umem_guard(one);
  umemVirtual *b = umem_guard(other);
  if (!a || !b) return false;
  a = umem_innermost(a);
  b = umem_innermost(b);
  if (umem_thread.failures != before) return false;
  if (a == b) return true;
  if (a->vptr->is_same_device) return a->vptr->is_same_device(a, b);
  return a->vptr == b->vptr && a->space[0] == b->space[0] && a->space[1] == b->space[1];
}

/* The outermost layer of ctx, decorators first, whose table has a method at this offset; or NULL. A
 * decorator thus inherits what it leaves out. */
static inline umemVirtual *layer_with(umemVirtual *ctx, size_t offset) {
  for (;;) {
    void (*method)(void) = NULL;
    if (offset < ctx->vtbl_size) memcpy(&method, (char const *)ctx->vptr + offset, sizeof method);
    if (method) return ctx;
    ctx = upstream_of(ctx);
    if (!ctx) return NULL;
  }
}
#define LAYER_WITH(ctx, slot) layer_with((ctx), offsetof(struct umemVtbl, slot))

umemStatusType umem_get_info(void *ctx, umemInfo *info) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  if (!self) return umem_result(before);
  if (!info) return umemVirtual_fail(self, umemValueError, "info is NULL");
  size_t size = info->size;
  if (size < offsetof(umemInfo, available))
    return umemVirtual_fail(self, umemValueError,
                            "info->size is %zu: set it to sizeof(umemInfo) before the call", size);
  umemInfo known = UMEM_INFO_INIT;
  known.alignment = self->alignment;
  umemVirtual *layer = LAYER_WITH(self, info);
  if (layer) layer->vptr->info(layer, &known);
  memcpy(info, &known, size < sizeof known ? size : sizeof known);
  info->size = size;
  return umem_adopt_from(layer, self, before);
}

/* ---- order and durability ---- */

umemStatusType umem_synchronize(void *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  umemVirtual *layer = self ? LAYER_WITH(self, synchronize) : NULL;
  if (layer) layer->vptr->synchronize(layer);
  return umem_adopt_from(layer, self, before);
}

umemStatusType umem_wait(void *ctx, void *other) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  umemVirtual *that = umem_guard(other);
  if (!self || !that) return umem_result(before);
  if (!(that->capabilities & (umemOrdered | umemDeviceShared))) return umemOK;
  bool one = umem_innermost(self) == umem_innermost(that);
  if (one || umem_thread.failures != before) return umem_result(before);
  void (*slot)(umemVirtual *, umemVirtual *) = UMEM_SLOT(self, wait);
  if (slot)
    slot(self, that);
  else
    umem_synchronize(that);
  return umem_result(before);
}

/* Until the end of the block, also when an exception of a hook passes. */
static void end_apart(bool const *outer) { umem_thread.apart = *outer; }
#define APART()                                                                                    \
  __attribute__((cleanup(end_apart), unused)) bool const outer_ = umem_thread.apart;               \
  umem_thread.apart = true

umemStatusType umem_wait_apart(umemVirtual *ctx, umemVirtual *other) {
  APART();
  return umem_wait(ctx, other);
}

umemStatusType umem_synchronize_apart(umemVirtual *ctx) {
  APART();
  return umem_synchronize(ctx);
}

umemStatusType umem_flush(void *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  umemVirtual *layer = self ? LAYER_WITH(self, flush) : NULL;
  if (layer) layer->vptr->flush(layer);
  return umem_adopt_from(layer, self, before);
}

umemStatusType umem_trim(void *ctx, size_t keep) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  umemVirtual *layer = self ? LAYER_WITH(self, trim) : NULL;
  if (layer) layer->vptr->trim(layer, keep);
  return umem_adopt_from(layer, self, before);
}
