/* external.c - blocks of an allocator of others, in memory that another context copies.
 *
 * A block leaves the records before its allocator gets it back, because the allocator may hand the
 * address to another thread at once. */
#include "base/records.h"
#include "core/adaptor.h"
#include "core/context.h"
#include "core/memory.h"
#include "core/status.h"

#include <inttypes.h>
#include <umem/external.h>

typedef struct Record {
  umemRecord head;
  size_t alignment; /* that was asked for */
} Record;

typedef struct Block {
  uintptr_t adr;
  size_t nbytes, alignment;
} Block;

typedef struct External {
  umemAdaptor adaptor;
  umemExternalOptions table;
  uintptr_t stream;
  umemLock serial;     /* held in functions of the table, if these want it */
  umemRecords records; /* Records; all count as live */
} External;

static External *external_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- records ---- */

static void count_removed(umemRecords *records, uint32_t slot) {
  umemRecords_uncount(records, records->index.spans[slot].size);
}

/* Enters a block into reserved room. Returns false, with the room left as it is, if it overlaps a
 * live one, which *other then is. */
static bool enter(External *external, Block const *block, Block *other) {
  umemRecords *records = &external->records;
  umemLock_acquire(&records->lock);
  uint32_t slot = umemRecords_inside(records, block->adr);
  if (!slot) slot = umemRecords_from(records, block->adr);
  umemSpan const *span = &records->index.spans[slot];
  bool overlaps = slot && span->start < block->adr + block->nbytes;
  if (overlaps) {
    *other = (Block){span->start, span->size, 0};
  } else {
    Record *record = umemRecords_at(records, umemRecords_enter(records, block->adr, block->nbytes));
    record->head.number = records->entered;
    record->alignment = block->alignment;
    umemRecords_count(records, block->nbytes);
  }
  umemLock_release(&records->lock);
  return !overlaps;
}

static Block block_at(External const *external, uint32_t slot) {
  Record const *record = umemRecords_at(&external->records, slot);
  umemSpan const *span = &external->records.index.spans[slot];
  return (Block){span->start, span->size, record->alignment};
}

/* Finds the block that begins at adr, and removes its record if takes is true. Returns false where
 * none begins. */
static bool find_block(External *external, uintptr_t adr, bool takes, Block *block) {
  umemLock_acquire(&external->records.lock);
  uint32_t slot = umemRecords_exact(&external->records, adr);
  if (slot) *block = block_at(external, slot);
  if (slot && takes) umemRecords_remove(&external->records, slot);
  umemLock_release(&external->records.lock);
  return slot;
}

/* ---- calls of the allocator ---- */

/* Whether the process is a child of fork, and the memory is of a GPU. */
static bool is_lost(umemVirtual *ctx) {
  unsigned const of_cpu = umemCpuReadable | umemCpuWritable;
  return external_of(ctx)->adaptor.generation != umem_fork_count() &&
         (!umem_can(ctx, of_cpu) || umem_can(ctx, umemDeviceAccessible));
}

static bool is_usable(umemVirtual *ctx) {
  return !is_lost(ctx) || UMEM_FAIL(ctx, umemNotSupportedError,
                                    "the memory of a GPU does not work in a child of fork, and "
                                    "this context was constructed before it");
}

static void begin_call(External *external, umemAttempt *held) {
  if (external->table.serial) umemLock_acquire(&external->serial);
  umemAttempt_begin(held);
}

/* Whether the call has recorded a failure, which becomes ctx's. */
static bool end_call(umemVirtual *ctx, umemAttempt *held) {
  External *external = external_of(ctx);
  umemAttempt_end(held);
  if (external->table.serial) umemLock_release(&external->serial);
  held->ctx = ctx;
  held->adopter = NULL;
  return umemAttempt_record(held) != umemOK;
}

static void give_back(umemVirtual *ctx, Block const *block) {
  External *external = external_of(ctx);
  umemExternalOptions const *table = &external->table;
  umemAttempt held;
  begin_call(external, &held);
  table->deallocate(table->user, (void *)block->adr, block->nbytes, block->alignment,
                    external->stream);
  end_call(ctx, &held);
}

/* The allocator's answer; 0 with a status. */
static uintptr_t ask(umemVirtual *ctx, size_t nbytes, size_t alignment) {
  External *external = external_of(ctx);
  umemExternalOptions const *table = &external->table;
  umemAttempt held;
  begin_call(external, &held);
  void *got = table->allocate(table->user, nbytes, alignment, external->stream);
  bool failed = end_call(ctx, &held);
  if (!got && !failed)
    umemVirtual_fail(ctx, umemMemoryError,
                     "the allocator has no block of %zu bytes at a multiple of %zu", nbytes,
                     alignment);
  Block block = {(uintptr_t)got, nbytes, alignment};
  if (got && failed) give_back(ctx, &block);
  return failed ? 0 : block.adr;
}

/* ---- allocation ---- */

/* Whether the allocator has returned what it must: a block at the right multiple that overlaps no
 * other. If it has, the block is live from now on. */
static bool accept(umemVirtual *ctx, Block const *block) {
  Block other;
  if (block->adr & (block->alignment - 1)) {
    give_back(ctx, block);
    return UMEM_FAIL(ctx, umemRuntimeError,
                     "the allocator has returned 0x%" PRIxPTR ", which is not a multiple of %zu",
                     block->adr, block->alignment);
  }
  if (block->adr > UINTPTR_MAX - block->nbytes)
    return UMEM_FAIL(ctx, umemRuntimeError,
                     "the allocator has returned 0x%" PRIxPTR ", where no %zu bytes are",
                     block->adr, block->nbytes);
  return enter(external_of(ctx), block, &other) ||
         UMEM_FAIL(ctx, umemRuntimeError,
                   "the allocator has returned %zu bytes at 0x%" PRIxPTR
                   ", which overlap the live block of %zu bytes at 0x%" PRIxPTR,
                   block->nbytes, block->adr, other.nbytes, other.adr);
}

static uintptr_t allocate(umemVirtual *ctx, size_t alignment, size_t nbytes) {
  External *external = external_of(ctx);
  if (!is_usable(ctx)) return 0;
  if (!umemRecords_reserve(&external->records))
    return UMEM_FAIL_AS(0, ctx, umemMemoryError, "no memory to record a block");
  Block block = {ask(ctx, nbytes, alignment), nbytes, alignment};
  if (block.adr && accept(ctx, &block)) return block.adr;
  umemRecords_release(&external->records);
  return 0;
}

static uintptr_t external_alloc(umemVirtual *ctx, size_t nbytes) {
  return allocate(ctx, ctx->alignment, nbytes);
}

static uintptr_t external_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t nbytes) {
  return allocate(ctx, alignment > ctx->alignment ? alignment : ctx->alignment, nbytes);
}

/* ---- free ---- */

static bool refuse_unknown(umemVirtual *ctx, uintptr_t adr) {
  return UMEM_FAIL(ctx, umemValueError,
                   "0x%" PRIxPTR " is no live block: it is free already, or never was one", adr);
}

static void external_free(umemVirtual *ctx, uintptr_t adr) {
  External *external = external_of(ctx);
  Block block;
  if (!is_usable(ctx)) return;
  if (!find_block(external, adr, false, &block)) {
    refuse_unknown(ctx, adr);
    return;
  }
  bool waits = umem_can(ctx, umemOrdered) && external->stream == UMEM_EXTERNAL_NO_STREAM;
  uint64_t before = umem_thread.failures;
  if (waits && umem_synchronize(external->adaptor.upstream) != umemOK) {
    umemAdaptor_failed(ctx, before);
    return;
  }
  if (find_block(external, adr, true, &block))
    give_back(ctx, &block);
  else
    refuse_unknown(ctx, adr);
}

static uintptr_t external_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  Block block;
  bool known = find_block(external_of(ctx), adr, false, &block) || refuse_unknown(ctx, adr);
  return known ? adr : umem_null_of(ctx);
}

static void external_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  Block block;
  (void)aligned;
  find_block(external_of(ctx), adr, true, &block);
}

static uintptr_t external_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,
                                  size_t new_size) {
  Block block;
  bool known = find_block(external_of(ctx), adr, false, &block) || refuse_unknown(ctx, adr);
  if (!known || !umem_has_size(ctx, adr, block.nbytes, old_size)) return umem_null_of(ctx);
  return umem_move_block(ctx, adr, old_size, new_size);
}

/* ---- finding ---- */

static umemSearch external_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  External *external = external_of(ctx);
  if (!umemLock_try(&external->records.lock)) return umemSearchBusy;
  uint32_t slot = umemRecords_inside(&external->records, adr);
  Block block = slot ? block_at(external, slot) : (Block){0, 0, 0};
  umemLock_release(&external->records.lock);
  if (!slot) return umemSearchNone;
  found->adr = block.adr;
  found->nbytes = block.nbytes;
  return umemSearchFound;
}

static bool external_usage(umemVirtual *ctx, umemUsage *usage) {
  return umemRecords_usage(&external_of(ctx)->records, &usage->nbytes, &usage->peak);
}

/* ---- construction and end ---- */

static void free_all(umemVirtual *ctx) {
  External *external = external_of(ctx);
  uint32_t slot;
  uint64_t before = umem_thread.failures;
  bool waits = umem_can(ctx, umemOrdered) && external->stream == UMEM_EXTERNAL_NO_STREAM;
  if (waits && umem_synchronize(external->adaptor.upstream) != umemOK)
    umemAdaptor_failed(ctx, before);
  while ((slot = umemRecords_from(&external->records, 0))) {
    Block block = block_at(external, slot);
    umemRecords_remove(&external->records, slot);
    give_back(ctx, &block);
  }
}

static void external_dtor(umemVirtual *ctx) {
  External *external = external_of(ctx);
  umemExternalOptions const *table = &external->table;
  umemAdaptor_unlist(ctx);
  if (!is_lost(ctx)) {
    free_all(ctx);
    umemAttempt held;
    begin_call(external, &held);
    if (table->release) table->release(table->user);
    end_call(ctx, &held);
  }
  umemRecords_fini(&external->records);
  umemLock_destroy(&external->serial);
  umemAdaptor_dtor(ctx);
}

#define EXTERNAL_METHODS                                                                           \
  .dtor = external_dtor, .alloc = external_alloc, .free = external_free,                           \
  .realloc = external_realloc, .find = external_find, .usage = external_usage,                     \
  .leave = external_leave, UMEM_ADAPTOR_BYTES, UMEM_ADAPTOR_ORDER,                                 \
  .upstream = umemAdaptor_upstream_method

static struct umemVtbl const external_vtbl = {
    EXTERNAL_METHODS,
    .aligned_alloc = external_aligned_alloc,
    .aligned_origin = external_aligned_origin,
    .aligned_free = external_free,
};

/* Of no_alignment: the base aligns. */
static struct umemVtbl const unaligned_vtbl = {EXTERNAL_METHODS};

static bool check_table(umemVirtual *ctx, umemExternalOptions const *table) {
  if (!table->allocate || !table->deallocate)
    return UMEM_FAIL(ctx, umemValueError, "the function %s of the options is NULL",
                     table->allocate ? "deallocate" : "allocate");
  if (table->alignment & (table->alignment - 1))
    return UMEM_FAIL(ctx, umemValueError, "the alignment %zu is not a power of two",
                     table->alignment);
  if (!umem_can(ctx, umemOffsets)) return true;
  return UMEM_FAIL(ctx, umemNotSupportedError,
                   "addresses of the upstream, a %s, are offsets: an allocator returns pointers",
                   umem_get_device_name(umemAdaptor_upstream(ctx)));
}

static bool external_start(umemVirtual *ctx, void const *options) {
  External *external = external_of(ctx);
  umemInfo info = UMEM_INFO_INIT;
  external->table = *(umemExternalOptions const *)options;
  if (!check_table(ctx, &external->table)) return false;
  uint64_t before = umem_thread.failures;
  if (umem_get_info(external->adaptor.upstream, &info) != umemOK)
    return umemAdaptor_failed(ctx, before), false;
  if (!umemRecords_init(&external->records, sizeof(Record), count_removed))
    return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
  bool has_stream = umem_can(ctx, umemOrdered) && info.stream != UMEM_UNKNOWN;
  external->stream = has_stream ? (uintptr_t)info.stream : UMEM_EXTERNAL_NO_STREAM;
  umemLock_init(&external->serial);
  ctx->capabilities &= ~(uint32_t)umemPrompt; /* nothing is known of the functions */
  if (external->table.alignment) ctx->alignment = external->table.alignment;
  if (external->table.no_alignment) ctx->vptr = &unaligned_vtbl;
  return true;
}

static umemExternalOptions const defaults = UMEM_EXTERNAL_OPTIONS_INIT;

umemKind const umem_external_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemExternal, "external", &external_vtbl),
               .help = "blocks of an allocator of others"},
    .label = "External",
    .impl_size = sizeof(External),
    UMEM_KIND_OPTIONS(umemExternalOptions, defaults),
    .variant = &unaligned_vtbl,
    .start = external_start,
};

UMEM_ADAPTOR_CTORS(umemExternal, umem_external_kind, options, void *upstream,
                   umemExternalOptions const *options)
