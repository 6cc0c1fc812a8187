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
template <int Width> inline constexpr index_t least_row = 8 * Width;

/* The most packs that a row of count elements can overlap, wherever it begins. */
template <int Width> constexpr index_t packs_of_row(index_t count) noexcept {
  return (count + 2 * (Width - 1)) / Width;
}

/* A row, starting at its element 0. All indices count but the last. */
template <class Type, int Rank, int... Nth, class... Indices>
__device__ Type *row_at(Type *data, Extents<Rank> const &strides,
                        std::integer_sequence<int, Nth...>, Indices... i) {
  return data +
         ((Nth < Rank - 1 ? static_cast<index_t>(i) * strides.at[Nth] : 0) + ... + index_t(0));
}

/* The number of the first element of a pack of a row, counted from element 0, which is number
 * (head + offset) % Width of pack 0. */
template <int Width> __device__ index_t pack_begin(index_t pack, index_t head, index_t offset) {
  return pack * Width - ((head + offset) & (Width - 1));
}

template <class Integer> __device__ index_t last_of(Integer i) { return static_cast<index_t>(i); }
template <class Integer, class... More> __device__ index_t last_of(Integer, More... j) {
  return last_of(j...);
}

} // namespace detail
} // namespace umem

#endif
