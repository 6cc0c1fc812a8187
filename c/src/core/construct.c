/* construct.c - the beginning and the end of a context. */
#include "core/construct.h"
#include "base/thread.h"
#include "core/enter.h"
#include "core/guard.h"

#include <string.h>

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
void umem_construct_failed(umemVirtual *ctx) {
  ctx->vptr = NULL;
  ctx->host = NULL;
  ctx->capabilities &= umemOffsets;
  memset(ctx->reserved, 0, sizeof ctx->reserved);
}

void umem_dtor(void *ctx) {
  UMEM_ENTER();
  umemVirtual *self = ctx;
  umem_defer_cancel(); /* the end of a context in RAM may reach the system, too */
  if (!self || !self->vptr || !umem_guard(self)) return;
  if (self->vptr->dtor) self->vptr->dtor(self);
  umemVirtual_dtor(self);
  umem_construct_failed(self);
  self->vtbl_size = 0; /* distinguishes destructed contexts from those whose constructor failed */
}
