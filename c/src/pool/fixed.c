/* fixed.c - the context of blocks of one size. Its blocks are in fixed_free_list.h. */
#include "core/adaptor.h"
#include "base/number.h"
#include "pool/fixed_free_list.h"

#include <umem/fixed.h>

#include <inttypes.h>
#include <string.h>

typedef struct Fixed {
  umemAdaptor adaptor;
  umemFixedFreeList list;
} Fixed;

static umemFixedFreeList *list_of(umemVirtual *ctx) {
  return &((Fixed *)umemAdaptor_impl(ctx))->list;
}

/* ---- failures; without the lock ---- */

static void record_failure(umemVirtual *ctx, umemFixedFailure const *failure) {
  umemFixedFreeList *list = list_of(ctx);
  if (failure->reason == umemFixedUpstreamFailed)
    umemAdaptor_record_held(ctx, &failure->attempt);
  else if (failure->reason == umemFixedAtMaximum)
    umemVirtual_fail(ctx, umemMemoryError, "no block is free of the %zu that %zu bytes hold",
                     list->maximum / list->block_size, list->maximum);
  else if (failure->reason == umemFixedNoNumbers)
    umemVirtual_fail(ctx, umemMemoryError, "more blocks of %zu bytes than can be counted",
                     list->block_size);
  else
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the records of the blocks");
}

/* Whether a block has room for nbytes; else a status. */
static bool fits_in_block(umemVirtual *ctx, size_t nbytes) {
  size_t most = list_of(ctx)->block_size;
  if (nbytes <= most) return true;
  return UMEM_FAIL(ctx, umemMemoryError, "%zu bytes exceed a block, which has %zu", nbytes, most);
}

static uintptr_t refuse_block(umemVirtual *ctx, uintptr_t adr) {
  return UMEM_FAIL_AS(umem_null_of(ctx), ctx, umemValueError, "%#" PRIxPTR " is not a live block",
                      adr);
}

/* ---- methods ---- */

static uintptr_t take_block(umemVirtual *ctx, unsigned shift) {
  uintptr_t null = umem_null_of(ctx);
  umemFixedFailure failure;
  uintptr_t adr = umemFixedFreeList_take(list_of(ctx), shift, &failure);
  if (adr == null) record_failure(ctx, &failure);
  return adr;
}

static uintptr_t fixed_alloc(umemVirtual *ctx, size_t nbytes) {
  return fits_in_block(ctx, nbytes) ? take_block(ctx, 0) : umem_null_of(ctx);
}

/* A request for 0 bytes takes one, so that its address is inside the block. */
static uintptr_t fixed_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  size_t pad = umemFixedFreeList_pad(list_of(ctx), alignment);
  if (!fits_in_block(ctx, size + !size + pad)) return umem_null_of(ctx);
  return take_block(ctx, pad ? (unsigned)__builtin_ctzll(alignment) : 0);
}

static uintptr_t fixed_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  uintptr_t start;
  return umemFixedFreeList_find(list_of(ctx), adr, &start) ? start : refuse_block(ctx, adr);
}

/* Of aligned blocks, too. */
static void fixed_free(umemVirtual *ctx, uintptr_t adr) {
  if (!umemFixedFreeList_put(list_of(ctx), adr)) refuse_block(ctx, adr);
}

static uintptr_t fixed_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uintptr_t start;
  if (!umemFixedFreeList_find(list_of(ctx), adr, &start)) return refuse_block(ctx, adr);
  uint64_t size = list_of(ctx)->block_size - (adr - start);
  if (!umem_has_size(ctx, adr, size, old_size)) return umem_null_of(ctx);
  size_t before = adr - start, all = new_size + before;
  return fits_in_block(ctx, all < before ? SIZE_MAX : all) ? adr : umem_null_of(ctx);
}

static void fixed_trim(umemVirtual *ctx, size_t keep) {
  umemAttempt held;
  umemFixedFreeList_trim(list_of(ctx), keep, &held);
  umemAdaptor_record_held(ctx, &held);
  UMEM_ADAPTOR_RECORDS(ctx);
  umem_trim(umemAdaptor_upstream(ctx), keep);
}

static void measure_list(umemFixedFreeList *list, umemFixedStats *stats) {
  UMEM_LOCKED(&list->lock);
  stats->block_size = list->block_size;
  stats->blocks = umemFixedFreeList_count(list);
  stats->blocks_held = list->held_blocks;
  stats->reserved = list->held_blocks * list->block_size;
  stats->reserved_peak = list->held_peak * list->block_size;
  stats->chunks = list->held_chunks;
}

/* The upstream's figures, bounded by the maximum. */
static void fixed_info(umemVirtual *ctx, umemInfo *info) {
  umemFixedFreeList *list = list_of(ctx);
  uint64_t alignment = info->alignment, before = umem_thread.failures;
  umem_get_info(umemAdaptor_upstream(ctx), info);
  info->alignment = alignment;
  if (umemAdaptor_failed(ctx, before)) return;
  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  measure_list(list, &stats);
  uint64_t used = stats.blocks * stats.block_size;
  if (info->available != UMEM_UNKNOWN && stats.reserved > used)
    info->available += stats.reserved - used;
  if (list->maximum == SIZE_MAX) return;
  uint64_t most = list->maximum / list->block_size * list->block_size;
  info->capacity = umem_lesser(info->capacity, most);
  info->available = umem_lesser(info->available, most - umem_lesser(used, most));
}

static umemSearch fixed_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  bool has = umemFixedFreeList_find_containing(list_of(ctx), adr, &found->adr, &found->nbytes);
  return has ? umemSearchFound : umemSearchNone;
}

static bool fixed_usage(umemVirtual *ctx, umemUsage *usage) {
  umemFixedFreeList *list = list_of(ctx);
  if (!umemLock_try(&list->lock)) return false;
  usage->nbytes = umemFixedFreeList_count(list) * list->block_size;
  umemLock_release(&list->lock);
  return true;
}

/* ---- construction and end ---- */

static void fixed_dtor(umemVirtual *ctx) {
  uint64_t before = umem_thread.failures;
  umemAdaptor_unlist(ctx);
  umemFixedFreeList_fini(list_of(ctx));
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
    .find = fixed_find,
    .usage = fixed_usage,
    .upstream = umemAdaptor_upstream_method,
    .leave = umemAdaptor_leave,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
};

static size_t const growth_default = 1 << 20, size_most = PTRDIFF_MAX / 2, blocks_most = 1 << 20;

/* The caller's options in full; false, and a status on ctx, when they are wrong. */
static bool read_options(umemVirtual *ctx, umemFixedOptions const *given,
                         umemFixedOptions *options) {
  *options = (umemFixedOptions)UMEM_FIXED_OPTIONS_INIT;
  if (!umem_read_sized(ctx, options, sizeof *options, given, "umemFixedOptions")) return false;
  if (!options->alignment) options->alignment = ctx->alignment;
  if (!options->growth) options->growth = growth_default;
  if (!options->maximum) options->maximum = SIZE_MAX;
  if (!umem_is_power_of_two(options->alignment) || options->alignment > size_most)
    return UMEM_FAIL(ctx, umemValueError, "alignment %zu is not a power of two, or too large",
                     options->alignment);
  if (options->initial <= options->maximum) return true;
  return UMEM_FAIL(ctx, umemValueError, "initial bytes (%zu) exceed the maximum (%zu)",
                   options->initial, options->maximum);
}

/* Sets the members of the list that do not change; false, and a status on ctx, for wrong values. */
static bool set_sizes(umemVirtual *ctx, size_t block_size, umemFixedOptions const *options) {
  umemFixedFreeList *list = list_of(ctx);
  if (!block_size || block_size > size_most)
    return UMEM_FAIL(ctx, umemValueError, "blocks cannot have %zu bytes", block_size);
  list->upstream = umemAdaptor_upstream(ctx);
  list->alignment = options->alignment;
  list->block_size = (block_size + options->alignment - 1) & ~(options->alignment - 1);
  list->maximum = options->maximum;
  if (list->maximum < list->block_size)
    return UMEM_FAIL(ctx, umemValueError, "the maximum (%zu bytes) is less than a block (%zu)",
                     list->maximum, list->block_size);
  size_t count = options->growth / list->block_size;
  list->per_chunk = (uint32_t)(count > blocks_most ? blocks_most : count + !count);
  while ((uint32_t)1 << list->shift < list->per_chunk) list->shift++;
  return true;
}

/* Takes the initial bytes as one chunk, so that the constructor fails if the upstream has no such
 * chunk. The maximum may cut off the last block. */
static bool take_initial(umemVirtual *ctx, size_t initial) {
  umemFixedFreeList *list = list_of(ctx);
  size_t most = list->maximum / list->block_size;
  size_t count = initial / list->block_size + (initial % list->block_size != 0);
  umemFixedFailure failure;
  if (!umemFixedFreeList_init(list))
    return UMEM_FAIL(ctx, umemMemoryError, "no memory for the records of the blocks");
  if (umemFixedFreeList_reserve(list, count < most ? count : most, &failure)) return true;
  record_failure(ctx, &failure);
  umemFixedFreeList_fini(list);
  return false;
}

typedef struct Wish {
  size_t block_size;
  umemFixedOptions const *options;
} Wish;

static bool fixed_start(umemVirtual *ctx, void const *given) {
  Wish const *wish = given;
  umemFixedOptions options;
  if (!read_options(ctx, wish->options, &options) || !set_sizes(ctx, wish->block_size, &options))
    return false;
  ctx->alignment = options.alignment;
  return take_initial(ctx, options.initial);
}

extern umemKind const umem_fixed_kind; /* below */

UMEM_ADAPTOR_CTORS(umemFixed, umem_fixed_kind, (&(Wish){block_size, options}), void *upstream,
                   size_t block_size, umemFixedOptions const *options)

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
  if (!umemKind_check(ctx, &umem_fixed_kind) ||
      !umem_can_write_sized(ctx, stats, offsetof(umemFixedStats, blocks_held), "stats",
                            "umemFixedStats"))
    return UMEM_RESULT();
  umemFixedStats known = UMEM_FIXED_STATS_INIT;
  measure_list(list_of(&ctx->super), &known);
  umem_write_sized(stats, &known, sizeof known);
  return umemOK;
}
