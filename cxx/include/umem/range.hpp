/* umem/range.hpp - the indices of a loop.
 *
 *     umem::for_each_indexed(array, umem::interior(array), f); // all but the outermost
 *     umem::for_each(array, {{0, 0}, {1, n}}, f);              // the first row
 *
 * A range may reach into the ghost cells of a view or an array: then it has negative indices, or
 * indices beyond the extents. */
#ifndef UMEM_RANGE_HPP
#define UMEM_RANGE_HPP

#include <umem/detail/operand.hpp>

namespace umem {

/* Indices from begin up to, but not including, end in every dimension. The range is empty if
 * begin is not below end in all of them. Extents mean the range of all indices below them. */
template <int Rank> struct Range {
  Extents<Rank> begin, end;

  constexpr Range() noexcept = default;
  UMEM_FUNCTION constexpr Range(Extents<Rank> const &extents) noexcept : end(extents) {}
  UMEM_FUNCTION constexpr Range(Extents<Rank> const &begin_, Extents<Rank> const &end_) noexcept
      : begin(begin_), end(end_) {}

  /* One index for Rank == 0. */
  UMEM_FUNCTION constexpr bool is_empty() const noexcept {
    for (int k = 0; k < Rank; k++)
      if (begin.at[k] >= end.at[k]) return true;
    return false;
  }
};

namespace detail {

/* The indices at least margin away from the ends of extents. */
template <int Rank>
UMEM_FUNCTION constexpr Range<Rank> inside(Extents<Rank> const &extents, index_t margin) noexcept {
  Range<Rank> range(extents);
  for (int k = 0; k < Rank; k++) {
    range.begin.at[k] += margin;
    range.end.at[k] -= margin;
  }
  return range;
}

/* A range of indices of elements A. A is not deduced, so that callers may write the range in
 * braces. */
template <class Operand>
using range_of = Range<decltype(extents_of(std::declval<Operand const &>()))::size()>;

} // namespace detail

/* The indices that are at least margin away from the ends of a view. A negative margin reaches into
 * ghost cells. */
template <class Type, int Rank>
UMEM_FUNCTION constexpr Range<Rank> interior(View<Type, Rank> const &view,
                                             index_t margin = 1) noexcept {
  return detail::inside(view.extents, margin);
}

/* The interior of an array or a guard. */
template <class Operand>
detail::range_of<Operand> interior(Operand const &elements, index_t margin = 1) {
  return detail::inside(detail::extents_of(elements), margin);
}

namespace detail {

/* Throws umem::index_error if a range leaves a view and its ghost cells. */
template <class Type, int Rank>
void check_range(View<Type, Rank> const &view, Range<Rank> const &range) {
  if (range.is_empty()) return;
  for (int k = 0; k < Rank; k++) {
    index_t first = view.low(k), last = view.high(k);
    if (range.begin.at[k] < first) raise_index(range.begin.at[k], k, first, last);
    if (range.end.at[k] > last) raise_index(range.end.at[k] - 1, k, first, last);
  }
}

/* The elements whose indices are in a range; their indices begin at 0 in the result. Throws as
 * check_range does. */
template <class Type, int Rank>
View<Type, Rank> part_of(View<Type, Rank> view, Range<Rank> const &range) {
  check_range(view, range);
  if (range.is_empty()) return View<Type, Rank>(nullptr, Extents<Rank>());
  for (int k = 0; k < Rank; k++) view = view.slice(k, range.begin.at[k], range.end.at[k]);
  return view;
}

} // namespace detail
} // namespace umem

#endif
