/* umem/slice.hpp - which elements of each dimension a part has.
 *
 *     auto face = u.part(umem::full_extent, umem::range(1, umem::end - 1), 3); // of rank 2
 *     auto every_second = u.part(umem::range(0, umem::end, 2), umem::full_extent, umem::end - 1);
 *
 * View, Part, Array and guards have a function part, which takes one slice per dimension:
 *
 *     an integer, umem::end - 1            the elements with this index, without this dimension
 *     umem::range(first, last)             first <= index < last
 *     umem::range(first, last, step)       first, first + step, ... up to, but not including,
 *                                          last; step may be negative
 *     umem::full_extent                    all, with the ghost cells of the dimension
 *
 * Slices of std::submdspan mean the same here: pairs of integers, std::strided_slice, integral
 * constants, and, with umem/mdspan.hpp, std::full_extent. A negative integer is the index of a
 * ghost cell. Only umem::end counts from the end. It is the extent of the dimension, so umem::end
 * is the first ghost cell after the elements. Ranges may reach into ghost cells; the part has no
 * ghost cells in these dimensions, and its indices begin at 0. */
#ifndef UMEM_SLICE_HPP
#define UMEM_SLICE_HPP

#include <umem/extents.hpp>

namespace umem {

/* All elements of a dimension, with its ghost cells. */
enum full_extent_t { full_extent };

/* The extent of the dimension that a slice is of: umem::end - 1 is its last element. */
enum end_t { end };

namespace detail {

template <class Integer>
inline constexpr bool is_class_of_index =
    std::is_class_v<Integer> &&std::is_convertible_v<Integer, index_t>;

} // namespace detail

/* An index, counted from 0 or from the end. */
struct Position {
  index_t offset; /* from 0, or from the extent of the dimension */
  bool from_end;  /* false: from 0 */

  template <class Integer, class = std::enable_if_t<detail::is_index<Integer> ||
                                                    detail::is_class_of_index<Integer>>>
  UMEM_FUNCTION constexpr Position(Integer i) noexcept
      : offset(static_cast<index_t>(i)), from_end(false) {}
  UMEM_FUNCTION constexpr Position(end_t) noexcept : offset(0), from_end(true) {}

  /* In a dimension with so many elements. The largest index stands for all that are larger. */
  UMEM_FUNCTION constexpr index_t in(index_t extent) const noexcept {
    if (!from_end) return offset;
    return offset > detail::largest<index_t> - extent ? detail::largest<index_t> : extent + offset;
  }
};

template <class Integer, class = std::enable_if_t<detail::is_index<Integer>>>
UMEM_FUNCTION constexpr Position operator+(end_t, Integer n) noexcept {
  Position position(n);
  position.from_end = true;
  return position;
}
template <class Integer, class = std::enable_if_t<detail::is_index<Integer>>>
UMEM_FUNCTION constexpr Position operator-(end_t, Integer n) noexcept {
  auto const distance = static_cast<index_t>(n);
  return end + (distance < -detail::largest<index_t> ? detail::largest<index_t> : -distance);
}

/* Indices from first towards last, which is not among them. */
struct IndexRange {
  Position first, last;
  index_t step;
};

/* A range whose type says that its step is 1: a part keeps what is known of the strides. */
struct UnitRange : IndexRange {};

/* first, first + 1, ... up to, but not including, last; empty if last is not after first. */
UMEM_FUNCTION constexpr UnitRange range(Position first, Position last) noexcept {
  return {{first, last, 1}};
}

/* first, first + step, ... up to, but not including, last. With a negative step the indices fall:
 * range(end - 1, -1, -1) reverses a dimension. If last is not after first in the direction of step,
 * the range is empty. */
UMEM_FUNCTION constexpr IndexRange range(Position first, Position last, index_t step) noexcept {
  return {first, last, step};
}

namespace detail {

/* One slice of any kind. */
struct Slice {
  enum Kind { one, some, all };
  Kind kind;
  IndexRange range;
};

/* Specialised for those of other libraries; see mdspan.hpp. */
template <class SliceType>
inline constexpr bool is_full_extent = std::is_same_v<SliceType, full_extent_t>;

template <class SliceType>
inline constexpr bool is_position =
    std::is_same_v<SliceType, Position> || std::is_same_v<SliceType, end_t> ||
    is_index<SliceType> || is_class_of_index<SliceType>;

/* std::pair */
template <class SliceType, class = void> inline constexpr bool is_pair = false;
template <class SliceType>
inline constexpr bool is_pair<SliceType, std::void_t<decltype(std::declval<SliceType>().first),
                                                     decltype(std::declval<SliceType>().second)>> =
    is_position<std::decay_t<decltype(std::declval<SliceType>().first)>>
        &&is_position<std::decay_t<decltype(std::declval<SliceType>().second)>>;

/* std::strided_slice of any library: the indices offset, offset + stride, ... below offset +
 * extent */
template <class SliceType, class = void> inline constexpr bool is_strided_slice = false;
template <class SliceType>
inline constexpr bool is_strided_slice<
    SliceType, std::void_t<decltype(static_cast<index_t>(std::declval<SliceType>().offset)),
                           decltype(static_cast<index_t>(std::declval<SliceType>().extent)),
                           decltype(static_cast<index_t>(std::declval<SliceType>().stride))>> =
    !is_position<SliceType>;

template <class SliceType>
inline constexpr bool is_slice =
    is_position<SliceType> || is_full_extent<SliceType> ||
    std::is_base_of_v<IndexRange, SliceType> || is_pair<SliceType> || is_strided_slice<SliceType>;

template <int Rank, class... Slices>
inline constexpr bool are_slices = sizeof...(Slices) == Rank && (is_slice<Slices> && ...);

/* The number of dimensions that slices leave. */
template <class... Slices>
inline constexpr int rank_of_slices = (int(!is_position<Slices>) + ... + 0);

/* What follows in a function is compiled only if this holds, so that its message stands alone. */
template <int Rank, class... Slices> UMEM_FUNCTION constexpr void check_slices() noexcept {
  static_assert(sizeof...(Slices) == Rank, "part: there must be one slice per dimension");
  static_assert((is_slice<Slices> && ...),
                "part: a slice is an integer, umem::end - n, umem::range(first, last, step) or "
                "umem::full_extent");
}

/* A number of a strided slice of others, which may be an integral constant. */
template <class SliceType> UMEM_FUNCTION constexpr Slice to_slice(SliceType const &slice) noexcept {
  if constexpr (is_full_extent<SliceType>) {
    return {Slice::all, {0, 0, 1}};
  } else if constexpr (is_position<SliceType>) {
    return {Slice::one, {Position(slice), 0, 1}};
  } else if constexpr (std::is_base_of_v<IndexRange, SliceType>) {
    return {Slice::some, slice};
  } else if constexpr (is_pair<SliceType>) {
    return {Slice::some, {Position(slice.first), Position(slice.second), 1}};
  } else {
    auto const first = static_cast<index_t>(slice.offset),
               length = static_cast<index_t>(slice.extent);
    index_t const last = first > largest<index_t> - length ? largest<index_t> : first + length;
    return {Slice::some, {first, last, static_cast<index_t>(slice.stride)}};
  }
}

} // namespace detail
} // namespace umem

#endif
