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

/* T may be const: then the elements cannot be written. Extents and indices count elements. */
template <class T, int N> class View {
public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  static constexpr int rank = N;

  T *data = nullptr;  /* element (0, ..., 0), borrowed; ghost cells may come before it in memory */
  Extents<N> extents; /* of the interior, without ghost cells */
  Extents<N> strides; /* in elements; of any sign */
  Ghosts<N> ghosts;   /* cells around the interior */

  /* An empty view. */
  View() = default;

  /* Elements in C order without gaps. */
  UMEM_FUNCTION constexpr View(T *data_, Extents<N> const &extents_) noexcept
      : data(data_), extents(extents_), strides(c_strides(extents_)) {}

  /* Elements in either order without gaps. */
  UMEM_FUNCTION constexpr View(T *data_, Extents<N> const &extents_, Order order) noexcept
      : data(data_), extents(extents_), strides(strides_in(order, extents_)) {}

  /* data is element (0, ..., 0). */
  UMEM_FUNCTION constexpr View(T *data_, Extents<N> const &extents_, Extents<N> const &strides_,
                               Ghosts<N> const &ghosts_ = {}) noexcept
      : data(data_), extents(extents_), strides(strides_), ghosts(ghosts_) {}

  /* From elements that may be written to those that are only read. */
  template <class U, class = std::enable_if_t<std::is_same_v<U const, T> && !std::is_same_v<U, T>>>
  UMEM_FUNCTION constexpr View(View<U, N> const &other) noexcept
      : data(other.data), extents(other.extents), strides(other.strides), ghosts(other.ghosts) {}

  /* The interior of an array without gaps. first is the first element in memory: a ghost cell, if
   * there are any. */
  UMEM_FUNCTION static constexpr View with_ghosts_from(T *first, Extents<N> const &extents,
                                                       Ghosts<N> const &ghosts,
                                                       Order order = row_major) noexcept {
    Extents<N> strides = strides_in(order, detail::all_cells(extents, ghosts));
    return View(first ? first + detail::distance(ghosts.below, strides) : first, extents, strides,
                ghosts);
  }

  /* ---- elements ---- */

  /* The element at N indices. Checked if UMEM_CHECKS is 1. */
  template <class... I> UMEM_FUNCTION UMEM_CHECKED constexpr T &operator()(I... i) const noexcept {
    check_indices<I...>();
    if constexpr (are_indices<I...>) {
      UMEM_ASSERT_INDICES(contains(i...), as_indices(i...), *this);
      UMEM_ASSERT_GUARDED(data);
      return data[offset(std::make_integer_sequence<int, N>(), static_cast<index_t>(i)...)];
    } else {
      return *data;
    }
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr T &operator()(Extents<N> const &i) const noexcept {
    UMEM_ASSERT_INDICES(contains(i), i, *this);
    UMEM_ASSERT_GUARDED(data);
    return data[detail::distance(i, strides)];
  }

  /* Element i of the interior in C order. Only if is_contiguous(). Checked if UMEM_CHECKS is 1. */
  UMEM_FUNCTION UMEM_CHECKED constexpr T &operator[](index_t i) const noexcept {
    UMEM_ASSERT(is_contiguous());
    UMEM_ASSERT_INDICES(i >= 0 && i < size(), Extents<1>(i), as_row());
    UMEM_ASSERT_GUARDED(data);
    return data[i];
  }

  /* The element at N indices. Throws umem::index_error for an index out of range, and
   * umem::value_error if the view has no memory. Host only. */
  template <class... I> T &at(I... i) const {
    check_indices<I...>();
    Extents<N> all;
    if constexpr (N > 0 && are_indices<I...>) all = Extents<N>(i...);
    return at(all);
  }
  T &at(Extents<N> const &i) const {
    if (!data) throw value_error("an element of an empty view");
    for (int k = 0; k < N; k++)
      if (!has(k, i.at[k])) detail::raise_index(i.at[k], k, low(k), high(k));
    return data[detail::distance(i, strides)];
  }

  /* Whether there is an element or a ghost cell at these indices. */
  template <class... I> UMEM_FUNCTION constexpr bool contains(I... i) const noexcept {
    check_indices<I...>();
    if constexpr (N > 0 && are_indices<I...>) return contains(Extents<N>(i...));
    return data != nullptr;
  }
  UMEM_FUNCTION constexpr bool contains(Extents<N> const &i) const noexcept {
    for (int k = 0; k < N; k++)
      if (!has(k, i.at[k])) return false;
    return data != nullptr;
  }

  /* The elements of a view of rank 1, without ghost cells. For other ranks see umem::elements. */
  template <int M = N, class = typename std::enable_if<M == 1>::type>
  UMEM_FUNCTION constexpr StridedIterator<T> begin() const noexcept {
    return StridedIterator<T>(data, strides.at[0]);
  }
  template <int M = N, class = typename std::enable_if<M == 1>::type>
  UMEM_FUNCTION constexpr StridedIterator<T> end() const noexcept {
    return StridedIterator<T>(data, strides.at[0], extents.at[0]);
  }

  /* ---- questions ---- */

  /* k in [0, N) */
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t extent(int k) const noexcept { return extents[k]; }
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t stride(int k) const noexcept { return strides[k]; }

  /* The indices of dimension k, those of ghost cells included, are in [low(k), high(k)). */
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t low(int k) const noexcept {
    return -ghosts.below[k];
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t high(int k) const noexcept {
    return extents[k] + ghosts.above[k];
  }

  /* Elements of the interior; 1 for N == 0. */
  UMEM_FUNCTION constexpr index_t size() const noexcept { return extents.product(); }

  UMEM_FUNCTION constexpr bool is_empty() const noexcept { return !data || size() == 0; }

  /* Whether the elements of the interior follow each other in C order without gaps. */
  UMEM_FUNCTION constexpr bool is_contiguous() const noexcept {
    index_t stride = 1;
    bool contiguous = true;
    for (int k = N - 1; k >= 0; k--) {
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
    for (int k = 0; k < N; k++) {
      if (high(k) > most) return false;
      index_t step = strides.at[k] < 0 ? -strides.at[k] : strides.at[k];
      index_t steps = high(k) - 1 > -low(k) ? high(k) - 1 : -low(k);
      if (steps > 0 && step > (most - reach) / steps) return false;
      reach += step * steps;
    }
    return true;
  }

  /* ---- parts and other orders of the same elements ---- */

  /* The elements in one slice per dimension: integers, umem::range(first, last, step), umem::full_extent; see slice.hpp.
   * Integers drop their dimension. Throws umem::index_error for what is out of range, and umem::value_error for a step
   * of 0. */
  template <class... S> UMEM_FUNCTION constexpr auto part(S const &...slices) const {
    detail::check_slices<N, S...>();
    if constexpr (detail::are_slices<N, S...>)
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
  template <int M = N - 1> UMEM_FUNCTION constexpr View<T, M> select(int k, Position i) const {
    static_assert(N > 0 && M == N - 1, "View::select: the result has one dimension less");
    return laid_out(layout().select(k, i));
  }

  /* Dimension k of the result is dimension order[k] of this view. Throws umem::value_error if
   * order is no permutation. */
  UMEM_FUNCTION constexpr View permute(Extents<N> const &order) const {
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
  UMEM_FUNCTION constexpr View with_ghosts(Ghosts<N> const &wanted) const {
    return laid_out(layout().with_ghosts(wanted));
  }

  /* The elements of the interior with other extents, without a copy. Elements with the same number are the same:
   * numbers count in C order or, with umem::column_major, in that of Fortran. Throws umem::value_error if the extents
   * give another number of elements, or if the strides allow no such view: then copy the elements first. */
  template <int M>
  UMEM_FUNCTION constexpr View<T, M> reshape(Extents<M> const &shape,
                                             Order order = row_major) const {
    return laid_out(layout().reshape(shape, order));
  }

  /* The same view for loops over its last dimension: the compiler then knows that the stride
   * there is 1. Throws umem::value_error if it is not. Make a variable of it outside of the
   * loop. */
  UMEM_FUNCTION constexpr View unit_stride() const {
    constexpr int k = N > 0 ? N - 1 : 0;
    UMEM_CHECK(N == 0 || strides.at[k] == 1 || high(k) - low(k) < 2,
               detail::raise_value("the stride of the last dimension is not 1"));
    View result = *this;
    result.strides.at[k] = 1;
    return result;
  }

private:
  template <class... I>
  static constexpr bool are_indices = sizeof...(I) == N && (detail::is_index<I> && ...);

  /* What follows in a function is compiled only if this holds, so that its message stands alone. */
  template <class... I> UMEM_FUNCTION static constexpr void check_indices() noexcept {
    static_assert(sizeof...(I) == N, "View: there must be one index per dimension");
    static_assert((detail::is_index<I> && ...), "View: indices must be integers");
  }

  template <class... I> UMEM_FUNCTION static constexpr Extents<N> as_indices(I... i) noexcept {
    if constexpr (N > 0) return Extents<N>(i...);
    return Extents<N>();
  }

  /* The elements of a contiguous interior. */
  UMEM_FUNCTION constexpr View<T, 1> as_row() const noexcept {
    return View<T, 1>(data, Extents<1>(size()));
  }

  UMEM_FUNCTION constexpr bool has(int k, index_t i) const noexcept {
    return i >= low(k) && i < high(k);
  }

  /* The offset of indices i, without a loop that a compiler might not unroll. */
  template <int... K, class... I>
  UMEM_FUNCTION constexpr index_t offset(std::integer_sequence<int, K...>, I... i) const noexcept {
    return ((i * strides.at[K]) + ... + index_t(0));
  }

  UMEM_FUNCTION constexpr detail::StridedLayout<N> layout() const noexcept {
    return {extents, strides, ghosts};
  }

  /* The view of this memory, which may be null, in a layout made of layout(). */
  template <int M>
  UMEM_FUNCTION constexpr View<T, M> laid_out(detail::StridedLayout<M> const &to) const noexcept {
    return View<T, M>(data ? data + to.offset : data, to.extents, to.strides, to.ghosts);
  }
};

} // namespace umem

#endif
