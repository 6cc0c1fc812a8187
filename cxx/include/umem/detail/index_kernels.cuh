/* umem/detail/index_kernels.cuh - kernels that call a function with indices, and with the
 * elements at these indices. */
#ifndef UMEM_DETAIL_INDEX_KERNELS_CUH
#define UMEM_DETAIL_INDEX_KERNELS_CUH

#include <umem/detail/cuda_call.cuh>
#include <umem/detail/pack.cuh>
#include <umem/detail/row_kernels.cuh>
#include <umem/detail/tiles.cuh>
#include <umem/view.hpp>

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

/* ---- elements of contiguous views with their indices ---- */

/* Converts the number of an element to its indices, and steps to the next element. */
template <int N> struct Walk {
  Extents<N> begin; /* the indices of element 0 */
  Divider extents[N];

  __device__ void start(std::uint32_t n, std::uint32_t (&at)[N]) const {
#pragma unroll
    for (int k = N - 1; k > 0; k--) at[k] = extents[k].take_remainder(n);
    at[0] = n;
  }
  __device__ void next(std::uint32_t (&at)[N]) const {
#pragma unroll
    for (int k = N - 1; k > 0; k--) {
      if (++at[k] != extents[k].divisor) return;
      at[k] = 0;
    }
    at[0]++;
  }
  template <class Index, class T, class F, int... K>
  __device__ void call(F &f, T &element, std::uint32_t const (&at)[N],
                       std::integer_sequence<int, K...>) const {
    f(element, static_cast<Index>(begin.at[K] + at[K])...);
  }
  template <class Index, class T, class F>
  __device__ void call(F &f, T &element, std::uint32_t const (&at)[N]) const {
    call<Index>(f, element, at, std::make_integer_sequence<int, N>());
  }
};

/* Element 0 is number `head` of pack 0. */
template <class Index, int V, int N, class T, class F>
__global__ void __launch_bounds__(block_threads)
    indexed_packs(F f, T *data, std::uint32_t count, std::uint32_t head, Walk<N> walk) {
  std::uint32_t end =
      (blockIdx.x * block_threads + threadIdx.x + 1) * V; /* of the pack, from head */
  std::uint32_t at[N];
  if (end - V >= head && end - head <= count) {
    std::uint32_t first = end - V - head;
    auto pack = load_pack<V>(data + first);
    walk.start(first, at);
#pragma unroll
    for (int e = 0; e < V; e++) {
      T &element = pack.at[e];
      walk.template call<Index>(f, element, at);
      if (e < V - 1) walk.next(at);
    }
    if constexpr (!std::is_const_v<T>) store_pack<V>(data + first, pack);
  } else { /* the first or the last pack */
    for (std::uint32_t n = end - V; n < end; n++) {
      if (n < head || n - head >= count) continue;
      walk.start(n - head, at);
      walk.template call<Index>(f, data[n - head], at);
    }
  }
}

template <class Index, int V, int N, class T, class F>
void launch_indexed_packs(DevicePlace const &place, F const &f, T *data, int head,
                          Extents<N> const &begin, Extents<N> const &end) {
  Walk<N> walk;
  walk.begin = begin;
  index count = 1;
  for (int k = 0; k < N; k++) {
    walk.extents[k] = Divider(static_cast<std::uint32_t>(end.at[k] - begin.at[k]));
    count *= end.at[k] - begin.at[k];
  }
  launch(place, indexed_packs<Index, V, N, T, F>, blocks_for(count + head, block_threads * V),
         block_threads, f, data, static_cast<std::uint32_t>(count),
         static_cast<std::uint32_t>(head), walk);
}

/* f(element, i, j, ...) as a function of indices alone. */
template <class T, int N, class F> struct ElementAt {
  F f;
  T *data;
  Extents<N> strides;

  template <class... I> __device__ decltype(auto) operator()(I... i) {
    return f(data[offset(std::make_integer_sequence<int, N>(), static_cast<index>(i)...)], i...);
  }

private:
  template <int... K, class... I>
  __device__ index offset(std::integer_sequence<int, K...>, I... i) const {
    return ((i * strides.at[K]) + ... + index(0));
  }
};

/* The lead of the tiles for a function. */
template <class F, int N> int lead_for(F const &, Extents<N> const &) noexcept { return 0; }
template <class T, int N, class F>
int lead_for(ElementAt<T, N, F> const &f, Extents<N> const &begin) noexcept {
  return line_lead(f.data, f.strides, begin);
}

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

/* f(element, i, j, ...) for begin <= (i, j, ...) < end, for elements that do not all follow each
 * other. */
template <class Index, class T, int N, class F>
void device_indexed_rows(DevicePlace const &place, F const &f, View<T, N> const &view,
                         Extents<N> begin, Extents<N> end) {
  constexpr int V = pack_size<T>;
  if constexpr (N > 0 && V > 1) {
    index first = begin.at[N - 1], count = end.at[N - 1] - first;
    int head = pack_head<V>(view.data + first);
    if (head >= 0 && view.strides.at[N - 1] == 1 && count >= least_row<V>) {
      IndexedRows<Index, V, T, N, F> call{f, view.data, view.strides, first, count, head};
      begin.at[N - 1] = 0;
      end.at[N - 1] = packs_of_row<V>(count);
      return device_indices<index>(place, call, begin, end);
    }
  }
  device_indices<Index>(place, ElementAt<T, N, F>{f, view.data, view.strides}, begin, end);
}

/* f(element, i, j, ...) for begin <= (i, j, ...) < end. */
template <class Index, class T, int N, class F>
void device_indexed(DevicePlace const &place, F const &f, View<T, N> const &view,
                    Extents<N> const &begin, Extents<N> const &end) {
  bool is_whole = begin == Extents<N>() && end == view.extents;
  if (N == 0 || !is_whole || !view.is_contiguous())
    return device_indexed_rows<Index>(place, f, view, begin, end);
  if constexpr (N > 0) {
    Work work(place);
    in_launches(Extents<N>(), view.extents, [&](Extents<N> const &low, Extents<N> const &high) {
      constexpr int V = pack_size<T>;
      T *first = view.data;
      Extents<N> strides = c_strides(view.extents);
      for (int k = 0; k < N; k++) first += low.at[k] * strides.at[k];
      int head = pack_head<V>(first);
      if (head >= 0)
        launch_indexed_packs<Index, V>(place, f, first, head, low, high);
      else
        launch_indexed_packs<Index, 1>(place, f, first, 0, low, high);
    });
    work.finish();
  }
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail
} // namespace umem

#endif
