/* umem/detail/index_kernels.cuh - kernels that call a function with indices. */
#ifndef UMEM_DETAIL_INDEX_KERNELS_CUH
#define UMEM_DETAIL_INDEX_KERNELS_CUH

#include <umem/detail/cuda_call.cuh>
#include <umem/detail/tiles.cuh>
#include <umem/extents.hpp>

#include <cstdint>
#include <utility>

namespace umem {
namespace detail {

/* ---- indices ---- */

inline constexpr int index_rows = 4;

template <class Index, int N, class F>
__global__ void __launch_bounds__(block_threads) index_tiles(F f, Tiles<N, index_rows> tiles) {
  TileSpot<N> spot = tiles.spot(blockIdx.x);
#pragma unroll
  for (int row = 0; row < index_rows; row++)
    if (tiles.has(spot, row)) tiles.template call<Index>(f, spot, row);
}

/* A function without an index as a function of one index that is always 0. */
template <class F> struct WithoutIndex {
  F f;
  template <class I> __device__ decltype(auto) operator()(I) { return f(); }
};

/* The lead of the tiles for a function. */
template <class F, int N> int lead_for(F const &, Extents<N> const &) noexcept { return 0; }

inline namespace UMEM_LAUNCH_NAMESPACE {

/* f(i, j, ...) for begin <= (i, j, ...) < end. */
template <class Index, int N, class F>
void device_indices(DevicePlace const &place, F const &f, Extents<N> const &begin,
                    Extents<N> const &end) {
  if constexpr (N == 0) {
    device_indices<Index>(place, WithoutIndex<F>{f}, Extents<1>(), Extents<1>{1});
  } else {
    Work work(place);
    in_launches(begin, end, [&](Extents<N> const &low, Extents<N> const &high) {
      Tiles<N, index_rows> tiles(low, high, lead_for(f, low));
      launch(place, index_tiles<Index, N, F>, tiles.count, tiles.threads, f, tiles);
    });
    work.finish();
  }
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
