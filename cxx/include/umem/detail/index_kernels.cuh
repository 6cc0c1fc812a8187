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

template <class Index, int Rank, class Function>
__global__ void __launch_bounds__(block_threads)
    index_tiles(Function functor, Tiles<Rank, index_rows> tiles) {
  TileSpot<Rank> spot = tiles.spot(blockIdx.x);
#pragma unroll
  for (int row = 0; row < index_rows; row++)
    if (tiles.has(spot, row)) tiles.template invoke<Index>(functor, spot, row);
}

/* A function without an index as a function of one index that is always 0. */
template <class Function> struct WithoutIndex {
  Function functor;
  template <class Integer> __device__ decltype(auto) operator()(Integer) { return functor(); }
};

/* The lead of the tiles for a function. */
template <class Function, int Rank> int lead_for(Function const &, Extents<Rank> const &) noexcept {
  return 0;
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* functor(i, j, ...) for begin <= (i, j, ...) < end. */
template <class Index, int Rank, class Function>
void device_indices(DevicePlace const &place, Function const &functor, Extents<Rank> const &begin,
                    Extents<Rank> const &end) {
  if constexpr (Rank == 0) {
    device_indices<Index>(place, WithoutIndex<Function>{functor}, Extents<1>(), Extents<1>{1});
  } else {
    Work work(place);
    in_launches(begin, end, [&](Extents<Rank> const &low, Extents<Rank> const &high) {
      Tiles<Rank, index_rows> tiles(low, high, lead_for(functor, low));
      launch(place, index_tiles<Index, Rank, Function>, tiles.count, tiles.threads, functor, tiles);
    });
    work.finish();
  }
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
