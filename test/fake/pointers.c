#include "pointers.h"

#include <stdlib.h>
#include <string.h>

static uintptr_t pointers_alloc(umemVirtual *ctx, size_t nbytes) {
  Pointers *self = (Pointers *)ctx;
  size_t room = self->count < self->room ? self->room : 2 * self->room + 16;
  void **blocks = realloc(self->blocks, room * sizeof *blocks);
  if (blocks) self->blocks = blocks, self->room = room;
  void *block = blocks ? malloc(nbytes) : NULL;
  if (!block) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for %zu bytes", nbytes);
    return umem_null(ctx);
  }
  self->blocks[self->count++] = block;
  return (uintptr_t)block;
}

static void pointers_free(umemVirtual *ctx, uintptr_t adr) {
  Pointers *self = (Pointers *)ctx;
  for (size_t i = 0; i < self->count; i++)
    if ((uintptr_t)self->blocks[i] == adr) {
      free(self->blocks[i]);
      self->blocks[i] = self->blocks[--self->count];
      return;
    }
  umemVirtual_fail(ctx, umemValueError, "%#jx is not the address of a block", (uintmax_t)adr);
}

static void pointers_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that,
                             uintptr_t dst_adr, size_t nbytes) {
  (void)ctx, (void)that;
  memmove((void *)dst_adr, (void const *)src_adr, nbytes);
}

static void pointers_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                               uintptr_t src_adr, size_t nbytes) {
  pointers_copy_to(ctx, src_adr, that, dst_adr, nbytes);
}

static void pointers_info(umemVirtual *ctx, umemInfo *info) {
  (void)ctx;
  info->page_size = 4096;
}

static void pointers_dtor(umemVirtual *ctx) {
  Pointers *self = (Pointers *)ctx;
  while (self->count) free(self->blocks[--self->count]);
  free(self->blocks);
  umemVirtual_dtor(ctx);
  umem_dtor(&self->host);
}

umemStatusType pointers_ctor(Pointers *ctx) {
  static struct umemVtbl const vtbl = {
      .dtor = pointers_dtor,
      .alloc = pointers_alloc,
      .free = pointers_free,
      .copy_to = pointers_copy_to,
      .copy_from = pointers_copy_from,
      .info = pointers_info,
  };
  umemHost_ctor(&ctx->host);
  umemVirtual_ctor(&ctx->super, &ctx->host);
  ctx->super.vptr = &vtbl;
  ctx->super.type = umemUserDevice;
  ctx->super.name = "Pointers";
  ctx->super.capabilities |= umemCpuReadable | umemCpuWritable;
  ctx->super.alignment = 16;
  ctx->blocks = NULL;
  ctx->count = ctx->room = 0;
  return umemOK;
}
