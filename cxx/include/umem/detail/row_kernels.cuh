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
template <int V> inline constexpr index_t least_row = 8 * V;

/* The most packs that a row of count elements can overlap, wherever it begins. */
template <int V> constexpr index_t packs_of_row(index_t count) noexcept {
  return (count + 2 * (V - 1)) / V;
}

/* A row, starting at its element 0. All indices count but the last. */
template <class T, int N, int... K, class... I>
__device__ T *row_at(T *data, Extents<N> const &strides, std::integer_sequence<int, K...>, I... i) {
  return data + ((K < N - 1 ? static_cast<index_t>(i) * strides.at[K] : 0) + ... + index_t(0));
}

/* The number of the first element of a pack of a row, counted from element 0, which is number
 * (head + offset) % V of pack 0. */
template <int V> __device__ index_t pack_begin(index_t pack, index_t head, index_t offset) {
  return pack * V - ((head + offset) & (V - 1));
}

template <class I> __device__ index_t last_of(I i) { return static_cast<index_t>(i); }
template <class I, class... J> __device__ index_t last_of(I, J... j) { return last_of(j...); }

} // namespace detail
} // namespace umem

#endif
