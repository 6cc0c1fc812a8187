/* A context of your own: an arena in a struct, whose blocks all end with it. */
#include <stdio.h>
#include <string.h>
#include <umem.h>
#include <umem/virtual.h>

typedef struct {
  umemVirtual super; /* first, so that a pointer to the struct is one to the context */
  umemHost host;     /* RAM, for copies */
  size_t used;
  _Alignas(16) char bytes[4096];
} Arena;

static uintptr_t arena_alloc(umemVirtual *ctx, size_t nbytes) {
  Arena *self = (Arena *)ctx;
  uintptr_t adr = (uintptr_t)&self->bytes[self->used];
  if (nbytes > sizeof self->bytes - self->used)
    return umemVirtual_fail(ctx, umemMemoryError, "%zu bytes do not fit", nbytes), umem_null(ctx);
  self->used += (nbytes + 15) / 16 * 16;
  return adr;
}
static void arena_free(umemVirtual *ctx, uintptr_t adr) { (void)ctx, (void)adr; }
static void to_ram(umemVirtual *ctx, uintptr_t src, umemVirtual *ram, uintptr_t dst, size_t size) {
  (void)ctx, (void)ram, memcpy((void *)dst, (void const *)src, size);
}
static void of_ram(umemVirtual *ctx, uintptr_t dst, umemVirtual *ram, uintptr_t src, size_t size) {
  to_ram(ctx, src, ram, dst, size); /* the other context of a method is always RAM */
}

int main(void) {
  static struct umemVtbl const methods = {
      .alloc = arena_alloc, .free = arena_free, .copy_to = to_ram, .copy_from = of_ram};
  Arena arena = {.used = 0};
  umemHost_ctor(&arena.host), umemVirtual_ctor(&arena.super, &arena.host);
  arena.super.vptr = &methods, arena.super.alignment = 16;
  umem_set(&arena, umem_alloc(&arena, 100), 7, 100);
  printf("%s\n", umem_alloc(&arena, 5000) ? "" : umem_get_message(&arena));
  umem_dtor(&arena);
}
