/* fixed.c - the context of blocks of one size; fixed_store.h tells what it is made of. */
#include "core/adaptor.h"
#include "pool/fixed_store.h"

#include <umem/fixed.h>

#include <inttypes.h>
#include <string.h>

typedef struct Fixed {
  umemAdaptor adaptor;
  umemFixedStore store;
} Fixed;

static umemFixedStore *store_of(umemVirtual *ctx) {
  return &((Fixed *)umemAdaptor_impl(ctx))->store;
}

/* ---- failures; without the lock ---- */

static void tell_lack(umemVirtual *ctx, umemFixedLack const *lack) {
  umemFixedStore *store = store_of(ctx);
  if (lack->why == umemFixedUpstream)
    umemAdaptor_tell_held(ctx, &lack->attempt);
  else if (lack->why == umemFixedMaximum)
    umemVirtual_fail(ctx, umemMemoryError, "no block is free of the %zu that %zu bytes hold",
                     store->maximum / store->block_size, store->maximum);
  else if (lack->why == umemFixedNumbers)
    umemVirtual_fail(ctx, umemMemoryError, "more blocks of %zu bytes than can be counted",
                     store->block_size);
  else
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the books of the blocks");
}

/* Whether so many bytes of a block fit into it; false with a status otherwise. */
static bool fits(umemVirtual *ctx, size_t nbytes) {
  size_t most = store_of(ctx)->block_size;
  if (nbytes <= most) return true;
  umemVirtual_fail(ctx, umemMemoryError, "%zu bytes exceed a block, which has %zu", nbytes, most);
  return false;
}

static uintptr_t refuse(umemVirtual *ctx, uintptr_t adr) {
  umemVirtual_fail(ctx, umemValueError, "%#" PRIxPTR " is not a live block", adr);
  return umem_null_of(ctx);
}

/* ---- methods ---- */

static uintptr_t take(umemVirtual *ctx, unsigned shift) {
  uintptr_t null = umem_null_of(ctx);
  umemFixedLack lack;
  uintptr_t adr = umemFixedStore_take(store_of(ctx), shift, &lack);
  if (adr == null) tell_lack(ctx, &lack);
  return adr;
}

static uintptr_t fixed_alloc(umemVirtual *ctx, size_t nbytes) {
  return fits(ctx, nbytes) ? take(ctx, 0) : umem_null_of(ctx);
}

/* A block of no bytes has one, lest it be at the address of the next. */
static uintptr_t fixed_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  size_t pad = umemFixedStore_pad(store_of(ctx), alignment);
  if (!fits(ctx, size + !size + pad)) return umem_null_of(ctx);
  return take(ctx, pad ? (unsigned)__builtin_ctzll(alignment) : 0);
}

static uintptr_t fixed_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  uintptr_t start;
  return umemFixedStore_find(store_of(ctx), adr, &start) ? start : refuse(ctx, adr);
}

/* Also of aligned blocks. */
static void fixed_free(umemVirtual *ctx, uintptr_t adr) {
  if (!umemFixedStore_put(store_of(ctx), adr)) refuse(ctx, adr);
}

static uintptr_t fixed_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uintptr_t start;
  if (!umemFixedStore_find(store_of(ctx), adr, &start)) return refuse(ctx, adr);
  uint64_t size = store_of(ctx)->block_size - (adr - start);
  if (!umem_has_size(ctx, adr, size, old_size)) return umem_null_of(ctx);
  size_t before = adr - start, all = new_size + before;
  return fits(ctx, all < before ? SIZE_MAX : all) ? adr : umem_null_of(ctx);
}

static void fixed_trim(umemVirtual *ctx, size_t keep) {
  umemAttempt held;
  umemFixedStore_trim(store_of(ctx), keep, &held);
  umemAdaptor_tell_held(ctx, &held);
  uint64_t before = umem_thread.failures;
  umem_trim(umemAdaptor_upstream(ctx), keep);
  umemAdaptor_failed(ctx, before);
}

static void measure(umemFixedStore *store, umemFixedStats *stats) {
  umemLock_acquire(&store->lock);
  stats->block_size = store->block_size;
  stats->blocks = umemFixedStore_count(store);
  stats->blocks_held = store->held_blocks;
  stats->reserved = store->held_blocks * store->block_size;
  stats->reserved_peak = store->held_peak * store->block_size;
  stats->chunks = store->held_chunks;
  umemLock_release(&store->lock);
}

/* The upstream's figures, as far as they can be used. */
static void fixed_info(umemVirtual *ctx, umemInfo *info) {
  umemFixedStore *store = store_of(ctx);
  uint64_t alignment = info->alignment, before = umem_thread.failures;
  umem_get_info(umemAdaptor_upstream(ctx), info);
  info->alignment = alignment;
  if (umemAdaptor_failed(ctx, before)) return;
  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  measure(store, &stats);
  uint64_t used = stats.blocks * stats.block_size;
  if (info->available != UMEM_UNKNOWN && stats.reserved > used)
    info->available += stats.reserved - used;
  if (store->maximum == SIZE_MAX) return;
  uint64_t most = store->maximum / store->block_size * store->block_size;
  info->capacity = umem_lesser(info->capacity, most);
  info->available = umem_lesser(info->available, most - umem_lesser(used, most));
}

/* ---- construction and end ---- */

static void fixed_dtor(umemVirtual *ctx) {
  uint64_t before = umem_thread.failures;
  umemFixedStore_fini(store_of(ctx));
  umemAdaptor_failed(ctx, before);
  umemAdaptor_dtor(ctx);
}

static struct umemVtbl const fixed_vtbl = {
    .dtor = fixed_dtor,
    .alloc = fixed_alloc,
    .free = fixed_free,
    .aligned_alloc = fixed_aligned_alloc,
    .aligned_origin = fixed_aligned_origin,
    .aligned_free = fixed_free,
    .realloc = fixed_realloc,
    .trim = fixed_trim,
    .info = fixed_info,
    .upstream = umemAdaptor_upstream_method,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
};

static size_t const growth_default = 1 << 20, size_most = PTRDIFF_MAX / 2, blocks_most = 1 << 20;

/* The caller's options in full; false, and a status on ctx, when they cannot be true. */
static bool read_options(umemVirtual *ctx, umemFixedOptions const *given,
                         umemFixedOptions *options) {
  *options = (umemFixedOptions)UMEM_FIXED_OPTIONS_INIT;
  if (!umem_read_sized(ctx, options, sizeof *options, given, "umemFixedOptions")) return false;
  if (!options->alignment) options->alignment = ctx->alignment;
  if (!options->growth) options->growth = growth_default;
  if (!options->maximum) options->maximum = SIZE_MAX;
  if (!umem_is_power_of_two(options->alignment) || options->alignment > size_most)
    umemVirtual_fail(ctx, umemValueError, "alignment %zu is not a power of two, or too large",
                     options->alignment);
  else if (options->initial > options->maximum)
    umemVirtual_fail(ctx, umemValueError, "initial bytes (%zu) exceed the maximum (%zu)",
                     options->initial, options->maximum);
  else
    return true;
  return false;
}

/* Sets what the store is told; false with a status for what cannot be. */
static bool plan(umemVirtual *ctx, size_t block_size, umemFixedOptions const *options) {
  umemFixedStore *store = store_of(ctx);
  if (!block_size || block_size > size_most) {
    umemVirtual_fail(ctx, umemValueError, "blocks cannot have %zu bytes", block_size);
    return false;
  }
  store->upstream = umemAdaptor_upstream(ctx);
  store->alignment = options->alignment;
  store->block_size = (block_size + options->alignment - 1) & ~(options->alignment - 1);
  store->maximum = options->maximum;
  if (store->maximum < store->block_size) {
    umemVirtual_fail(ctx, umemValueError, "the maximum (%zu bytes) is less than a block (%zu)",
                     store->maximum, store->block_size);
    return false;
  }
  size_t count = options->growth / store->block_size;
  store->per_chunk = (uint32_t)(count > blocks_most ? blocks_most : count + !count);
  while ((uint32_t)1 << store->shift < store->per_chunk) store->shift++;
  return true;
}

/* Takes the initial bytes in one piece, so that the upstream says at once whether they are to be
 * had: as many blocks as there may be, where the last one would be cut by the maximum. */
static bool take_initial(umemVirtual *ctx, size_t initial) {
  umemFixedStore *store = store_of(ctx);
  size_t most = store->maximum / store->block_size;
  size_t count = initial / store->block_size + (initial % store->block_size != 0);
  umemFixedLack lack;
  if (!umemFixedStore_init(store)) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the books of the blocks");
    return false;
  }
  if (umemFixedStore_reserve(store, count < most ? count : most, &lack)) return true;
  tell_lack(ctx, &lack);
  umemFixedStore_fini(store);
  return false;
}

typedef struct Wish {
  size_t block_size;
  umemFixedOptions const *options;
} Wish;

static bool fixed_start(umemVirtual *ctx, void const *given) {
  Wish const *wish = given;
  umemFixedOptions options;
  if (!read_options(ctx, wish->options, &options) || !plan(ctx, wish->block_size, &options))
    return false;
  ctx->alignment = options.alignment;
  return take_initial(ctx, options.initial);
}

extern umemKind const umem_fixed_kind; /* below */

umemStatusType umemFixed_ctor(umemFixed *ctx, void *upstream, size_t block_size,
                              umemFixedOptions const *options) {
  UMEM_ENTER();
  return umemAdaptor_construct(ctx, upstream, false, &umem_fixed_kind,
                               &(Wish){block_size, options});
}

umemStatusType umemFixed_adopt(umemFixed *ctx, void *upstream, size_t block_size,
                               umemFixedOptions const *options) {
  UMEM_ENTER();
  return umemAdaptor_construct(ctx, upstream, true, &umem_fixed_kind, &(Wish){block_size, options});
}

/* ---- by name: "fixed+cuda:0?block=800" ---- */

static umemFixedOptions const defaults = UMEM_FIXED_OPTIONS_INIT;

static umemOption const named_options[] = {
    {.name = "block", .kind = umemSizeOption, .required = true, .help = "of every block"},
    UMEM_OPTION_NOT_0(umemFixedOptions, alignment, "alignment", umemSizeOption,
                      "of every block; default: that of what is below"),
    UMEM_OPTION(umemFixedOptions, initial, "initial", umemSizeOption,
                "taken when it is opened; default: 0"),
    UMEM_OPTION_NOT_0(umemFixedOptions, growth, "growth", umemSizeOption,
                      "of each chunk; default: 1M"),
    UMEM_OPTION_NOT_0(umemFixedOptions, maximum, "max", umemSizeOption,
                      "that it ever holds at once; default: no bound"),
};

static umemStatusType open_fixed(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)place, (void)user;
  umemFixedOptions options;
  if (!umemKind_read(&umem_fixed_kind, given, &options)) return umemValueError;
  return umemFixed_ctor(ctx, upstream, given[0].number, &options);
}

umemKind const umem_fixed_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemFixed, "fixed", &fixed_vtbl), UMEM_OPTIONS(named_options),
               .construct = open_fixed, .help = "blocks of one size, out of few"},
    .label = "Fixed",
    .impl_size = sizeof(Fixed),
    .options_size = sizeof defaults,
    .defaults = &defaults,
    .start = fixed_start,
};

/* ---- questions ---- */

umemStatusType umemFixed_stats(umemFixed *ctx, umemFixedStats *stats) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (!umemKind_check(ctx, &umem_fixed_kind)) return umem_result(before);
  if (!umem_can_write_sized(ctx, stats, offsetof(umemFixedStats, blocks_held), "stats",
                            "umemFixedStats"))
    return umem_result(before);
  umemFixedStats known = UMEM_FIXED_STATS_INIT;
  measure(store_of(&ctx->super), &known);
  umem_write_sized(stats, &known, sizeof known);
  return umemOK;
}
