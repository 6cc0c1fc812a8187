/* umem/detail/strided_layout.hpp - the positions of the elements of a View or a Part, apart from
 * their memory. */
#ifndef UMEM_DETAIL_STRIDED_LAYOUT_HPP
#define UMEM_DETAIL_STRIDED_LAYOUT_HPP

#include <umem/config.hpp>
#include <umem/extents.hpp>
#include <umem/ghosts.hpp>
#include <umem/view_error.hpp>

namespace umem {
namespace detail {

/* How many elements separate the one with indices 0 from the one with indices i. */
template <int N>
UMEM_FUNCTION constexpr index distance(Extents<N> const &i, Extents<N> const &strides) noexcept {
  index result = 0;
  for (int k = 0; k < N; k++) result += i.at[k] * strides.at[k];
  return result;
}

/* Extents, strides, ghost cells and the position of element (0, ..., 0). Numbers count elements. Functions
 * that return layouts throw on the host and assert on the device. */
template <int N> struct StridedLayout {
  Extents<N> extents; /* of the interior, which ghost cells are not part of */
  Extents<N> strides; /* of any sign */
  Ghosts<N> ghosts;
  index offset = 0; /* of element (0, ..., 0) */

  /* The indices of dimension k are in [low(k), high(k)). */
  UMEM_FUNCTION constexpr index low(int k) const noexcept { return -ghosts.below.at[k]; }
  UMEM_FUNCTION constexpr index high(int k) const noexcept {
    return extents.at[k] + ghosts.above.at[k];
  }

  /* Indices begin, begin + step, ... below end of dimension k become 0, 1, ... . The result has no ghost
   * cells in that dimension. */
  UMEM_FUNCTION constexpr StridedLayout slice(int k, index begin, index end, index step) const {
    UMEM_CHECK(is_dimension(k, N), raise_dimension(k, N));
    UMEM_CHECK(step > 0 && begin >= low(k) && begin <= end && end <= high(k),
               raise_slice(begin, end, step, k, low(k), high(k)));
    StridedLayout result = *this;
    if (begin < end) result.offset += begin * strides.at[k]; /* else there is no such element */
    result.extents.at[k] = (end - begin) / step + ((end - begin) % step != 0);
    if (result.extents.at[k] > 1) result.strides.at[k] *= step; /* else the product may overflow */
    result.ghosts.below.at[k] = result.ghosts.above.at[k] = 0;
    return result;
  }

  /* The elements with index i in dimension k, without that dimension. */
  UMEM_FUNCTION constexpr StridedLayout<N - 1> select(int k, index i) const {
    UMEM_CHECK(is_dimension(k, N), raise_dimension(k, N));
    UMEM_CHECK(i >= low(k) && i < high(k), raise_index(i, k, low(k), high(k)));
    StridedLayout<N - 1> result;
    result.offset = offset + i * strides.at[k];
    for (int j = 0; j < N - 1; j++) {
      int from = j + (j >= k);
      result.extents.at[j] = extents.at[from];
      result.strides.at[j] = strides.at[from];
      result.ghosts.below.at[j] = ghosts.below.at[from];
      result.ghosts.above.at[j] = ghosts.above.at[from];
    }
    return result;
  }

  /* Dimension k of the result is dimension order[k] of this. */
  UMEM_FUNCTION constexpr StridedLayout permute(Extents<N> const &order) const {
    for (int k = 0; k < N; k++)
      UMEM_CHECK(is_dimension(order.at[k], N) && !contains_before(order, k),
                 raise_value("the order of dimensions is no permutation of 0, 1, ..."));
    return reordered(order);
  }

  /* All dimensions in reversed order. */
  UMEM_FUNCTION constexpr StridedLayout transpose() const noexcept {
    Extents<N> order;
    for (int k = 0; k < N; k++) order.at[k] = N - 1 - k;
    return reordered(order);
  }

  /* Dimension k from its last element to its first. */
  UMEM_FUNCTION constexpr StridedLayout reversed(int k) const {
    UMEM_CHECK(is_dimension(k, N), raise_dimension(k, N));
    StridedLayout result = *this;
    if (low(k) < high(k)) result.offset += (extents.at[k] - 1) * strides.at[k];
    result.strides.at[k] = -strides.at[k];
    result.ghosts.below.at[k] = ghosts.above.at[k];
    result.ghosts.above.at[k] = ghosts.below.at[k];
    return result;
  }

  /* Without the ghost cells. */
  UMEM_FUNCTION constexpr StridedLayout interior() const noexcept {
    return {extents, strides, {}, offset};
  }

  /* The ghost cells as elements like all others: the indices begin at 0. */
  UMEM_FUNCTION constexpr StridedLayout with_ghosts() const noexcept {
    return {all_cells(extents, ghosts), strides, {}, offset - distance(ghosts.below, strides)};
  }

  /* The outermost cells as ghost cells: as many as `wanted`, whatever they were before. */
  UMEM_FUNCTION constexpr StridedLayout with_ghosts(Ghosts<N> const &wanted) const {
    StridedLayout result = with_ghosts();
    for (int k = 0; k < N; k++) {
      index const below = wanted.below.at[k], above = wanted.above.at[k];
      UMEM_CHECK(below >= 0 && above >= 0 && below <= result.extents.at[k] &&
                     above <= result.extents.at[k] - below,
                 raise_ghosts(below, above, k, result.extents.at[k]));
      result.extents.at[k] -= below + above;
      result.offset += below * strides.at[k];
    }
    result.ghosts = wanted;
    return result;
  }

private:
  UMEM_FUNCTION constexpr StridedLayout reordered(Extents<N> const &order) const noexcept {
    StridedLayout result = *this;
    for (int k = 0; k < N; k++) {
      index from = order.at[k];
      result.extents.at[k] = extents.at[from];
      result.strides.at[k] = strides.at[from];
      result.ghosts.below.at[k] = ghosts.below.at[from];
      result.ghosts.above.at[k] = ghosts.above.at[from];
    }
    return result;
  }

  UMEM_FUNCTION static constexpr bool contains_before(Extents<N> const &order, int k) noexcept {
    for (int j = 0; j < k; j++)
      if (order.at[j] == order.at[k]) return true;
    return false;
  }
};

} // namespace detail
} // namespace umem

#endif
