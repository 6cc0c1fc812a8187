/* umem/detail/tiles.cuh - ranges of indices cut into tiles, one for each block of threads.
 * Neighbouring threads have neighbouring last indices, and each thread has several indices of
 * the dimension before. Indices are decoded once per block. */
#ifndef UMEM_DETAIL_TILES_CUH
#define UMEM_DETAIL_TILES_CUH

#include <umem/detail/cuda_call.cuh>
#include <umem/detail/divider.hpp>
#include <umem/extents.hpp>

#include <cstdint>
#include <utility>

namespace umem {
namespace detail {

/* How many elements before the first element of a range the line of the memory of the GPU
 * begins: threads that begin there write whole lines. 0 if the last dimension is strided. */
template <class Type, int Rank>
int line_lead(Type *data, Extents<Rank> const &strides, Extents<Rank> const &begin) noexcept {
  constexpr std::uintptr_t line_bytes = 128;
  if (line_bytes % sizeof(Type) != 0 || strides.at[Rank - 1] != 1) return 0;
  auto first = reinterpret_cast<std::uintptr_t>(data);
  for (int k = 0; k < Rank; k++)
    first += static_cast<std::uintptr_t>(begin.at[k] * strides.at[k]) * sizeof(Type);
  return static_cast<int>(first % line_bytes / sizeof(Type));
}

/* The position of a thread in a tile: its first indices, relative to the begin of the range. */
template <int Rank> struct TileSpot { std::int32_t at[Rank]; };

/* At most launch_elements indices; each thread has Rows of them. */
template <int Rank, int Rows> struct Tiles {
  Extents<Rank> begin;
  std::int32_t extents[Rank];
  Divider counts[Rank]; /* of tiles in each dimension */
  std::uint32_t count = 1;
  std::int32_t lead = 0; /* how far before the range the first tiles begin in the last dimension */
  dim3 threads;

  /* Uses the wished lead, or none if it needed over a quarter more tiles. */
  Tiles(Extents<Rank> const &begin_, Extents<Rank> const &end, int wished_lead) : begin(begin_) {
    for (int k = 0; k < Rank; k++) extents[k] = static_cast<std::int32_t>(end.at[k] - begin.at[k]);
    choose_threads();
    for (int k = 0; k < Rank; k++) {
      unsigned tiles = blocks_for(extents[k], length(k));
      if (k == Rank - 1) {
        unsigned led = blocks_for(index_t(extents[k]) + wished_lead, length(k));
        if (led - tiles <= tiles / 4) {
          tiles = led;
          lead = wished_lead;
        }
      }
      counts[k] = Divider(tiles);
      count *= tiles;
    }
  }

  __device__ TileSpot<Rank> spot(std::uint32_t tile) const {
    TileSpot<Rank> spot;
#pragma unroll
    for (int k = Rank - 1; k >= 0; k--)
      spot.at[k] = static_cast<std::int32_t>(k > 0 ? counts[k].take_remainder(tile) : tile);
    if constexpr (Rank == 1) {
      spot.at[0] = spot.at[0] * Rows * step + int(threadIdx.x) - lead;
    } else {
      spot.at[Rank - 1] = spot.at[Rank - 1] * int(blockDim.x) + int(threadIdx.x) - lead;
      spot.at[Rank - 2] = (spot.at[Rank - 2] * int(blockDim.y) + int(threadIdx.y)) * Rows;
    }
    if constexpr (Rank > 2)
      spot.at[Rank - 3] = spot.at[Rank - 3] * int(blockDim.z) + int(threadIdx.z);
    return spot;
  }

  /* Whether a row of the thread is in the range. */
  __device__ bool has(TileSpot<Rank> const &spot, int row) const {
    if constexpr (Rank > 2)
      if (spot.at[Rank - 3] >= extents[Rank - 3]) return false;
    if constexpr (Rank > 1)
      if (spot.at[Rank - 1] < 0 || spot.at[Rank - 1] >= extents[Rank - 1]) return false;
    std::int32_t at = spot.at[run] + row * step;
    return (Rank > 1 || at >= 0) && at < extents[run];
  }
  __device__ bool has_all(TileSpot<Rank> const &spot) const {
    return has(spot, 0) && has(spot, Rows - 1);
  }

  /* Calls functor(i, j, ...) with the indices of a row of the thread. */
  template <class Index, class Function>
  __device__ decltype(auto) invoke(Function &&functor, TileSpot<Rank> const &spot, int row) const {
    return invoke<Index>(functor, spot, row, std::make_integer_sequence<int, Rank>());
  }

private:
  /* The dimension along which the rows of a thread follow each other, and their distance.
   * Neighbours share what they read; in the last dimension neighbours belong to neighbouring
   * threads. */
  static constexpr int run = Rank > 1 ? Rank - 2 : 0;
  static constexpr int step = Rank > 1 ? 1 : static_cast<int>(block_threads);

  template <class Index, class Function, int... Nth>
  __device__ decltype(auto) invoke(Function &functor, TileSpot<Rank> const &spot, int row,
                                   std::integer_sequence<int, Nth...>) const {
    return functor(
        static_cast<Index>(begin.at[Nth] + spot.at[Nth] + (Nth == run ? row * step : 0))...);
  }

  /* Rows of 128 threads share most of the elements that a stencil reads in the cache of their
   * processor. If the last dimensions are short, threads move from one dimension to the next. */
  void choose_threads() {
    if constexpr (Rank == 1) {
      threads = dim3(block_threads, 1, 1);
    } else {
      unsigned x = power_of_2(static_cast<unsigned>(extents[Rank - 1]), 128);
      while (x > 32 && waste_of(x) > extents[Rank - 1] / 8) x /= 2;
      unsigned y = power_of_2(blocks_for(extents[Rank - 2], Rows), block_threads / x);
      unsigned z = 1;
      if constexpr (Rank > 2)
        z = power_of_2(static_cast<unsigned>(extents[Rank - 3]), block_threads / (x * y));
      if (z > 64) z = 64; /* CUDA's limit */
      threads = dim3(block_threads / (y * z), y, z);
    }
  }

  /* How many threads of a row of tiles, each x wide, are beyond its end. */
  std::int32_t waste_of(unsigned x) const noexcept {
    return static_cast<std::int32_t>(blocks_for(extents[Rank - 1], x) * x) - extents[Rank - 1];
  }

  /* The first power of 2 that is not below count; or most, itself one. */
  static unsigned power_of_2(unsigned count, unsigned most) noexcept {
    unsigned power = 1;
    while (power < count && power < most) power *= 2;
    return power;
  }

  index_t length(int k) const noexcept {
    if (Rank == 1) return index_t(threads.x) * Rows;
    if (k == Rank - 1) return threads.x;
    if (k == Rank - 2) return index_t(threads.y) * Rows;
    return k == Rank - 3 ? index_t(threads.z) : 1;
  }
};

} // namespace detail
} // namespace umem

#endif
