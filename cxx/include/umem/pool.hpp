/* umem/pool.hpp - handles of pools, which make many blocks of few: Pool, PoolOn, Fixed and Binning.
 *
 *     umem::Pool pool{umem::Cuda()};
 *     umem::Array<double, 2> u({51, 51}, pool);    // no call of the GPU's driver
 *
 * Each goes over another context, its upstream, and keeps that alive: handles of the upstream may
 * be dropped first. A constructor that fails throws, and the upstream can be used as before.
 *
 * A handle that is made from one of its own class is a copy, another handle of the same context. To
 * go over one's own kind, hand it over as what it is to others, a umem::Context. of() finds the
 * outermost layer of its class in a stack, such as umem::open returns, and makes a handle of it,
 * which keeps the stack alive:
 *
 *     umem::Context stack = umem::open("stats+pool+host:");
 *     umem::Pool pool = umem::Pool::of(stack);
 *
 * Threads: see umem/pool.h, umem/pool_on.h, umem/fixed.h and umem/binning.h. */
#ifndef UMEM_POOL_HPP
#define UMEM_POOL_HPP

#include <umem/context.hpp>

#include <mutex>

namespace umem {

/* Blocks of all sizes, cut from large chunks of the upstream: umemPool. */
class Pool : public Context {
public:
  explicit Pool(Context const &upstream, umemPoolOptions const &options = UMEM_POOL_OPTIONS_INIT)
      : Context(make_over(upstream, umemPool_ctor, &options)) {}

  umemPoolStats stats() const {
    return detail::filled<umemPoolStats>(UMEM_POOL_STATS_INIT, umemPool_stats, c_struct());
  }

  /* What is where, in the order of the addresses: umemPool_next_region. */
  std::vector<umemPoolRegion> regions() const {
    std::vector<umemPoolRegion> all;
    umemPoolRegion region = UMEM_POOL_REGION_INIT;
    auto pool = c_struct();
    for (std::uintptr_t from = 0; umemPool_next_region(pool, from, &region); from = region.adr + 1)
      all.push_back(region);
    return all;
  }

  UMEM_KIND_OF_CONTEXT(Pool, "pool")
};

/* Blocks of a pool in the order of a queue, usually a umem::CudaAsync, whose copies it makes:
 * umemPoolOn. */
class PoolOn : public Context {
public:
  /* queue: a context with the same memory as the pool. The view keeps the pool and queue alive. */
  PoolOn(Pool const &pool, Context const &queue)
      : Context(make_by(std::make_shared<std::pair<Pool, Context>>(pool, queue), umemPoolOn_ctor,
                        reinterpret_cast<umemPool *>(pool.c_context()), queue.c_context())) {}

  UMEM_KIND_OF_CONTEXT(PoolOn, "pool-on")
};

/* Blocks of one size, without a lock: umemFixed. */
class Fixed : public Context {
public:
  /* block_size: in bytes; a larger request throws umem::memory_error. */
  Fixed(Context const &upstream, std::size_t block_size,
        umemFixedOptions const &options = UMEM_FIXED_OPTIONS_INIT)
      : Context(make_over(upstream, umemFixed_ctor, block_size, &options)) {}

  umemFixedStats stats() const {
    return detail::filled<umemFixedStats>(UMEM_FIXED_STATS_INIT, umemFixed_stats, c_struct());
  }

  UMEM_KIND_OF_CONTEXT(Fixed, "fixed")
};

/* A context for requests of at most `largest` bytes. */
struct Bin {
  std::size_t largest;
  Context context;
};

/* Passes each request to the context for its size, larger ones to the upstream: umemBinning. */
class Binning : public Context {
public:
  /* bins: in rising order of size, all with the same memory as the upstream; the handle keeps them
   * alive, too. */
  Binning(Context const &upstream, std::vector<Bin> const &bins)
      : Binning(upstream, bins, std::make_shared<Kept>()) {}

  /* Adds a bin for requests from now on, and keeps its context alive: umemBinning_add. bin: the
   * context, and the largest request that goes there. Throws
   * umem::not_supported_error for a handle of of(), which cannot keep it. */
  void add(Bin const &bin) {
    if (!kept_) throw not_supported_error("Binning::add: the handle of of() cannot keep a bin");
    std::lock_guard<std::mutex> lock(kept_->mutex);
    kept_->bins.push_back(bin); /* before requests go there */
    umemBin const c_bin{bin.largest, bin.context.c_context()};
    umemStatusType const status = umemBinning_add(c_struct(), &c_bin);
    if (status != umemOK) kept_->bins.pop_back();
    detail::check_status(status);
  }

  UMEM_KIND_OF_CONTEXT(Binning, "binning")

  /* The contexts that the C context uses. */
  struct Kept {
    std::mutex mutex;
    std::vector<Bin> bins;
  };

  Binning(Context const &upstream, std::vector<Bin> const &bins, std::shared_ptr<Kept> const &kept)
      : Context(make_by(kept, umemBinning_ctor, upstream.c_context(), c_bins_of(bins).data(),
                        bins.size())),
        kept_(kept) {
    kept->bins = bins;
    kept->bins.push_back({0, upstream});
  }

  std::shared_ptr<Kept> kept_;

  static std::vector<umemBin> c_bins_of(std::vector<Bin> const &bins) {
    std::vector<umemBin> c_bins;
    for (Bin const &bin : bins) c_bins.push_back({bin.largest, bin.context.c_context()});
    return c_bins;
  }
};

} // namespace umem

#endif
