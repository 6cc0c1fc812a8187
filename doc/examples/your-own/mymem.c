/* mymem.c - a complete context of your own.
 *
 * The storage is an arena of bytes. Its addresses are not pointers, as on a device that the CPU cannot
 * address: they begin at first_address. Only the methods below know where the bytes are in RAM. */
#include "mymem.h"

#include <stdlib.h>
#include <string.h>

struct MyMemBlock {
  uintptr_t start;
  size_t size;
};

enum {
  first_address = 4096, /* not 0, which is the null address */
  alignment = 16
};

static umemMyMem *mymem_of(umemVirtual *ctx) { return (umemMyMem *)ctx; }

/* ---- the table of blocks ---- */

/* The number of the first block that begins at adr or after it. */
static size_t block_index(umemMyMem const *self, uintptr_t adr) {
  size_t i = 0;
  while (i < self->count && self->blocks[i].start < adr) i++;
  return i;
}

static bool make_room(umemMyMem *self) {
  if (self->count < self->room) return true;
  size_t room = self->room ? 2 * self->room : 16;
  struct MyMemBlock *blocks = realloc(self->blocks, room * sizeof *blocks);
  if (!blocks) return false;
  self->blocks = blocks;
  self->room = room;
  return true;
}

/* The pointer to nbytes at adr. NULL, with a status on the context, if they are not all inside of one
 * block. */
static unsigned char *mymem_bytes(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  umemMyMem *self = mymem_of(ctx);
  for (size_t i = 0; i < self->count; i++) {
    struct MyMemBlock const *block = &self->blocks[i];
    if (adr < block->start || adr - block->start > block->size) continue;
    if (nbytes <= block->size - (adr - block->start)) return self->bytes + (adr - first_address);
  }
  umemVirtual_fail(ctx, umemIndexError, "%zu bytes at %ju are not inside a block", nbytes,
                   (uintmax_t)adr);
  return NULL;
}

/* ---- the methods ---- */

static void mymem_dtor(umemVirtual *ctx) {
  umemMyMem *self = mymem_of(ctx);
  umem_free(&self->host, (uintptr_t)self->bytes);
  free(self->blocks);
  umemVirtual_dtor(ctx); /* before the host, which the base borrows */
  umem_dtor(&self->host);
}

/* Two arenas never share memory. */
static bool mymem_is_same_device(umemVirtual *ctx, umemVirtual *other) { return ctx == other; }

/* First fit: the block goes into the first gap that holds it. */
static uintptr_t mymem_alloc(umemVirtual *ctx, size_t nbytes) {
  umemMyMem *self = mymem_of(ctx);
  uintptr_t start = first_address;
  size_t i = 0;
  for (; i < self->count && self->blocks[i].start - start < nbytes; i++) {
    uintptr_t end = self->blocks[i].start + self->blocks[i].size;
    start = (end + alignment - 1) & ~(uintptr_t)(alignment - 1);
  }
  uintptr_t end = first_address + self->capacity;
  if (i == self->count && (start > end || nbytes > end - start)) {
    umemVirtual_fail(ctx, umemMemoryError, "no gap of %zu bytes in an arena of %zu", nbytes,
                     self->capacity);
    return umem_null(ctx);
  }
  if (!make_room(self)) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the records of the arena");
    return umem_null(ctx);
  }
  memmove(&self->blocks[i + 1], &self->blocks[i], (self->count - i) * sizeof *self->blocks);
  self->blocks[i] = (struct MyMemBlock){start, nbytes};
  self->count++;
  return start;
}

static void mymem_free(umemVirtual *ctx, uintptr_t adr) {
  umemMyMem *self = mymem_of(ctx);
  size_t i = block_index(self, adr);
  if (i == self->count || self->blocks[i].start != adr) {
    umemVirtual_fail(ctx, umemValueError, "%ju is not the address of a block", (uintmax_t)adr);
    return;
  }
  self->count--;
  memmove(&self->blocks[i], &self->blocks[i + 1], (self->count - i) * sizeof *self->blocks);
}

static void mymem_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  unsigned char *bytes = mymem_bytes(ctx, adr, nbytes);
  if (bytes) memset(bytes, c, nbytes);
}

/* `that` is always a umemHost, so its addresses are pointers. The library makes the copies to all other
 * contexts. */
static void mymem_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                          size_t nbytes) {
  (void)that;
  unsigned char const *bytes = mymem_bytes(ctx, src_adr, nbytes);
  if (bytes) memcpy((void *)dst_adr, bytes, nbytes);
}

static void mymem_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                            uintptr_t src_adr, size_t nbytes) {
  (void)that;
  unsigned char *bytes = mymem_bytes(ctx, dst_adr, nbytes);
  if (bytes) memcpy(bytes, (void const *)src_adr, nbytes);
}

/* ---- the constructor ---- */

umemStatusType umemMyMem_ctor(umemMyMem *ctx, size_t capacity) {
  static struct umemVtbl const vtbl = {
      .dtor = mymem_dtor,
      .is_same_device = mymem_is_same_device,
      .alloc = mymem_alloc,
      .free = mymem_free,
      .set = mymem_set,
      .copy_to = mymem_copy_to,
      .copy_from = mymem_copy_from,
  };
  umemHost_ctor(&ctx->host);
  umemVirtual_ctor(&ctx->super, &ctx->host);
  ctx->super.vptr = &vtbl;
  ctx->super.type = umemUserDevice;
  ctx->super.name = "MyMem";
  ctx->super.alignment = alignment;

  ctx->blocks = NULL;
  ctx->count = ctx->room = 0;
  ctx->capacity = capacity;
  ctx->bytes = (unsigned char *)umem_alloc(&ctx->host, capacity);
  if (ctx->bytes) return umemOK;
  umemStatusType status =
      umemVirtual_fail(ctx, umemMemoryError, "no memory for an arena of %zu bytes", capacity);
  ctx->super.vptr = NULL; /* from now on every call fails */
  return status;
}
