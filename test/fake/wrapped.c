#include "wrapped.h"

static umemVirtual *upstream_of(umemVirtual *ctx) { return ((Wrapped *)ctx)->upstream; }

/* A call of the upstream, whose failure becomes ctx's as well. */
#define PASS_ON(call)                                                                              \
  do {                                                                                             \
    uint64_t before = umem_thread_failures();                                                      \
    call;                                                                                          \
    umemVirtual_adopt(ctx, before);                                                                \
  } while (0)

static uintptr_t wrapped_alloc(umemVirtual *ctx, size_t nbytes) {
  uintptr_t adr;
  PASS_ON(adr = umem_alloc(upstream_of(ctx), nbytes));
  return adr;
}

static uintptr_t wrapped_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  uintptr_t adr;
  PASS_ON(adr = umem_calloc(upstream_of(ctx), nmemb, size));
  return adr;
}

static void wrapped_free(umemVirtual *ctx, uintptr_t adr) {
  PASS_ON(umem_free(upstream_of(ctx), adr));
}

static uintptr_t wrapped_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  uintptr_t adr;
  PASS_ON(adr = umem_aligned_alloc(upstream_of(ctx), alignment, size));
  return adr;
}

static uintptr_t wrapped_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  uintptr_t origin;
  PASS_ON(origin = umem_aligned_origin(upstream_of(ctx), adr));
  return origin;
}

static void wrapped_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  PASS_ON(umem_aligned_free(upstream_of(ctx), adr));
}

static uintptr_t wrapped_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,
                                 size_t new_size) {
  uintptr_t moved;
  PASS_ON(moved = umem_realloc(upstream_of(ctx), adr, old_size, new_size));
  return moved;
}

static void wrapped_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  PASS_ON(umem_set(upstream_of(ctx), adr, c, nbytes));
}

static void wrapped_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that,
                            uintptr_t dst_adr, size_t nbytes) {
  PASS_ON(umem_copy_to(upstream_of(ctx), src_adr, that, dst_adr, nbytes));
}

static void wrapped_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                              uintptr_t src_adr, size_t nbytes) {
  PASS_ON(umem_copy_from(upstream_of(ctx), dst_adr, that, src_adr, nbytes));
}

/* The bare contexts keep their own routes. */
static bool wrapped_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  umemVirtual *upstream = upstream_of(ctx);
  PASS_ON(umem_copy_strided(src == ctx ? upstream : src, src_adr, dst == ctx ? upstream : dst,
                            dst_adr, layout));
  return true;
}

static void wrapped_wait(umemVirtual *ctx, umemVirtual *other) {
  PASS_ON(umem_wait(upstream_of(ctx), other));
}

umemStatusType wrapped_ctor(Wrapped *ctx, umemVirtual *upstream) {
  static struct umemVtbl const vtbl = {
      .alloc = wrapped_alloc,
      .calloc = wrapped_calloc,
      .free = wrapped_free,
      .aligned_alloc = wrapped_aligned_alloc,
      .aligned_origin = wrapped_aligned_origin,
      .aligned_free = wrapped_aligned_free,
      .set = wrapped_set,
      .copy_to = wrapped_copy_to,
      .copy_from = wrapped_copy_from,
      .copy_direct = wrapped_copy_direct,
      .wait = wrapped_wait,
      .upstream = upstream_of,
      .realloc = wrapped_realloc,
  };
  umemVirtual_ctor(&ctx->super, upstream->host);
  ctx->super.vptr = &vtbl;
  ctx->super.type = umemUserDevice;
  ctx->super.name = "Wrapped";
  ctx->super.capabilities =
      upstream->capabilities & ~(uint32_t)umemSilent; /* alloc and free record */
  ctx->super.alignment = upstream->alignment;
  ctx->super.space[0] = upstream->space[0];
  ctx->super.space[1] = upstream->space[1];
  ctx->upstream = upstream;
  return umemOK;
}
