#include "fake.h"

#include <inttypes.h>
#include <string.h>

/* No CPU has such pointers: on x86-64 they are not canonical, on others nothing is mapped there. */
static uintptr_t const first_pointer = (uintptr_t)0xFA << 56;
static uint64_t const capacity = (uint64_t)16 << 30;
enum { fake_alignment = 64, offset_alignment = 16 };

static Fake *fake_of(umemVirtual *ctx) { return (Fake *)ctx; }

/* ---- what methods may rely on ---- */

static bool promised(umemVirtual *ctx, bool holds, char const *promise) {
  if (!holds) umemVirtual_fail(ctx, umemAssertError, "a method was called although %s", promise);
  return holds;
}

bool fake_host_is_genuine(umemVirtual *ctx, umemVirtual *that) {
  umemHost host;
  umemHost_ctor(&host);
  bool genuine = that && that->type == umemHostDevice && that->host == that &&
                 umem_is_same_device(&host, that) && umem_is_same_device(that, &host);
  umem_dtor(&host);
  return promised(ctx, genuine, "the other side is no plain Host");
}

unsigned char *fake_access(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  if (!promised(ctx, nbytes > 0, "there are no bytes") ||
      !promised(ctx, adr != umem_null(ctx), "the address is null") ||
      !promised(ctx, adr + nbytes >= adr, "address and size overflow"))
    return NULL;
  atomic_fetch_add(&fake_of(ctx)->moves, 1);
  unsigned char *bytes = fake_store_at(fake_of(ctx)->store, adr, nbytes);
  if (!bytes)
    umemVirtual_fail(ctx, umemIndexError, "%zu bytes at 0x%" PRIxPTR " are not inside a live block",
                     nbytes, adr);
  return bytes;
}

/* ---- blocks ---- */

static uintptr_t alloc_at(umemVirtual *ctx, size_t nbytes, size_t alignment) {
  if (!promised(ctx, nbytes > 0, "there are no bytes")) return umem_null(ctx);
  uintptr_t adr = fake_store_alloc(fake_of(ctx)->store, nbytes, alignment);
  if (adr != FAKE_NOWHERE) return adr;
  umemVirtual_fail(ctx, umemMemoryError, "no room for %zu bytes", nbytes);
  return umem_null(ctx);
}

uintptr_t fake_alloc(umemVirtual *ctx, size_t nbytes) {
  return alloc_at(ctx, nbytes, ctx->alignment);
}

static uintptr_t fake_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  size_t nbytes;
  bool overflows = __builtin_mul_overflow(nmemb, size, &nbytes);
  if (!promised(ctx, !overflows, "its product overflows")) return umem_null(ctx);
  uintptr_t adr = fake_alloc(ctx, nbytes);
  if (adr != umem_null(ctx)) memset(fake_store_at(fake_of(ctx)->store, adr, nbytes), 0, nbytes);
  return adr;
}

static void fake_free(umemVirtual *ctx, uintptr_t adr) {
  if (!promised(ctx, adr != umem_null(ctx), "the address is null")) return;
  FakeBlock block = fake_store_take(fake_of(ctx)->store, adr);
  if (block.bytes)
    fake_block_release(&block);
  else
    umemVirtual_fail(ctx, umemValueError, "0x%" PRIxPTR " is not a live block", adr);
}

static uintptr_t fake_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  bool power = alignment && !(alignment & (alignment - 1));
  if (!promised(ctx, power, "the alignment is no power of two")) return umem_null(ctx);
  return alloc_at(ctx, size, alignment > ctx->alignment ? alignment : ctx->alignment);
}

static uintptr_t fake_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx;
  return adr;
}

static uintptr_t fake_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  size_t kept = old_size < new_size ? old_size : new_size;
  if (!fake_store_at(fake_of(ctx)->store, adr, old_size)) {
    umemVirtual_fail(ctx, umemValueError, "there is no block of %zu bytes", old_size);
    return umem_null(ctx);
  }
  unsigned char *old_bytes = fake_access(ctx, adr, kept);
  uintptr_t moved = old_bytes ? fake_alloc(ctx, new_size) : umem_null(ctx);
  if (moved == umem_null(ctx)) return moved;
  memcpy(fake_store_at(fake_of(ctx)->store, moved, kept), old_bytes, kept);
  fake_free(ctx, adr);
  return moved;
}

/* ---- bytes ---- */

static void fake_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  unsigned char *bytes = fake_access(ctx, adr, nbytes);
  if (bytes) memset(bytes, c, nbytes);
}

static void fake_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes) {
  unsigned char const *bytes = fake_access(ctx, src_adr, nbytes);
  if (bytes && fake_host_is_genuine(ctx, that)) memcpy((void *)dst_adr, bytes, nbytes);
}

static void fake_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                           uintptr_t src_adr, size_t nbytes) {
  unsigned char *bytes = fake_access(ctx, dst_adr, nbytes);
  if (bytes && fake_host_is_genuine(ctx, that)) memcpy(bytes, (void const *)src_adr, nbytes);
}

static void copy_items(Fake *src, uintptr_t src_adr, Fake *dst, uintptr_t dst_adr,
                       umemLayout const *layout, int axis) {
  if (axis == layout->rank) {
    unsigned char const *from = fake_access(&src->super, src_adr, layout->item_size);
    unsigned char *to = from ? fake_access(&dst->super, dst_adr, layout->item_size) : NULL;
    if (to) memmove(to, from, layout->item_size);
    return;
  }
  for (size_t i = 0; i < layout->extents[axis]; i++) {
    copy_items(src, src_adr, dst, dst_adr, layout, axis + 1);
    src_adr += (uintptr_t)layout->src_strides[axis];
    dst_adr += (uintptr_t)layout->dst_strides[axis];
  }
}

static bool fake_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                             umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  if (src->vptr != ctx->vptr || dst->vptr != ctx->vptr) return false;
  copy_items(fake_of(src), src_adr, fake_of(dst), dst_adr, layout, 0);
  return true;
}

/* ---- the rest ---- */

static bool fake_is_same_device(umemVirtual *ctx, umemVirtual *other) { return ctx == other; }

static void fake_nothing(umemVirtual *ctx) { (void)ctx; }

static void fake_wait(umemVirtual *ctx, umemVirtual *other) {
  (void)ctx;
  umem_synchronize(other);
}

static void fake_trim(umemVirtual *ctx, size_t keep) { (void)ctx, (void)keep; }

static void fake_info(umemVirtual *ctx, umemInfo *info) {
  info->capacity = capacity;
  info->available = fake_store_available(fake_of(ctx)->store);
  info->page_size = 4096;
  info->ordinal = 0;
  strcpy(info->name, "fake");
}

static void fake_dtor(umemVirtual *ctx) { fake_store_destroy(fake_of(ctx)->store); }

static umemStatusType construct(Fake *ctx, struct umemVtbl const *vtbl, char const *name,
                                uintptr_t first, size_t alignment) {
  umemHost_ctor(&ctx->host);
  umemVirtual_ctor(&ctx->super, &ctx->host);
  ctx->super.vptr = vtbl;
  ctx->super.type = umemUserDevice;
  ctx->super.name = name;
  ctx->super.alignment = alignment;
  ctx->super.capabilities |= umemConcurrent;
  atomic_init(&ctx->moves, 0);
  ctx->store = fake_store_create(first, capacity);
  if (ctx->store) return umemOK;
  umemStatusType status = umemVirtual_fail(ctx, umemMemoryError, "no memory for a fake device");
  ctx->super.vptr = NULL;
  return status;
}

umemStatusType fake_ctor_at(Fake *ctx, uintptr_t first) {
  static struct umemVtbl const vtbl = {
      .dtor = fake_dtor,
      .alloc = fake_alloc,
      .free = fake_free,
      .copy_to = fake_copy_to,
      .copy_from = fake_copy_from,
      .info = fake_info,
  };
  return construct(ctx, &vtbl, "Fake", first, fake_alignment);
}

umemStatusType fake_ctor(Fake *ctx) { return fake_ctor_at(ctx, first_pointer); }

umemStatusType fake_offset_ctor(Fake *ctx) {
  static struct umemVtbl const vtbl = {
      .dtor = fake_dtor,
      .is_same_device = fake_is_same_device,
      .alloc = fake_alloc,
      .calloc = fake_calloc,
      .free = fake_free,
      .aligned_alloc = fake_aligned_alloc,
      .aligned_origin = fake_aligned_origin,
      .aligned_free = fake_free,
      .set = fake_set,
      .copy_to = fake_copy_to,
      .copy_from = fake_copy_from,
      .copy_direct = fake_copy_direct,
      .synchronize = fake_nothing,
      .wait = fake_wait,
      .flush = fake_nothing,
      .trim = fake_trim,
      .info = fake_info,
      .realloc = fake_realloc,
  };
  umemStatusType status = construct(ctx, &vtbl, "FakeOffset", 0, offset_alignment);
  ctx->super.capabilities |= umemOffsets;
  return status;
}
