/* umem/detail/row_kernels.cuh - elements of views that are contiguous within each row, but not
 * from row to row, such as interiors of views with ghost cells: functions of the indices of rows
 * and, as the last index, of the packs in a row. */
#ifndef UMEM_DETAIL_ROW_KERNELS_CUH
#define UMEM_DETAIL_ROW_KERNELS_CUH

#include <umem/detail/pack.cuh>
#include <umem/extents.hpp>

#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* Rows with fewer elements gain nothing from packs. */
template <int V> inline constexpr index least_row = 8 * V;

/* The most packs that a row of count elements can overlap, wherever it begins. */
template <int V> constexpr index packs_of_row(index count) noexcept {
  return (count + 2 * (V - 1)) / V;
}

/* A row, starting at its element 0. All indices count but the last. */
template <class T, int N, int... K, class... I>
__device__ T *row_at(T *data, Extents<N> const &strides, std::integer_sequence<int, K...>, I... i) {
  return data + ((K < N - 1 ? static_cast<index>(i) * strides.at[K] : 0) + ... + index(0));
}

/* The number of the first element of a pack of a row, counted from element 0, which is number
 * (head + offset) % V of pack 0. */
template <int V> __device__ index pack_begin(index pack, index head, index offset) {
  return pack * V - ((head + offset) & (V - 1));
}

template <class I> __device__ index last_of(I i) { return static_cast<index>(i); }
template <class I, class... J> __device__ index last_of(I, J... j) { return last_of(j...); }

/* ---- f(element, i, j, ...) ---- */

template <class Index, int V, class T, int N, class F> struct IndexedRows {
  F f;
  T *data; /* element (0, ..., 0) */
  Extents<N> strides;
  index begin, count; /* of the elements of a row */
  int head;           /* the number of element (0, ..., 0, begin) in pack 0 */

  template <class... I> __device__ void operator()(I... i) {
    T *row = row_at(data, strides, std::make_integer_sequence<int, N>(), i...);
    Extents<N> at(static_cast<index>(i)...);
    index first = pack_begin<V>(at.at[N - 1], head, row - data);
    row += begin;
    if (first >= 0 && first + V <= count) {
      auto pack = load_pack<V>(row + first);
#pragma unroll
      for (int e = 0; e < V; e++) {
        T &element = pack.at[e];
        at.at[N - 1] = begin + first + e;
        call(element, at, std::make_integer_sequence<int, N>());
      }
      if constexpr (!std::is_const_v<T>) store_pack<V>(row + first, pack);
    } else { /* the first or the last pack */
      auto pack = load_part<V>(row, first, count);
#pragma unroll
      for (int e = 0; e < V; e++) {
        T &element = pack.at[e];
        at.at[N - 1] = begin + first + e;
        if (first + e >= 0 && first + e < count)
          call(element, at, std::make_integer_sequence<int, N>());
      }
      if constexpr (!std::is_const_v<T>) store_part<V>(row, first, count, pack);
    }
  }

private:
  template <int... K>
  __device__ void call(T &element, Extents<N> const &at, std::integer_sequence<int, K...>) {
    f(element, static_cast<Index>(at.at[K])...);
  }
};

} // namespace detail
} // namespace umem

#endif
