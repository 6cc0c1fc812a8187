/* layers.cpp - the questions that only one kind of place answers: figures, live blocks,
 * findings. */
#include "module.h"
#include "place.h"

#include <string>

/* The struct of the context; the library refuses one of another kind. */
template <class T> struct Layer {
  Use use;
  T *ctx;
  explicit Layer(Place &place) : use(place.open()), ctx(static_cast<T *>(use->ctx)) {}
};

static Dict stats_dict(umemStatsFigures const &f) {
  Dict d;
  d["current_bytes"] = f.current_bytes;
  d["peak_bytes"] = f.peak_bytes;
  d["total_bytes"] = f.total_bytes;
  d["current_count"] = f.current_count;
  d["peak_count"] = f.peak_count;
  d["total_count"] = f.total_count;
  return d;
}

static Dict stats_get(Place &place) {
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  Layer<umemStats> stats(place);
  unlocked([&] { umemStats_get(stats.ctx, &figures); });
  return stats_dict(figures);
}

static Dict stats_pop(Place &place) {
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  Layer<umemStats> stats(place);
  unlocked([&] { umemStats_pop(stats.ctx, &figures); });
  return stats_dict(figures);
}

static Dict pool_stats(Place &place) {
  umemPoolStats f = UMEM_POOL_STATS_INIT;
  Layer<umemPool> pool(place);
  unlocked([&] { umemPool_stats(pool.ctx, &f); });
  Dict d;
  d["used"] = f.used;
  d["used_peak"] = f.used_peak;
  d["reserved"] = f.reserved;
  d["reserved_peak"] = f.reserved_peak;
  d["largest_free"] = f.largest_free;
  d["fragmentation"] = f.fragmentation;
  d["blocks"] = f.blocks;
  d["allocations"] = f.allocations;
  d["chunks"] = f.chunks;
  d["factor"] = f.factor;
  return d;
}

static DictList pool_regions(Place &place) {
  Layer<umemPool> pool(place);
  umemPoolRegion r = UMEM_POOL_REGION_INIT;
  DictList list;
  for (uintptr_t from = 0; unlocked([&] { return umemPool_next_region(pool.ctx, from, &r); });
       from = r.adr + 1) {
    Dict d;
    d["address"] = r.adr;
    d["nbytes"] = r.nbytes;
    d["used"] = r.used;
    d["largest_free"] = r.largest_free;
    d["ranges"] = r.ranges;
    d["age"] = r.age == UMEM_UNKNOWN ? nb::object(nb::none()) : nb::cast(r.age);
    list.append(d);
  }
  return list;
}

static Dict fixed_stats(Place &place) {
  umemFixedStats f = UMEM_FIXED_STATS_INIT;
  Layer<umemFixed> fixed(place);
  unlocked([&] { umemFixed_stats(fixed.ctx, &f); });
  Dict d;
  d["block_size"] = f.block_size;
  d["blocks"] = f.blocks;
  d["blocks_held"] = f.blocks_held;
  d["reserved"] = f.reserved;
  d["reserved_peak"] = f.reserved_peak;
  d["chunks"] = f.chunks;
  return d;
}

static Dict debug_get(Place &place) {
  umemDebugFigures f = UMEM_DEBUG_FIGURES_INIT;
  Layer<umemDebug> debug(place);
  unlocked([&] { umemDebug_get(debug.ctx, &f); });
  Dict d;
  d["findings"] = f.faults;
  d["live_blocks"] = f.live_blocks;
  d["live_bytes"] = f.live_bytes;
  d["kept_blocks"] = f.kept_blocks;
  d["kept_bytes"] = f.kept_bytes;
  return d;
}

/* ---- live blocks ---- */

static nb::list addresses(void *const *trace, unsigned frames) {
  nb::list list;
  for (unsigned i = 0; i < frames; i++) list.append(reinterpret_cast<uintptr_t>(trace[i]));
  return list;
}

static Dict block_dict(umemTrackBlock const &block) {
  Dict d;
  d["address"] = block.adr;
  d["nbytes"] = block.nbytes;
  d["number"] = block.number;
  d["trace"] = addresses(block.trace, block.frames);
  return d;
}

static DictList track_blocks(Place &place) {
  Layer<umemTrack> track(place);
  DictList list;
  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  Call call;
  for (uintptr_t adr = 0;; adr = block.adr + 1) {
    bool found;
    {
      Unlock unlock(true);
      found = umemTrack_next(track.ctx, adr, &block);
    }
    call.end();
    if (!found) return list;
    list.append(block_dict(block));
  }
}

static nb::object track_find(Place &place, uintptr_t adr) {
  Layer<umemTrack> track(place);
  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  if (!unlocked([&] { return umemTrack_find(track.ctx, adr, &block); })) return nb::none();
  return block_dict(block);
}

/* ---- faults ---- */

static void fault_plan(Place &place, unsigned calls, int status, uint64_t nth, uint64_t times,
                       double share, uint64_t seed) {
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.calls = calls;
  plan.status = static_cast<umemStatusType>(status);
  plan.nth = nth;
  plan.times = times;
  plan.share = share;
  plan.seed = seed;
  Layer<umemFault> fault(place);
  unlocked([&] { umemFault_set_plan(fault.ctx, &plan); });
}

/* A question with one number as its answer. */
template <class T, auto function, class... Arguments>
static auto number(Place &place, Arguments... arguments) {
  Layer<T> layer(place);
  return unlocked([&] { return function(layer.ctx, arguments...); });
}

/* With the struct of its kind, as number() passes it. */
static void guarded_protect(umemGuarded *ctx, uintptr_t address, size_t nbytes, int access) {
  umemGuarded_protect(ctx, address, nbytes, static_cast<umemGuardedAccess>(access));
}
static umemGuardedAccess guarded_access(umemGuarded *ctx, uintptr_t address) {
  return umemGuarded_access(ctx, address);
}

static void binning_add(Place &place, size_t largest, Place &of_bin) {
  Layer<umemBinning> binning(place);
  Use bin = of_bin.open();
  umemBin const added = {largest, bin->ctx};
  unlocked([&] { umemBinning_add(binning.ctx, &added); });
  TablesLock lock(tables);
  binning.use->stand_over(bin.get());
}

void bind_layers(nb::module_ &m) {
  m.def("_binning_add", binning_add);
  m.def("_stats_get", stats_get);
  m.def("_stats_push", [](Place &place) { number<umemStats, umemStats_push>(place); });
  m.def("_stats_pop", stats_pop);
  m.def("_stats_reset", [](Place &place) { number<umemStats, umemStats_reset>(place); });
  m.def("_pool_stats", pool_stats);
  m.def("_pool_regions", pool_regions);
  m.def("_fixed_stats", fixed_stats);
  m.def("_limit_used", [](Place &place) { return number<umemLimit, umemLimit_used>(place); });
  m.def("_s3_abandon", [](Place &place) { number<umemS3, umemS3_abandon>(place); });
  m.def("_log_number", [](Place &place) { return number<umemLog, umemLog_number>(place); });
  m.def("_debug_get", debug_get);
  m.def("_debug_check", [](Place &place) { number<umemDebug, umemDebug_check>(place); });
  m.def("_track_blocks", track_blocks);
  m.def("_track_find", track_find, nb::arg("place"), nb::arg("address"),
        nb::sig("def _track_find(place: Place, address: int) -> dict[str, typing.Any] | None"));
  m.def("_fault_set_plan", fault_plan);
  m.def("_fault_count", [](Place &place, unsigned calls) {
    return number<umemFault, umemFault_count>(place, calls);
  });
  m.def("_fault_failures",
        [](Place &place) { return number<umemFault, umemFault_failures>(place); });
  m.def("_guarded_protect", [](Place &place, uintptr_t address, size_t nbytes, int access) {
    number<umemGuarded, guarded_protect>(place, address, nbytes, access);
  });
  m.def("_guarded_access", [](Place &place, uintptr_t address) {
    return static_cast<int>(number<umemGuarded, guarded_access>(place, address));
  });
  m.def("_guarded_report", [](bool on) { unlocked([&] { umemGuarded_report(on); }); });
  m.def(
      "_set_threads", [](unsigned count) { unlocked([&] { umem_set_threads(count); }); },
      nb::arg("count"));
  m.def("_get_threads", umem_get_threads);
}
