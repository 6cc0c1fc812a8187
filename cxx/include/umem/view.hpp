/* umem/view.hpp - N-dimensional access to memory that something else owns.
 *
 *     umem::View<double, 2> u(pointer, {51, 51});
 *     u(1, 2) = u(0, 2) + u(2, 2);
 *     umem::View<double, 1> column = u.select(1, 7);
 *
 * A View is a pointer with extents and strides. It is trivially copyable: pass it by value, to
 * kernels too. Functions that return views throw on the host and assert on the device. No
 * function allocates. Functions that are const do not change the view; they may give write
 * access to its elements. */
#ifndef UMEM_VIEW_HPP
#define UMEM_VIEW_HPP

#include <umem/config.hpp>
#include <umem/detail/checks.hpp>
#include <umem/detail/strided_layout.hpp>
#include <umem/extents.hpp>
#include <umem/ghosts.hpp>
#include <umem/iterator.hpp>
#include <umem/slice.hpp>
#include <umem/view_error.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace umem {

/* Type may be const: then the elements cannot be written. Extents and indices count elements. */
template <class Type, int Rank> class View {
public:
  using element_type = Type;
  using value_type = std::remove_cv_t<Type>;
  static constexpr int rank = Rank;

  Type *data =
      nullptr; /* element (0, ..., 0), borrowed; ghost cells may come before it in memory */
  Extents<Rank> extents; /* of the interior, without ghost cells */
  Extents<Rank> strides; /* in elements; of any sign */
  Ghosts<Rank> ghosts;   /* cells around the interior */

  /* An empty view. */
  View() = default;

  /* Elements in C order without gaps. */
  UMEM_FUNCTION constexpr View(Type *data_, Extents<Rank> const &extents_) noexcept
      : data(data_), extents(extents_), strides(c_strides(extents_)) {}

  /* Elements in either order without gaps. */
  UMEM_FUNCTION constexpr View(Type *data_, Extents<Rank> const &extents_, Order order) noexcept
      : data(data_), extents(extents_), strides(strides_in(order, extents_)) {}

  /* data is element (0, ..., 0). */
  UMEM_FUNCTION constexpr View(Type *data_, Extents<Rank> const &extents_,
                               Extents<Rank> const &strides_,
                               Ghosts<Rank> const &ghosts_ = {}) noexcept
      : data(data_), extents(extents_), strides(strides_), ghosts(ghosts_) {}

  /* From elements that may be written to those that are only read. */
  template <class OtherType, class = std::enable_if_t<std::is_same_v<OtherType const, Type> &&
                                                      !std::is_same_v<OtherType, Type>>>
  UMEM_FUNCTION constexpr View(View<OtherType, Rank> const &other) noexcept
      : data(other.data), extents(other.extents), strides(other.strides), ghosts(other.ghosts) {}

  /* The interior of an array without gaps. first is the first element in memory: a ghost cell, if
   * there are any. */
  UMEM_FUNCTION static constexpr View with_ghosts_from(Type *first, Extents<Rank> const &extents,
                                                       Ghosts<Rank> const &ghosts,
                                                       Order order = row_major) noexcept {
    Extents<Rank> strides = strides_in(order, detail::all_cells(extents, ghosts));
    return View(first ? first + detail::distance(ghosts.below, strides) : first, extents, strides,
                ghosts);
  }

  /* ---- elements ---- */

  /* The element at Rank indices. Checked if UMEM_CHECKS is 1. */
  template <class... Indices>
  UMEM_FUNCTION UMEM_CHECKED constexpr Type &operator()(Indices... i) const noexcept {
    check_indices<Indices...>();
    if constexpr (are_indices<Indices...>) {
      UMEM_ASSERT_INDICES(contains(i...), as_indices(i...), *this);
      UMEM_ASSERT_GUARDED(data);
      return data[offset(std::make_integer_sequence<int, Rank>(), static_cast<index_t>(i)...)];
    } else {
      return *data;
    }
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr Type &operator()(Extents<Rank> const &i) const noexcept {
    UMEM_ASSERT_INDICES(contains(i), i, *this);
    UMEM_ASSERT_GUARDED(data);
    return data[detail::distance(i, strides)];
  }

  /* Element i of the interior in C order. Only if is_contiguous(). Checked if UMEM_CHECKS is 1. */
  UMEM_FUNCTION UMEM_CHECKED constexpr Type &operator[](index_t i) const noexcept {
    UMEM_ASSERT(is_contiguous());
    UMEM_ASSERT_INDICES(i >= 0 && i < size(), Extents<1>(i), as_row());
    UMEM_ASSERT_GUARDED(data);
    return data[i];
  }

  /* The element at Rank indices. Throws umem::index_error for an index out of range, and
   * umem::value_error if the view has no memory. Host only. */
  template <class... Indices> Type &at(Indices... i) const {
    check_indices<Indices...>();
    Extents<Rank> all;
    if constexpr (Rank > 0 && are_indices<Indices...>) all = Extents<Rank>(i...);
    return at(all);
  }
  Type &at(Extents<Rank> const &i) const {
    if (!data) throw value_error("an element of an empty view");
    for (int k = 0; k < Rank; k++)
      if (!has(k, i.at[k])) detail::raise_index(i.at[k], k, low(k), high(k));
    return data[detail::distance(i, strides)];
  }

  /* Whether there is an element or a ghost cell at these indices. */
  template <class... Indices> UMEM_FUNCTION constexpr bool contains(Indices... i) const noexcept {
    check_indices<Indices...>();
    if constexpr (Rank > 0 && are_indices<Indices...>) return contains(Extents<Rank>(i...));
    return data != nullptr;
  }
  UMEM_FUNCTION constexpr bool contains(Extents<Rank> const &i) const noexcept {
    for (int k = 0; k < Rank; k++)
      if (!has(k, i.at[k])) return false;
    return data != nullptr;
  }

  /* The elements of a view of rank 1, without ghost cells. For other ranks see umem::elements. */
  template <int OtherRank = Rank, class = typename std::enable_if<OtherRank == 1>::type>
  UMEM_FUNCTION constexpr StridedIterator<Type> begin() const noexcept {
    return StridedIterator<Type>(data, strides.at[0]);
  }
  template <int OtherRank = Rank, class = typename std::enable_if<OtherRank == 1>::type>
  UMEM_FUNCTION constexpr StridedIterator<Type> end() const noexcept {
    return StridedIterator<Type>(data, strides.at[0], extents.at[0]);
  }

  /* ---- questions ---- */

  /* k in [0, Rank) */
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t extent(int k) const noexcept { return extents[k]; }
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t stride(int k) const noexcept { return strides[k]; }

  /* The indices of dimension k, those of ghost cells included, are in [low(k), high(k)). */
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t low(int k) const noexcept {
    return -ghosts.below[k];
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t high(int k) const noexcept {
    return extents[k] + ghosts.above[k];
  }

  /* Elements of the interior; 1 for Rank == 0. */
  UMEM_FUNCTION constexpr index_t size() const noexcept { return extents.product(); }

  UMEM_FUNCTION constexpr bool is_empty() const noexcept { return !data || size() == 0; }

  /* Whether the elements of the interior follow each other in C order without gaps. */
  UMEM_FUNCTION constexpr bool is_contiguous() const noexcept {
    index_t stride = 1;
    bool contiguous = true;
    for (int k = Rank - 1; k >= 0; k--) {
      if (extents.at[k] == 0) return true;
      if (extents.at[k] > 1 && strides.at[k] != stride) contiguous = false;
      stride *= extents.at[k];
    }
    return contiguous;
  }

  /* Whether all indices, also of ghost cells, and the offsets of all elements from data fit 32
   * bits. */
  UMEM_FUNCTION constexpr bool fits_32_bits() const noexcept {
    constexpr index_t most = detail::largest<std::int32_t>;
    index_t reach = 0; /* no offset is larger */
    for (int k = 0; k < Rank; k++) {
      if (high(k) > most) return false;
      index_t step = strides.at[k] < 0 ? -strides.at[k] : strides.at[k];
      index_t steps = high(k) - 1 > -low(k) ? high(k) - 1 : -low(k);
      if (steps > 0 && step > (most - reach) / steps) return false;
      reach += step * steps;
    }
    return true;
  }

  /* ---- parts and other orders of the same elements ---- */

  /* The elements in one slice per dimension: integers, umem::range(first, last, step),
   * umem::full_extent; see slice.hpp. Integers drop their dimension. Throws umem::index_error for
   * what is out of range, and umem::value_error for a step of 0. */
  template <class... Slices> UMEM_FUNCTION constexpr auto part(Slices const &...slices) const {
    detail::check_slices<Rank, Slices...>();
    if constexpr (detail::are_slices<Rank, Slices...>)
      return laid_out(detail::sliced(layout(), slices...));
    else
      return *this;
  }

  /* Indices first, first + step, ... below last of dimension k become 0, 1, ... . They may be
   * those of ghost cells; the result has no ghost cells in that dimension. step > 0. */
  UMEM_FUNCTION constexpr View slice(int k, Position first, Position last, index_t step = 1) const {
    return laid_out(layout().slice(k, first, last, step));
  }

  /* The elements with index i in dimension k. i may be the index of a ghost cell. */
  template <int OtherRank = Rank - 1>
  UMEM_FUNCTION constexpr View<Type, OtherRank> select(int k, Position i) const {
    static_assert(Rank > 0 && OtherRank == Rank - 1,
                  "View::select: the result has one dimension less");
    return laid_out(layout().select(k, i));
  }

  /* Dimension k of the result is dimension order[k] of this view. Throws umem::value_error if
   * order is no permutation. */
  UMEM_FUNCTION constexpr View permute(Extents<Rank> const &order) const {
    return laid_out(layout().permute(order));
  }

  /* All dimensions in reversed order. */
  UMEM_FUNCTION constexpr View transpose() const noexcept { return laid_out(layout().transpose()); }

  /* Dimension k from its last element to its first. */
  UMEM_FUNCTION constexpr View reversed(int k) const { return laid_out(layout().reversed(k)); }

  /* The same elements without their ghost cells. */
  UMEM_FUNCTION constexpr View interior() const noexcept { return laid_out(layout().interior()); }

  /* The ghost cells as elements like all others: the indices begin at 0. */
  UMEM_FUNCTION constexpr View with_ghosts() const noexcept {
    return laid_out(layout().with_ghosts());
  }

  /* The same cells, the outermost ones as ghost cells: as many as wanted, whatever they were
   * before. Throws umem::value_error if there are not so many cells. */
  UMEM_FUNCTION constexpr View with_ghosts(Ghosts<Rank> const &wanted) const {
    return laid_out(layout().with_ghosts(wanted));
  }

  /* The elements of the interior with other extents, without a copy. Elements with the same number are the same:
   * numbers count in C order or, with umem::column_major, in that of Fortran. Throws umem::value_error if the extents
   * give another number of elements, or if the strides allow no such view: then copy the elements first. */
  template <int OtherRank>
  UMEM_FUNCTION constexpr View<Type, OtherRank> reshape(Extents<OtherRank> const &shape,
                                                        Order order = row_major) const {
    return laid_out(layout().reshape(shape, order));
  }

  /* The same view for loops over its last dimension: the compiler then knows that the stride
   * there is 1. Throws umem::value_error if it is not. Make a variable of it outside of the
   * loop. */
  UMEM_FUNCTION constexpr View unit_stride() const {
    constexpr int k = Rank > 0 ? Rank - 1 : 0;
    UMEM_CHECK(Rank == 0 || strides.at[k] == 1 || high(k) - low(k) < 2,
               detail::raise_value("the stride of the last dimension is not 1"));
    View result = *this;
    result.strides.at[k] = 1;
    return result;
  }

private:
  template <class... Indices>
  static constexpr bool are_indices = sizeof...(Indices) == Rank &&
                                      (detail::is_index<Indices> && ...);

  /* What follows in a function is compiled only if this holds, so that its message stands alone. */
  template <class... Indices> UMEM_FUNCTION static constexpr void check_indices() noexcept {
    static_assert(sizeof...(Indices) == Rank, "View: there must be one index per dimension");
    static_assert((detail::is_index<Indices> && ...), "View: indices must be integers");
  }

  template <class... Indices>
  UMEM_FUNCTION static constexpr Extents<Rank> as_indices(Indices... i) noexcept {
    if constexpr (Rank > 0) return Extents<Rank>(i...);
    return Extents<Rank>();
  }

  /* The elements of a contiguous interior. */
  UMEM_FUNCTION constexpr View<Type, 1> as_row() const noexcept {
    return View<Type, 1>(data, Extents<1>(size()));
  }

  UMEM_FUNCTION constexpr bool has(int k, index_t i) const noexcept {
    return i >= low(k) && i < high(k);
  }

  /* The offset of indices i, without a loop that a compiler might not unroll. */
  template <int... Nth, class... Indices>
  UMEM_FUNCTION constexpr index_t offset(std::integer_sequence<int, Nth...>,
                                         Indices... i) const noexcept {
    return ((i * strides.at[Nth]) + ... + index_t(0));
  }

  UMEM_FUNCTION constexpr detail::StridedLayout<Rank> layout() const noexcept {
    return {extents, strides, ghosts};
  }

  /* The view of this memory, which may be null, in a layout made of layout(). */
  template <int OtherRank>
  UMEM_FUNCTION constexpr View<Type, OtherRank>
  laid_out(detail::StridedLayout<OtherRank> const &to) const noexcept {
    return View<Type, OtherRank>(data ? data + to.offset : data, to.extents, to.strides, to.ghosts);
  }
};

} // namespace umem

#endif
