/* aligned.c - aligned blocks for contexts that have no way of their own.
 *
 * A larger block is allocated and an aligned address inside it handed out. Where it began is kept in
 * a table beside the memory, which the CPU may not be able to touch, hung on umemVirtual.base. */
#include "core/guard.h"
#include "base/lock.h"
#include "base/table.h"
#include "base/thread.h"

#include <stdlib.h>

/* Whether the origin of aligned could be kept. */
static bool keep_origin(umemVirtual *ctx, uintptr_t aligned, uintptr_t origin) {
  umemLock_acquire_global();
  umemTable *table = ctx->base;
  if (!table && (ctx->base = table = calloc(1, sizeof *table))) table->null = umem_null_of(ctx);
  bool kept = table && umemTable_insert(table, aligned, origin);
  umemLock_release_global();
  return kept;
}

/* The origin of aligned, which leaves the table when taken; aligned itself when it is not there. */
static uintptr_t origin_of(umemVirtual *ctx, uintptr_t aligned, bool take) {
  uintptr_t origin = aligned;
  umemLock_acquire_global();
  umemTable *table = ctx->base;
  umemTableCell *cell = table ? umemTable_find(table, aligned) : NULL;
  if (cell) {
    origin = cell->value;
    if (take) umemTable_remove(table, cell);
  }
  umemLock_release_global();
  return origin;
}

uintptr_t umemVirtual_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  if (alignment <= ctx->alignment) return umem_alloc(ctx, size);
  uintptr_t null = umem_null_of(ctx);
  uintptr_t origin = umem_alloc(ctx, size + alignment - 1);
  if (origin == null) return null;
  uintptr_t aligned = (origin + alignment - 1) & ~(uintptr_t)(alignment - 1);
  if (keep_origin(ctx, aligned, origin)) return aligned;
  umemVirtual_fail(ctx, umemMemoryError, "no memory to remember an aligned block");
  umem_free(ctx, origin);
  return null;
}

uintptr_t umemVirtual_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return origin_of(ctx, adr, false);
}

/* A block whose free is refused lives on, and can be freed again. */
void umemVirtual_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  uint64_t before = umem_thread.failures;
  uintptr_t origin = origin_of(ctx, adr, true);
  umem_free(ctx, origin);
  if (umem_thread.failures != before && origin != adr) keep_origin(ctx, adr, origin);
}

void umemVirtual_dtor(umemVirtual *ctx) {
  if (!ctx || !ctx->base || !umem_is_in_place(ctx)) return;
  umemTable_clear(ctx->base);
  free(ctx->base);
  ctx->base = NULL;
}
