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

#include <umem/detail/checks.hpp>
#include <umem/iterator.hpp>
#include <umem/slice.hpp>

namespace umem {
namespace detail {

/* The positions of the elements of a View or a Part, apart from
 * their memory. */

/* How many elements separate the one with indices 0 from the one with indices i. */
template <int Rank>
UMEM_FUNCTION constexpr index_t distance(Extents<Rank> const &i,
                                         Extents<Rank> const &strides) noexcept {
  index_t result = 0;
  for (int k = 0; k < Rank; k++) result += i.at[k] * strides.at[k];
  return result;
}

/* As distance, of indices one by one: without a loop. */
template <int Rank, class... Indices>
UMEM_FUNCTION constexpr index_t offset_of(Extents<Rank> const &strides, Indices... i) noexcept {
  index_t result = 0;
  [[maybe_unused]] int k = 0;
  ((result += static_cast<index_t>(i) * strides.at[k++]), ...);
  return result;
}

/* The pointer itself, as a call that makes no instruction.
 GCC makes a second loop, with vector
 * instructions, where one factor of an address may be a stride of 1. It would take the index of an
 * outer loop for one if this loop reads strides from memory, as those of a guard are: behind a call
 * it looks for none. */
template <class Type> UMEM_FUNCTION UMEM_CHECKED inline Type *as_start_of_row(Type *row) noexcept {
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && defined(__OPTIMIZE__)
  auto const same = __builtin_assume_aligned(row, 1);
  return static_cast<Type *>(const_cast<void *>(static_cast<void const *>(same)));
#else
  return row;
#endif
}

/* Extents, strides, ghost cells and the position of element (0, ..., 0). Numbers count elements.
 * Functions that return layouts throw on the host and assert on the device. */
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

  /* Indices begin, begin + step, ... below end of dimension k become 0, 1, ... . The result has no
   * ghost cells in that dimension. */
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

  /* Takes the indices of a range, which become 0, 1, ... . */
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

struct Strided;
struct UnitStride;
enum class Side;

template <class Type, int Rank, class Layout = Strided> class View;

/* Type may be const: then the elements cannot be written. Extents and indices count elements.
 * Layout: what the type knows of the strides and extents, nothing unless a program names it: see
 * layout.hpp. */
template <class Type, int Rank> class View<Type, Rank, Strided> {
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
    return access<false>(*this, i...);
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
  [[deprecated("write ghosts.below[k] or ghosts.above[k]")]] UMEM_FUNCTION constexpr index_t
  ghost(int k) const noexcept {
    return ghosts.below[k];
  }

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

  /* The elements without their ghost cells. */
  UMEM_FUNCTION constexpr View interior() const noexcept { return laid_out(layout().interior()); }

  /* The ghost cells as elements like all others: the indices begin at 0. */
  UMEM_FUNCTION constexpr View with_ghosts() const noexcept {
    return laid_out(layout().with_ghosts());
  }

  /* All cells, the outermost ones as ghost cells: as many as wanted, whatever they were
   * before. Throws umem::value_error if there are not so many cells. */
  UMEM_FUNCTION constexpr View with_ghosts(Ghosts<Rank> const &wanted) const {
    return laid_out(layout().with_ghosts(wanted));
  }

  /* The elements of the interior with other extents, without a copy. Elements with the same number
   * are the same: numbers count in C order or, with umem::column_major, in that of Fortran. Throws
   * umem::value_error if the extents give another number of elements, or if the strides allow no
   * such view: then copy the elements first. */
  template <int OtherRank>
  UMEM_FUNCTION constexpr View<Type, OtherRank> reshape(Extents<OtherRank> const &shape,
                                                        Order order = row_major) const {
    return laid_out(layout().reshape(shape, order));
  }

  /* The view for loops over its last dimension: its type knows that the stride there is 1. Throws
   * umem::value_error if it is not. Make a variable of it outside of the loop. */
  UMEM_FUNCTION constexpr View<Type, Rank, UnitStride> unit_stride() const {
    [[maybe_unused]] constexpr int k = Rank > 0 ? Rank - 1 : 0;
    UMEM_CHECK(Rank == 0 || strides.at[k] == 1 || high(k) - low(k) < 2,
               detail::raise_value("the stride of the last dimension is not 1"));
    return *this;
  }

private:
  template <class, int, class> friend class View;
  template <class, int, Side, class> friend class Guard;

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

  /* The element of a view, whose type may know strides. in_guard: it is a member of a guard. */
  template <bool in_guard, class Self, class... Indices>
  UMEM_FUNCTION UMEM_CHECKED static constexpr Type &access(Self const &view,
                                                           Indices... i) noexcept {
    check_indices<Indices...>();
    if constexpr (are_indices<Indices...>) {
      UMEM_ASSERT_INDICES_OF("operator()", view.contains(i...), as_indices(i...), view);
      UMEM_ASSERT_GUARDED_OF("operator()", view.data);
      return element<in_guard>(view, std::make_integer_sequence<int, Rank>(),
                               static_cast<index_t>(i)...);
    } else {
      return *view.data;
    }
  }
  /* The last index and those with known strides are added to a pointer to the row: compilers need
   * fewer registers than for one sum of all. GCC has the fewest if each stride is added to a
   * pointer. */
  template <bool in_guard, class Self, int... Nth, class... Indices>
  UMEM_FUNCTION UMEM_CHECKED static constexpr Type &
  element(Self const &view, std::integer_sequence<int, Nth...>, Indices... i) noexcept {
    Type *row = view.data;
    ((row += of_row<Self, Nth> ? i * view.template nth_stride<Nth>() : 0), ...);
    if constexpr (in_guard && (of_row<Self, Nth> || ...)) row = detail::as_start_of_row(row);
    return row[((of_row<Self, Nth> ? 0 : i * view.template nth_stride<Nth>()) + ... + index_t(0))];
  }
  static constexpr index_t unknown_stride = std::numeric_limits<index_t>::min();
  UMEM_FUNCTION static constexpr index_t known_stride(int /*k*/) noexcept { return unknown_stride; }
  template <class Self, int k>
  static constexpr bool of_row = k < Rank - 1 && Self::known_stride(k) == unknown_stride;
  template <int k> UMEM_FUNCTION UMEM_CHECKED constexpr index_t nth_stride() const noexcept {
    return strides.at[k];
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

#include <umem/detail/mistakes.hpp>
#include <umem/layout.hpp>

#endif
