/* umem/detail/strided_layout.hpp - the positions of the elements of a View or a Part, apart from
 * their memory. */
#ifndef UMEM_DETAIL_STRIDED_LAYOUT_HPP
#define UMEM_DETAIL_STRIDED_LAYOUT_HPP

#include <umem/config.hpp>
#include <umem/extents.hpp>
#include <umem/ghosts.hpp>
#include <umem/slice.hpp>
#include <umem/view_error.hpp>

namespace umem {
namespace detail {

/* How many elements separate the one with indices 0 from the one with indices i. */
template <int Rank>
UMEM_FUNCTION constexpr index_t distance(Extents<Rank> const &i,
                                         Extents<Rank> const &strides) noexcept {
  index_t result = 0;
  for (int k = 0; k < Rank; k++) result += i.at[k] * strides.at[k];
  return result;
}

/* Extents, strides, ghost cells and the position of element (0, ..., 0). Numbers count elements. Functions
 * that return layouts throw on the host and assert on the device. */
template <int Rank> struct StridedLayout {
  Extents<Rank> extents; /* of the interior, which ghost cells are not part of */
  Extents<Rank> strides; /* of any sign */
  Ghosts<Rank> ghosts;
  index_t offset = 0; /* of element (0, ..., 0) */

  /* The indices of dimension k are in [low(k), high(k)). */
  UMEM_FUNCTION constexpr index_t low(int k) const noexcept { return -ghosts.below.at[k]; }
  UMEM_FUNCTION constexpr index_t high(int k) const noexcept {
    return extents.at[k] + ghosts.above.at[k];
  }

  /* Indices begin, begin + step, ... below end of dimension k become 0, 1, ... . The result has no ghost
   * cells in that dimension. */
  UMEM_FUNCTION constexpr StridedLayout slice(int k, Position from, Position to,
                                              index_t step) const {
    UMEM_CHECK(is_dimension(k, Rank), raise_dimension(k, Rank));
    index_t const begin = from.in(extents.at[k]), end = to.in(extents.at[k]);
    UMEM_CHECK(step > 0 && begin >= low(k) && begin <= end && end <= high(k),
               raise_slice(begin, end, step, k, low(k), high(k)));
    StridedLayout result = *this;
    if (begin < end) result.offset += begin * strides.at[k]; /* else there is no such element */
    result.extents.at[k] = (end - begin) / step + ((end - begin) % step != 0);
    if (result.extents.at[k] > 1) result.strides.at[k] *= step; /* else the product may overflow */
    result.ghosts.below.at[k] = result.ghosts.above.at[k] = 0;
    return result;
  }

  /* One slice per dimension; OtherRank of them keep their dimension. */
  template <int OtherRank>
  UMEM_FUNCTION constexpr StridedLayout<OtherRank> part(Slice const *slices) const {
    StridedLayout<OtherRank> result;
    result.offset = offset;
    for (int k = 0, to = 0; k < Rank; k++) {
      if (slices[k].kind == Slice::one)
        result.offset += checked_index(slices[k].range.first, k) * strides.at[k];
      else if (slices[k].kind == Slice::some)
        take_range(slices[k].range, k, result, to++);
      else
        take_dimension(k, result, to++);
    }
    return result;
  }

  /* The elements with index i in dimension k, without that dimension. */
  UMEM_FUNCTION constexpr StridedLayout<Rank - 1> select(int k, Position position) const {
    UMEM_CHECK(is_dimension(k, Rank), raise_dimension(k, Rank));
    index_t const i = position.in(extents.at[k]);
    UMEM_CHECK(i >= low(k) && i < high(k), raise_index(i, k, low(k), high(k)));
    StridedLayout<Rank - 1> result;
    result.offset = offset + i * strides.at[k];
    for (int j = 0; j < Rank - 1; j++) take_dimension(j + (j >= k), result, j);
    return result;
  }

  /* Dimension k of the result is dimension order[k] of this. */
  UMEM_FUNCTION constexpr StridedLayout permute(Extents<Rank> const &order) const {
    for (int k = 0; k < Rank; k++)
      UMEM_CHECK(is_dimension(order.at[k], Rank) && !contains_before(order, k),
                 raise_value("the order of dimensions is no permutation of 0, 1, ..."));
    return reordered(order);
  }

  /* All dimensions in reversed order. */
  UMEM_FUNCTION constexpr StridedLayout transpose() const noexcept {
    Extents<Rank> order;
    for (int k = 0; k < Rank; k++) order.at[k] = Rank - 1 - k;
    return reordered(order);
  }

  /* Dimension k from its last element to its first. */
  UMEM_FUNCTION constexpr StridedLayout reversed(int k) const {
    UMEM_CHECK(is_dimension(k, Rank), raise_dimension(k, Rank));
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
  UMEM_FUNCTION constexpr StridedLayout with_ghosts(Ghosts<Rank> const &wanted) const {
    StridedLayout result = with_ghosts();
    for (int k = 0; k < Rank; k++) {
      index_t const below = wanted.below.at[k], above = wanted.above.at[k];
      UMEM_CHECK(below >= 0 && above >= 0 && below <= result.extents.at[k] &&
                     above <= result.extents.at[k] - below,
                 raise_ghosts(below, above, k, result.extents.at[k]));
      result.extents.at[k] -= below + above;
      result.offset += below * strides.at[k];
    }
    result.ghosts = wanted;
    return result;
  }

  /* The elements of the interior in an order, with other extents. */
  template <int OtherRank>
  UMEM_FUNCTION constexpr StridedLayout<OtherRank> reshape(Extents<OtherRank> const &shape,
                                                           Order order) const {
    UMEM_CHECK(has_product(shape, extents.product()),
               raise_reshape_size(extents.begin(), Rank, shape.begin(), OtherRank));
    StridedLayout<OtherRank> result{shape, strides_in(order, shape), {}, offset};
    if (extents.product() == 0) return result;
    bool const possible = order == row_major
                              ? split_dimensions(*this, result)
                              : split_dimensions(transpose(), result = result.transpose());
    UMEM_CHECK(possible, raise_reshape(extents.begin(), strides.begin(), Rank, shape.begin(),
                                       OtherRank, order));
    return order == row_major ? result : result.transpose();
  }

private:
  /* Computes the strides of `to`, whose extents have as many elements as those of `from`: groups of
   * dimensions with equal products correspond. False if the dimensions of a group of `from` are not
   * one range of memory. This is the rule of NumPy's reshape. */
  template <int OtherRank>
  UMEM_FUNCTION static constexpr bool split_dimensions(StridedLayout const &from,
                                                       StridedLayout<OtherRank> &to) noexcept {
    int n = Rank; /* a dimension of from after those that remain */
    for (int m = OtherRank; m > 0;) {
      index_t product = to.extents.at[m - 1];
      int const group = m--;
      index_t stride = 0, joined = 1; /* of the last remaining dimensions of from */
      for (;;) {
        while (n > 0 && from.extents.at[n - 1] == 1) n--;
        if (joined < product) {
          if (n == 0) return false;
          if (joined == 1)
            stride = from.strides.at[n - 1];
          else if (from.strides.at[n - 1] != stride * joined)
            return false;
          joined *= from.extents.at[--n];
        } else if (product < joined) {
          product *= to.extents.at[--m];
        } else {
          break;
        }
      }
      if (joined == 1) continue; /* extents of 1: their strides are never used */
      for (int k = group; k > m; k--) {
        to.strides.at[k - 1] = stride;
        stride *= to.extents.at[k - 1];
      }
    }
    return true;
  }

  UMEM_FUNCTION constexpr StridedLayout reordered(Extents<Rank> const &order) const noexcept {
    StridedLayout result = *this;
    for (int k = 0; k < Rank; k++) take_dimension(static_cast<int>(order.at[k]), result, k);
    return result;
  }

  /* Dimension `to` of result becomes dimension k of this. */
  template <int OtherRank>
  UMEM_FUNCTION constexpr void take_dimension(int k, StridedLayout<OtherRank> &result,
                                              int to) const noexcept {
    result.extents.at[to] = extents.at[k];
    result.strides.at[to] = strides.at[k];
    result.ghosts.below.at[to] = ghosts.below.at[k];
    result.ghosts.above.at[to] = ghosts.above.at[k];
  }

  /* The same with the indices of a range, which become 0, 1, ... . */
  template <int OtherRank>
  UMEM_FUNCTION constexpr void take_range(IndexRange const &range, int k,
                                          StridedLayout<OtherRank> &result, int to) const {
    index_t const first = range.first.in(extents.at[k]), last = range.last.in(extents.at[k]);
    index_t const step = range.step;
    result.extents.at[to] = 0;
    result.strides.at[to] = strides.at[k];
    bool const is_empty = step > 0 ? first >= last : first <= last;
    UMEM_CHECK(step != 0 && (is_empty || contains(first, last, step, k)),
               raise_range(first, last, step, k, low(k), high(k), extents.begin(), Rank));
    if (is_empty) return;
    bool const up = step > 0;
    auto const distance = static_cast<std::size_t>(up ? last - first : first - last);
    std::size_t const size =
        up ? static_cast<std::size_t>(step) : 0 - static_cast<std::size_t>(step);
    result.extents.at[to] = static_cast<index_t>((distance - 1) / size + 1);
    result.offset += first * strides.at[k];
    if (result.extents.at[to] > 1) result.strides.at[to] *= step; /* else it may overflow */
  }

  /* Whether a range that is not empty is within the indices of dimension k. */
  UMEM_FUNCTION constexpr bool contains(index_t first, index_t last, index_t step,
                                        int k) const noexcept {
    return step > 0 ? first >= low(k) && last <= high(k) : first < high(k) && last >= low(k) - 1;
  }

  UMEM_FUNCTION constexpr index_t checked_index(Position position, int k) const {
    index_t const i = position.in(extents.at[k]);
    UMEM_CHECK(i >= low(k) && i < high(k),
               raise_slice_index(i, k, low(k), high(k), extents.begin(), Rank));
    return i;
  }

  UMEM_FUNCTION static constexpr bool contains_before(Extents<Rank> const &order, int k) noexcept {
    for (int j = 0; j < k; j++)
      if (order.at[j] == order.at[k]) return true;
    return false;
  }
};

/* The layout of the elements in slices, one per dimension. */
template <int Rank, class... Slices>
UMEM_FUNCTION constexpr auto sliced(StridedLayout<Rank> const &layout, Slices const &...slices) {
  constexpr int OtherRank = rank_of_slices<Slices...>;
  if constexpr (Rank == 0) {
    return layout;
  } else {
    Slice const each[] = {to_slice(slices)...};
    return layout.template part<OtherRank>(each);
  }
}

} // namespace detail
} // namespace umem

#endif
