#include "decorated.h"

static umemVirtual *upstream_of(umemVirtual *ctx) { return ((Decorated *)ctx)->upstream; }

/* A call of the upstream, whose failure becomes ctx's as well. */
#define PASS_ON(call)                                                                              \
  do {                                                                                             \
    uint64_t before = umem_thread_failures();                                                      \
    call;                                                                                          \
    umemVirtual_adopt(ctx, before);                                                                \
  } while (0)

static uintptr_t decorated_alloc(umemVirtual *ctx, size_t nbytes) {
  uintptr_t adr;
  PASS_ON(adr = umem_alloc(upstream_of(ctx), nbytes));
  return adr;
}

static uintptr_t decorated_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  uintptr_t adr;
  PASS_ON(adr = umem_calloc(upstream_of(ctx), nmemb, size));
  return adr;
}

static void decorated_free(umemVirtual *ctx, uintptr_t adr) {
  PASS_ON(umem_free(upstream_of(ctx), adr));
}

static uintptr_t decorated_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  uintptr_t adr;
  PASS_ON(adr = umem_aligned_alloc(upstream_of(ctx), alignment, size));
  return adr;
}

static uintptr_t decorated_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  uintptr_t origin;
  PASS_ON(origin = umem_aligned_origin(upstream_of(ctx), adr));
  return origin;
}

static void decorated_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  PASS_ON(umem_aligned_free(upstream_of(ctx), adr));
}

static uintptr_t decorated_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,
                                   size_t new_size) {
  uintptr_t moved;
  PASS_ON(moved = umem_realloc(upstream_of(ctx), adr, old_size, new_size));
  return moved;
}

static void decorated_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  PASS_ON(umem_set(upstream_of(ctx), adr, c, nbytes));
}

static void decorated_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that,
                              uintptr_t dst_adr, size_t nbytes) {
  PASS_ON(umem_copy_to(upstream_of(ctx), src_adr, that, dst_adr, nbytes));
}

static void decorated_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                                uintptr_t src_adr, size_t nbytes) {
  PASS_ON(umem_copy_from(upstream_of(ctx), dst_adr, that, src_adr, nbytes));
}

/* The bare contexts keep their own routes. */
static bool decorated_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                  umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  umemVirtual *upstream = upstream_of(ctx);
  PASS_ON(umem_copy_strided(src == ctx ? upstream : src, src_adr, dst == ctx ? upstream : dst,
                            dst_adr, layout));
  return true;
}

static void decorated_wait(umemVirtual *ctx, umemVirtual *other) {
  PASS_ON(umem_wait(upstream_of(ctx), other));
}

umemStatusType decorated_ctor(Decorated *ctx, umemVirtual *upstream) {
  static struct umemVtbl const vtbl = {
      .alloc = decorated_alloc,
      .calloc = decorated_calloc,
      .free = decorated_free,
      .aligned_alloc = decorated_aligned_alloc,
      .aligned_origin = decorated_aligned_origin,
      .aligned_free = decorated_aligned_free,
      .set = decorated_set,
      .copy_to = decorated_copy_to,
      .copy_from = decorated_copy_from,
      .copy_direct = decorated_copy_direct,
      .wait = decorated_wait,
      .upstream = upstream_of,
      .realloc = decorated_realloc,
  };
  umemVirtual_ctor(&ctx->super, upstream->host);
  ctx->super.vptr = &vtbl;
  ctx->super.type = umemUserDevice;
  ctx->super.name = "Decorated";
  ctx->super.capabilities =
      upstream->capabilities & ~(uint32_t)umemSilent; /* alloc and free record */
  ctx->super.alignment = upstream->alignment;
  ctx->super.space[0] = upstream->space[0];
  ctx->super.space[1] = upstream->space[1];
  ctx->upstream = upstream;
  return umemOK;
}
