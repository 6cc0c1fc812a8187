/* umem_aligned.c - aligned blocks for contexts that have no way of their own.
 *
 * A larger block is allocated and an aligned address inside it handed out. Where it began is kept in
 * a table beside the memory, which the CPU may not be able to touch: open addressing with linear
 * probing, keyed by the aligned address, hung on umemVirtual.base. */
#include "umem_core.h"
#include "umem_lock.h"

#include <stdlib.h>

typedef struct {
  uintptr_t aligned; /* the context's null: free cell */
  uintptr_t origin;
} Cell;

typedef struct {
  size_t capacity; /* a power of two, at least twice count */
  size_t count;
  Cell cells[];
} Table;

enum { first_capacity = 64 };

static size_t home(Table const *table, uintptr_t aligned) {
  uint64_t mixed =
      (uint64_t)aligned * 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio: Knuth, TAOCP 6.4 */
  return (size_t)(mixed >> 32) & (table->capacity - 1);
}

/* The cell of aligned, or the free cell where it would go. */
static Cell *cell_of(Table *table, uintptr_t aligned, uintptr_t null) {
  size_t i = home(table, aligned);
  while (table->cells[i].aligned != aligned && table->cells[i].aligned != null)
    i = (i + 1) & (table->capacity - 1);
  return &table->cells[i];
}

static Table *table_create(size_t capacity, uintptr_t null) {
  Table *table = malloc(sizeof *table + capacity * sizeof(Cell));
  if (!table) return NULL;
  table->capacity = capacity;
  table->count = 0;
  for (size_t i = 0; i < capacity; i++) table->cells[i].aligned = null;
  return table;
}

static bool table_insert(umemVirtual *ctx, uintptr_t aligned, uintptr_t origin) {
  uintptr_t null = umem_null_of(ctx);
  Table *table = ctx->base;
  if (!table || 2 * (table->count + 1) > table->capacity) {
    Table *larger = table_create(table ? 2 * table->capacity : first_capacity, null);
    if (!larger) return false;
    for (size_t i = 0; table && i < table->capacity; i++) {
      if (table->cells[i].aligned == null) continue;
      *cell_of(larger, table->cells[i].aligned, null) = table->cells[i];
      larger->count++;
    }
    free(table);
    ctx->base = table = larger;
  }
  *cell_of(table, aligned, null) = (Cell){aligned, origin};
  table->count++;
  return true;
}

/* Empties a cell and moves back those that had to go past it (Knuth, TAOCP 6.4, algorithm R). */
static void table_remove(Table *table, Cell *cell, uintptr_t null) {
  size_t mask = table->capacity - 1;
  size_t hole = (size_t)(cell - table->cells);
  for (size_t i = (hole + 1) & mask; table->cells[i].aligned != null; i = (i + 1) & mask) {
    size_t wanted = home(table, table->cells[i].aligned);
    if (((i - wanted) & mask) < ((i - hole) & mask)) continue;
    table->cells[hole] = table->cells[i];
    hole = i;
  }
  table->cells[hole].aligned = null;
  table->count--;
}

/* The origin of aligned, which leaves the table when taken; aligned itself when it is not there. */
static uintptr_t origin_of(umemVirtual *ctx, uintptr_t aligned, bool take) {
  uintptr_t null = umem_null_of(ctx);
  uintptr_t origin = aligned;
  umemLock_acquire_global();
  Table *table = ctx->base;
  Cell *cell = table ? cell_of(table, aligned, null) : NULL;
  if (cell && cell->aligned == aligned) {
    origin = cell->origin;
    if (take) table_remove(table, cell, null);
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
  umemLock_acquire_global();
  bool kept = table_insert(ctx, aligned, origin);
  umemLock_release_global();
  if (kept) return aligned;
  umemVirtual_fail(ctx, umemMemoryError, "no memory to remember an aligned block");
  umem_free(ctx, origin);
  return null;
}

uintptr_t umemVirtual_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return origin_of(ctx, adr, false);
}

void umemVirtual_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  umem_free(ctx, origin_of(ctx, adr, true));
}

void umemVirtual_dtor(umemVirtual *ctx) {
  if (!ctx) return;
  free(ctx->base);
  ctx->base = NULL;
}
