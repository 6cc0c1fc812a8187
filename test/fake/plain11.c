/* plain11.c - constructs with the function umemVirtual_ctor instead of the macro. What follows the
 * eleven methods in its table belongs to others, and must never be looked at. */
#include "plain11.h"

#include <string.h>

static void no_method(umemVirtual *ctx) {
  umemVirtual_fail(ctx, umemAssertError, "a twelfth method was called");
}

static bool no_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                           uintptr_t dst_adr, umemLayout const *layout) {
  (void)src, (void)src_adr, (void)dst, (void)dst_adr, (void)layout;
  no_method(ctx);
  return true;
}

static void no_wait(umemVirtual *ctx, umemVirtual *other) {
  (void)other;
  no_method(ctx);
}

static void no_trim(umemVirtual *ctx, size_t keep) {
  (void)keep;
  no_method(ctx);
}

static void no_info(umemVirtual *ctx, umemInfo *info) {
  (void)info;
  no_method(ctx);
}

static umemVirtual *no_upstream(umemVirtual *ctx) {
  no_method(ctx);
  return NULL;
}

static uintptr_t no_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  (void)adr, (void)old_size, (void)new_size;
  no_method(ctx);
  return 0;
}

static struct umemVtbl table = {
    .copy_direct = no_copy_direct,
    .synchronize = no_method,
    .wait = no_wait,
    .flush = no_method,
    .trim = no_trim,
    .info = no_info,
    .upstream = no_upstream,
    .realloc = no_realloc,
};

umemStatusType plain11_ctor(umemMyMem *ctx, size_t capacity) {
  umemStatusType status = umemMyMem_ctor(ctx, capacity);
  if (status != umemOK) return status;
  memcpy(&table, ctx->super.vptr, offsetof(struct umemVtbl, copy_direct));
  (umemVirtual_ctor)(&ctx->super, &ctx->host);
  ctx->super.vptr = &table;
  ctx->super.type = umemUserDevice;
  return umemOK;
}
