/* trace_heap.h - what serves a trace: pools of umem and others. */
#ifndef UMEM_BENCH_TRACE_HEAP_H
#define UMEM_BENCH_TRACE_HEAP_H

#include "trace.h"

#include <functional>
#include <memory>
#include <optional>

namespace bench {

/* Of a heap over pages that are mapped one by one. A large page counts as one. */
struct PageCounts {
  std::uint64_t mapped = 0, moved = 0, unmapped = 0;
};

class TraceHeap {
public:
  virtual ~TraceHeap() = default;
  virtual bool alloc(std::uint32_t block, std::uint64_t size) = 0; /* false: no memory */
  virtual void free(std::uint32_t block) = 0;
  virtual std::uint64_t reserved_peak() = 0;           /* bytes, the most ever */
  virtual std::uint64_t upstream_calls() { return 0; } /* allocations and frees there */
  virtual PageCounts pages() { return {}; }
};

using TraceHeaps =
    std::function<std::unique_ptr<TraceHeap>(Trace const &, std::uint64_t limit)>; /* 0: no limit */

/* Options of a pool: those of umemPoolOptions. */
struct PoolWish {
  std::size_t spare = 10, growth = 0;
};

/* umem's pool over addresses without memory, which are handed out in units of 2 MiB as cudaMalloc
 * does. */
std::unique_ptr<TraceHeap> pool_of_addresses(Trace const &trace, std::uint64_t limit);
/* umem's pool over pages of addresses without memory, which it maps and moves. */
TraceHeaps pool_of_pages(PoolWish wish = {});
/* umem's pool over a context of umem, by its name. */
TraceHeaps pool_over(std::string name, PoolWish wish = {});
/* One arena that grows at its end. The smallest free range that suffices serves, the lowest of
 * several. */
std::unique_ptr<TraceHeap> best_fit(Trace const &trace, std::uint64_t limit);
#ifdef UMEM_BENCH_CUDA
/* cudaMallocAsync on a pool of its own that gives nothing back by itself. Without a limit only. */
std::unique_ptr<TraceHeap> cuda_pool(Trace const &trace, std::uint64_t limit);
#endif
#ifdef UMEM_BENCH_RMM
/* RMM's pool over cudaMalloc, which begins with 1 MiB. Without a limit only. */
std::unique_ptr<TraceHeap> rmm_pool(Trace const &trace, std::uint64_t limit);
#endif

struct TraceResult {
  bool served;                    /* to the end */
  double factor;                  /* most bytes reserved over most bytes live */
  double seconds;                 /* of a step */
  double calls;                   /* of the upstream, for each allocation */
  double mapped, moved, unmapped; /* pages, for each allocation */
};

TraceResult run_trace(Trace const &trace, TraceHeap &heap);

/* The least limit that the trace is served under, over most bytes live; within 0.2 %. */
std::optional<double> least_limit(Trace const &trace, TraceHeaps const &heaps);

} // namespace bench

#endif
