/* binning.c - sends each request to a context that is meant for its size.
 *
 * The table of blocks holds the number of the bin in place of a size. An entry leaves the table
 * before its block goes back, because the bin may give the address to another thread at once. It
 * returns when the free was refused. */
#include "core/adaptor.h"
#include "base/records.h"

#include <umem/binning.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The bins of a moment, which never change: a new bin makes a new list. */
typedef struct Bins {
  struct Bins *older; /* owned; threads may be reading it, so it lasts as long as the context */
  size_t count;
  struct {
    umemBin bin;
    size_t number; /* from 1, in the order in which the bins came; 0 stands for the upstream */
  } sorted[];      /* by size, the smallest first */
} Bins;

typedef struct Binning {
  umemAdaptor adaptor;
  umemValues blocks; /* the number of the bin of each */
  umemLock lock;     /* of who adds a bin */
  Bins *bins;        /* atomic; owned */
} Binning;

static Binning *binning_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

static Bins const *bins_of(umemVirtual *ctx) {
  return __atomic_load_n(&binning_of(ctx)->bins, __ATOMIC_ACQUIRE);
}

/* The context of the bin with this number. */
static umemVirtual *bin_context(umemVirtual *ctx, size_t number) {
  Bins const *bins = bins_of(ctx);
  for (size_t i = 0; i < bins->count; i++)
    if (bins->sorted[i].number == number) return bins->sorted[i].bin.ctx;
  return umemAdaptor_upstream(ctx);
}

/* The largest request of this bin. */
static uint64_t bin_largest(umemVirtual *ctx, size_t number) {
  Bins const *bins = bins_of(ctx);
  for (size_t i = 0; i < bins->count; i++)
    if (bins->sorted[i].number == number) return bins->sorted[i].bin.largest;
  return UINT64_MAX;
}

/* ---- the table of blocks ---- */

/* The number of the bin for a request that has passed the checks of the public functions. */
static size_t bin_for(umemVirtual *ctx, size_t alignment, size_t size) {
  Bins const *bins = bins_of(ctx);
  for (size_t i = 0; i < bins->count; i++) {
    umemBin const *bin = &bins->sorted[i].bin;
    size_t more = alignment > ((umemVirtual const *)bin->ctx)->alignment ? alignment - 1 : 0;
    if (size <= bin->largest && more <= bin->largest - size) return bins->sorted[i].number;
  }
  return 0;
}

/* Reserves an entry of the table. Returns NULL, and records a status, without memory. */
static umemValuesShare *reserve_entry(umemVirtual *ctx) {
  umemValuesShare *room = umemValues_reserve(&binning_of(ctx)->blocks);
  if (!room) umemVirtual_fail(ctx, umemMemoryError, "no memory to remember a block");
  return room;
}

/* Enters the result of a bin, a block at adr or null, into reserved room. Returns adr. */
static uintptr_t enter_block(umemVirtual *ctx, umemValuesShare *room, size_t bin, uintptr_t adr) {
  size_t none;
  if (adr == umem_null_of(ctx))
    umemValues_release(room);
  else
    umemValues_put(&binning_of(ctx)->blocks, room, adr, bin, &none);
  return adr;
}

/* ---- calls of a bin ---- */

typedef struct Call {
  umemVirtual *ctx;
  bool held;           /* of a bin, not of the upstream */
  umemAttempt attempt; /* open when held */
  uint64_t before;     /* failures of the thread */
} Call;

static void begin_call(Call *call, umemVirtual *ctx, size_t bin) {
  call->ctx = ctx;
  call->before = umem_thread.failures;
  call->held = bin;
  if (call->held) umemAttempt_begin(&call->attempt);
}

/* Whether the attempt has failed. A failure of a bin becomes ctx's own, because a bin is not the
 * upstream of ctx. */
static bool record_as_own(umemVirtual *ctx, umemAttempt *attempt) {
  attempt->ctx = ctx;
  attempt->adopter = NULL;
  return umemAttempt_record(attempt) != umemOK;
}

/* Whether the call has failed. */
static bool end_call(Call *call) {
  if (!call->held) return umemAdaptor_failed(call->ctx, call->before);
  umemAttempt_end(&call->attempt);
  return record_as_own(call->ctx, &call->attempt);
}

/* ---- allocation ---- */

UMEM_ADAPTOR_INLINE uintptr_t get_from(umemVirtual *ctx, umemValuesShare *room, size_t bin,
                                       umemRequest const *request) {
  Call call;
  begin_call(&call, ctx, bin);
  uintptr_t adr = umem_alloc_as(bin_context(ctx, bin), request);
  end_call(&call);
  return enter_block(ctx, room, bin, adr);
}

/* ---- free ---- */

static uintptr_t refuse_block(umemVirtual *ctx, uintptr_t adr) {
  return UMEM_FAIL_AS(umem_null_of(ctx), ctx, umemValueError, "%#" PRIxPTR " is not a live block",
                      adr);
}

UMEM_ADAPTOR_INLINE void binning_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  size_t bin, none;
  Call call;
  umemValuesPart *part = umemValues_take(&binning_of(ctx)->blocks, adr, &bin);
  if (!part) {
    refuse_block(ctx, adr);
    return;
  }
  begin_call(&call, ctx, bin);
  umem_free_as(bin_context(ctx, bin), adr, aligned);
  if (end_call(&call))
    umemValues_put_back(part, adr, bin, &none);
  else
    umemValues_drop(part);
}

UMEM_ADAPTOR_FREES(binning_free)

static uintptr_t binning_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  size_t bin;
  Call call;
  if (!umemValues_find(&binning_of(ctx)->blocks, adr, &bin)) return refuse_block(ctx, adr);
  begin_call(&call, ctx, bin);
  uintptr_t origin = umem_aligned_origin(bin_context(ctx, bin), adr);
  end_call(&call);
  return origin;
}

/* ---- allocation and resizing ---- */

/* Resizes a block in its bin. The caller has taken its entry, because the bin may give the
 * address to others at once, and has reserved room for a new one. */
static uintptr_t resize_in_bin(umemVirtual *ctx, umemValuesShare *room, umemValuesPart *part,
                               size_t bin, umemRequest const *request) {
  size_t none;
  uintptr_t moved = get_from(ctx, room, bin, request);
  if (moved == umem_null_of(ctx))
    umemValues_put_back(part, request->adr, bin, &none);
  else
    umemValues_drop(part);
  return moved;
}

static uintptr_t binning_realloc(umemVirtual *ctx, umemRequest const *request, size_t wanted) {
  Binning *binning = binning_of(ctx);
  uintptr_t adr = request->adr;
  size_t bin;
  if (!umemValues_find(&binning->blocks, adr, &bin)) return refuse_block(ctx, adr);
  if (!umem_has_size(ctx, adr, bin_largest(ctx, bin), request->old_size)) return umem_null_of(ctx);
  if (bin != wanted) return umem_move_unknown(ctx, adr, request->old_size, request->nbytes);
  umemValuesShare *room = reserve_entry(ctx);
  if (!room) return umem_null_of(ctx);
  umemValuesPart *part = umemValues_take(&binning->blocks, adr, &bin);
  if (part) return resize_in_bin(ctx, room, part, bin, request);
  umemValues_release(room);
  return refuse_block(ctx, adr);
}

UMEM_ADAPTOR_INLINE uintptr_t binning_allocate(umemVirtual *ctx, umemRequest const *request) {
  size_t bin = bin_for(ctx, request->alignment, request->nbytes);
  if (request->how == umemByRealloc) return binning_realloc(ctx, request, bin);
  umemValuesShare *room = reserve_entry(ctx);
  return room ? get_from(ctx, room, bin, request) : umem_null_of(ctx);
}
UMEM_ADAPTOR_ALLOCATES(binning_allocate)

/* ---- all of them ---- */

/* Bins first: their memory may come from the upstream. */
static void binning_trim(umemVirtual *ctx, size_t keep) {
  for (size_t count = bins_of(ctx)->count, i = 1; i <= count + 1; i++) {
    Call call;
    size_t number = i <= count ? i : 0;
    begin_call(&call, ctx, number);
    umem_trim(bin_context(ctx, number), keep);
    end_call(&call);
  }
}

static void free_lists(Bins *bins) {
  while (bins) {
    Bins *older = bins->older;
    free(bins);
    bins = older;
  }
}

static void binning_dtor(umemVirtual *ctx) {
  Binning *binning = binning_of(ctx);
  umemAdaptor_unlist(ctx);
  umemValues_fini(&binning->blocks);
  for (size_t i = 0; binning->adaptor.owns_upstream && i < binning->bins->count; i++) {
    Call call;
    begin_call(&call, ctx, binning->bins->sorted[i].number);
    umem_dtor(binning->bins->sorted[i].bin.ctx);
    end_call(&call);
  }
  free_lists(binning->bins);
  umemLock_destroy(&binning->lock);
  umemAdaptor_dtor(ctx);
}

/* ---- finding ---- */

/* The first of the bins, and of the upstream, whose block ctx has handed out. */
static umemSearch binning_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  for (size_t i = 0; i <= bins_of(ctx)->count; i++) {
    umemFound block = *found;
    size_t bin;
    bool busy;
    umemSearch search = umemLive_search(bin_context(ctx, i), adr, &block);
    if (search == umemSearchNone) continue;
    if (search == umemSearchBusy) return search;
    bool mine = umemValues_try_find(&binning_of(ctx)->blocks, block.adr, &bin, &busy);
    if (busy) return umemSearchBusy;
    if (!mine || bin != i) continue;
    *found = block;
    return search;
  }
  return umemSearchNone;
}

/* ---- construction ---- */

/* Whether copies and sets of upstream can be used for the blocks of bin, also in their order. */
static bool is_one_memory(umemVirtual *bin, umemVirtual *upstream) {
  if (umem_innermost(bin) == umem_innermost(upstream)) return true;
  unsigned either = bin->capabilities | upstream->capabilities;
  return !(either & (umemOrdered | umemOffsets)) && umem_is_same_device(bin, upstream);
}

/* Whether bin can be one of ctx; else a status. name: of the bin in messages. */
static bool check_bin(umemVirtual *ctx, umemBin const *bin, char const *name) {
  umemAttempt attempt;
  if (bin->ctx == ctx) return UMEM_FAIL(ctx, umemValueError, "%s is the context itself", name);
  umemAttempt_begin(&attempt);
  bool one = umem_check(bin->ctx) && is_one_memory(bin->ctx, umemAdaptor_upstream(ctx));
  umemAttempt_end(&attempt);
  if (record_as_own(ctx, &attempt)) return false;
  return one || UMEM_FAIL(ctx, umemValueError, "%s is not of the upstream's memory", name);
}

static uint32_t const of_any = umemFaultable | umemShared | umemKeeps | umemKeepsAll;

/* Reduces capabilities and alignment of ctx to those of the bin. */
static void limit_to_bin(umemVirtual *ctx, umemVirtual const *bin) {
  uint32_t either = (ctx->capabilities | bin->capabilities) & of_any;
  ctx->capabilities = (ctx->capabilities & bin->capabilities) | either;
  if (bin->alignment < ctx->alignment) ctx->alignment = bin->alignment;
}

/* Whether ctx keeps its promises with this bin, too; else a status. */
static bool keeps_promises(umemVirtual *ctx, umemVirtual const *bin) {
  uint32_t lacks = ctx->capabilities & ~bin->capabilities & ~of_any;
  uint32_t more = bin->capabilities & ~ctx->capabilities & of_any;
  if (bin->alignment < ctx->alignment)
    return UMEM_FAIL(ctx, umemValueError,
                     "the bin aligns to %zu bytes, and the context has promised %zu: name it in "
                     "the constructor",
                     bin->alignment, ctx->alignment);
  if (!lacks && !more) return true;
  return UMEM_FAIL(ctx, umemValueError,
                   "the bin cannot do what the context has promised: name it in the constructor");
}

static Bins *new_list(umemVirtual *ctx, size_t count) {
  Bins *bins = calloc(1, sizeof *bins + count * sizeof *bins->sorted);
  if (bins)
    bins->count = count;
  else
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a list of bins");
  return bins;
}

/* False with a status, and nothing to release, for bins that are not valid. */
static bool take_bins(umemVirtual *ctx, umemBin const *given, size_t count) {
  if (count && !given) return UMEM_FAIL(ctx, umemValueError, "the bins are NULL");
  for (size_t i = 0; i < count; i++) {
    char name[32];
    snprintf(name, sizeof name, "bin %zu", i);
    if (i && given[i].largest <= given[i - 1].largest)
      return UMEM_FAIL(ctx, umemValueError,
                       "the sizes do not rise: bin %zu has %zu bytes after %zu", i,
                       given[i].largest, given[i - 1].largest);
    if (!check_bin(ctx, &given[i], name)) return false;
  }
  Bins *bins = new_list(ctx, count);
  if (!bins) return false;
  for (size_t i = 0; i < count; i++) {
    bins->sorted[i].bin = given[i];
    bins->sorted[i].number = i + 1;
    limit_to_bin(ctx, given[i].ctx);
  }
  binning_of(ctx)->bins = bins;
  return true;
}

typedef struct Given {
  umemBin const *bins;
  size_t count;
} Given;

static bool binning_start(umemVirtual *ctx, void const *options) {
  Given const *given = options;
  bool taken = take_bins(ctx, given->bins, given->count);
  if (!taken) return false;
  umemValues_init(&binning_of(ctx)->blocks);
  umemLock_init(&binning_of(ctx)->lock);
  return true;
}

/* ---- later bins ---- */

/* Publishes a list with one bin more. Under the lock. */
static bool insert(umemVirtual *ctx, umemBin const *bin) {
  Binning *binning = binning_of(ctx);
  Bins *old = binning->bins;
  size_t at = 0;
  while (at < old->count && old->sorted[at].bin.largest < bin->largest) at++;
  if (at < old->count && old->sorted[at].bin.largest == bin->largest)
    return UMEM_FAIL(ctx, umemValueError, "there is a bin of %zu bytes", bin->largest);
  Bins *bins = new_list(ctx, old->count + 1);
  if (!bins) return false;
  for (size_t i = 0; i < old->count; i++) bins->sorted[i + (i >= at)] = old->sorted[i];
  bins->sorted[at].bin = *bin;
  bins->sorted[at].number = bins->count;
  bins->older = old;
  __atomic_store_n(&binning->bins, bins, __ATOMIC_RELEASE);
  return true;
}

static struct umemVtbl const binning_vtbl = {
    .dtor = binning_dtor,
    .aligned_origin = binning_aligned_origin,
    .trim = binning_trim,
    .find = binning_find,
    .upstream = umemAdaptor_upstream_method,
    UMEM_ADAPTOR_ALLOCATION_BY(binning_allocate),
    .leave = umemAdaptor_leave,
    UMEM_ADAPTOR_FREE_BY(binning_free),
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
};

umemKind const umem_binning_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemBinning, "binning", &binning_vtbl),
               .help = "each size from the context that is meant for it"},
    .label = "Binning",
    .impl_size = sizeof(Binning),
    .start = binning_start,
};

UMEM_ADAPTOR_CTORS(umemBinning, umem_binning_kind, (&(Given){bins, count}), void *upstream,
                   umemBin const *bins, size_t count)

umemStatusType umemBinning_add(umemBinning *ctx, umemBin const *bin) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_binning_kind);
  if (!self) return UMEM_RESULT();
  if (!bin) return umemVirtual_fail(self, umemValueError, "the bin is NULL");
  if (!check_bin(self, bin, "the bin") || !keeps_promises(self, bin->ctx)) return UMEM_RESULT();
  UMEM_HOLDING(); /* the program's hook must not be called under the lock */
  UMEM_LOCKED(&binning_of(self)->lock);
  insert(self, bin);
  return UMEM_RESULT();
}
