/* umem/pool.hpp - many blocks out of few, as handles: Pool, PoolOn, Fixed and Binning.
 *
 *     umem::Pool pool{umem::Cuda()};
 *     umem::Array<double, 2> u({51, 51}, pool);    // no call of the GPU's driver
 *
 * Each goes over another context, its upstream, and keeps that alive: handles of the upstream may be
 * dropped first. A constructor that fails throws, and the upstream can be used as before.
 *
 * A handle that is made from one of its own class is a copy, another handle of the same context. To go
 * over one's own kind, hand it over as what it is to others, a umem::Context. of() finds the outermost layer of
 * its class in a stack, such as umem::open returns, and makes a handle of it, which keeps the stack alive:
 *
 *     umem::Context place = umem::open("stats+pool+host:");
 *     umem::Pool pool = umem::Pool::of(place);
 *
 * Threads: as umem/pool.h, umem/pool_on.h, umem/fixed.h and umem/binning.h tell of the contexts. */
#ifndef UMEM_POOL_HPP
#define UMEM_POOL_HPP

#include <umem/context.hpp>

#include <umem/binning.h>
#include <umem/fixed.h>
#include <umem/pool.h>
#include <umem/pool_on.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace umem {

/* Blocks of all sizes, out of large chunks of the upstream: umemPool. */
class Pool : public Context {
public:
  explicit Pool(Context const &upstream, umemPoolOptions const &options = UMEM_POOL_OPTIONS_INIT)
      : Context(make<umemPool>(
            [&](umemPool *ctx) { return umemPool_ctor(ctx, upstream.c_context(), &options); },
            owner(upstream))) {}

  /* A handle of the outermost Pool in the stack of context; umem::type_error where there is none. */
  static Pool of(Context const &context) { return Pool(layer_of(context, "pool")); }

  umemPoolStats stats() const {
    umemPoolStats stats = UMEM_POOL_STATS_INIT;
    detail::check(umemPool_stats(reinterpret_cast<umemPool *>(c_context()), &stats));
    return stats;
  }

private:
  explicit Pool(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Blocks of a pool in the order of a queue, usually a umem::CudaAsync, whose copies it makes:
 * umemPoolOn. */
class PoolOn : public Context {
public:
  /* queue: in the memory of the pool; both are kept alive. */
  PoolOn(Pool const &pool, Context const &queue)
      : Context(make<umemPoolOn>(
            [&](umemPoolOn *ctx) {
              return umemPoolOn_ctor(ctx, reinterpret_cast<umemPool *>(pool.c_context()),
                                     queue.c_context());
            },
            std::make_shared<std::pair<Pool, Context>>(pool, queue))) {}

  /* A handle of the outermost PoolOn in the stack of context; umem::type_error where there is none. */
  static PoolOn of(Context const &context) { return PoolOn(layer_of(context, "pool-on")); }

private:
  explicit PoolOn(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Blocks of one size, without a lock: umemFixed. */
class Fixed : public Context {
public:
  /* block_size: in bytes; larger requests are umem::memory_error. */
  Fixed(Context const &upstream, std::size_t block_size,
        umemFixedOptions const &options = UMEM_FIXED_OPTIONS_INIT)
      : Context(make<umemFixed>(
            [&](umemFixed *ctx) {
              return umemFixed_ctor(ctx, upstream.c_context(), block_size, &options);
            },
            owner(upstream))) {}

  /* A handle of the outermost Fixed in the stack of context; umem::type_error where there is none. */
  static Fixed of(Context const &context) { return Fixed(layer_of(context, "fixed")); }

  umemFixedStats stats() const {
    umemFixedStats stats = UMEM_FIXED_STATS_INIT;
    detail::check(umemFixed_stats(reinterpret_cast<umemFixed *>(c_context()), &stats));
    return stats;
  }

private:
  explicit Fixed(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Where requests of at most largest bytes go. */
struct Bin {
  std::size_t largest;
  Context context;
};

/* Each request goes to the context that is meant for its size, larger ones to the upstream:
 * umemBinning. */
class Binning : public Context {
public:
  /* bins: by rising size, all of the upstream's memory; kept alive as the upstream is. */
  Binning(Context const &upstream, std::vector<Bin> const &bins)
      : Context(make<umemBinning>([&](umemBinning *ctx) { return construct(ctx, upstream, bins); },
                                  std::make_shared<std::vector<Bin>>(with(bins, upstream)))) {}

  /* A handle of the outermost Binning in the stack of context; umem::type_error where there is none. */
  static Binning of(Context const &context) { return Binning(layer_of(context, "binning")); }

private:
  explicit Binning(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  static std::vector<Bin> with(std::vector<Bin> all, Context const &upstream) {
    all.push_back({0, upstream});
    return all;
  }

  static umemStatusType construct(umemBinning *ctx, Context const &upstream,
                                  std::vector<Bin> const &bins) {
    std::vector<umemBin> c_bins;
    c_bins.reserve(bins.size());
    for (Bin const &bin : bins) c_bins.push_back({bin.largest, bin.context.c_context()});
    return umemBinning_ctor(ctx, upstream.c_context(), c_bins.data(), c_bins.size());
  }
};

} // namespace umem

#endif
