/* umem/extents.hpp - one number per dimension: extents, strides, ghost cells, indices.
 *
 *     umem::Extents<2> extents{51, 51};
 *     umem::Extents three{4, 5, 6};            // Extents<3> */
#ifndef UMEM_EXTENTS_HPP
#define UMEM_EXTENTS_HPP

#include <umem/error.hpp>

#include <limits>

namespace umem {

namespace detail {

/* Integers can be indices, but not bool. */
template <class Integer>
inline constexpr bool is_index =
    std::is_integral_v<Integer> && !std::is_same_v<std::remove_cv_t<Integer>, bool>;

/* Whether k is one of the dimensions 0 to rank - 1. */
UMEM_FUNCTION constexpr bool is_dimension(index_t k, index_t rank) noexcept {
  return k >= 0 && k < rank;
}

/* The length of an array for Rank numbers: C++ has none of length 0. */
template <int Rank>
inline constexpr std::size_t slots = static_cast<std::size_t>(Rank + (Rank == 0));

/* The largest Int, as a constant: device code may not call std::numeric_limits. */
template <class Integer> inline constexpr index_t largest = std::numeric_limits<Integer>::max();

} // namespace detail

/* Rank numbers, Rank >= 0; the first belongs to the slowest dimension in C order. Trivially
 * copyable; for host and device. */
template <int Rank> struct Extents {
  static_assert(Rank >= 0, "Extents: the number of dimensions is not negative");

  index_t at[detail::slots<Rank>];

  /* All zero. */
  UMEM_FUNCTION constexpr Extents() noexcept : at{} {}

  /* One integer per dimension. Values above the largest index become negative. */
  template <class... Indices,
            class = typename std::enable_if<(sizeof...(Indices) == Rank && Rank > 0) &&
                                            (detail::is_index<Indices> && ...)>::type>
  UMEM_FUNCTION constexpr Extents(Indices... i) noexcept : at{static_cast<index_t>(i)...} {}

  UMEM_FUNCTION static constexpr int size() noexcept { return Rank; }

  /* k in [0, Rank) */
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t &operator[](int k) noexcept {
    UMEM_ASSERT(detail::is_dimension(k, Rank));
    return at[k];
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t const &operator[](int k) const noexcept {
    UMEM_ASSERT(detail::is_dimension(k, Rank));
    return at[k];
  }

  UMEM_FUNCTION constexpr index_t *begin() noexcept { return at; }
  UMEM_FUNCTION constexpr index_t *end() noexcept { return at + Rank; }
  UMEM_FUNCTION constexpr index_t const *begin() const noexcept { return at; }
  UMEM_FUNCTION constexpr index_t const *end() const noexcept { return at + Rank; }

  /* All multiplied, 1 for Rank == 0; must not overflow: checked_product for what comes from
   * outside. */
  UMEM_FUNCTION constexpr index_t product() const noexcept {
    index_t result = 1;
    for (int k = 0; k < Rank; k++) result *= at[k];
    return result;
  }

  UMEM_FUNCTION friend constexpr bool operator==(Extents const &one,
                                                 Extents const &other) noexcept {
    for (int k = 0; k < Rank; k++)
      if (one.at[k] != other.at[k]) return false;
    return true;
  }
  UMEM_FUNCTION friend constexpr bool operator!=(Extents const &one,
                                                 Extents const &other) noexcept {
    return !(one == other);
  }
};

template <class... Indices> Extents(Indices...) -> Extents<static_cast<int>(sizeof...(Indices))>;

namespace detail {

/* Whether extents are those of count elements. */
template <int Rank>
UMEM_FUNCTION constexpr bool has_product(Extents<Rank> const &extents, index_t count) noexcept {
  index_t product = 1;
  bool empty = false;
  for (index_t extent : extents) {
    if (extent < 0) return false;
    if (extent == 0)
      empty = true;
    else if (product > count / extent)
      product = count + 1; /* too many, unless another extent is 0 */
    else
      product *= extent;
  }
  return empty ? count == 0 : product == count;
}

/* The indices of the element with this number in C order. */
template <int Rank> Extents<Rank> indices_at(index_t number, Extents<Rank> const &extents) {
  Extents<Rank> at;
  for (int k = Rank - 1; k >= 0; k--) {
    at.at[k] = number % extents.at[k];
    number /= extents.at[k];
  }
  return at;
}

/* Numbers as "(3, 4)"; for messages. Those that leave no room for the rest are cut: "(3, 4,
 * ...)". */
struct InWords {
  char text[256];

  InWords(index_t const *begin, index_t const *end) noexcept;

  /* Adds what has room. */
  InWords &add(char const *word) noexcept;
};

/* All numbers of values: Extents or Shape. */
template <class Values> InWords in_words(Values const &values) {
  return InWords(values.begin(), values.end());
}

} // namespace detail

/* The number of elements of extents (Extents or Shape). Throws umem::value_error where one is
 * negative, or where the product of those that are not zero is no index: so neither the number nor
 * c_strides overflows. */
template <class Values> index_t checked_product(Values const &extents) {
  index_t product = 1;
  bool empty = false;
  for (index_t extent : extents) {
    if (extent < 0)
      detail::raise_text(umemValueError, "an extent of %s is negative",
                         detail::in_words(extents).text);
    if (extent == 0)
      empty = true;
    else if (product > detail::largest<index_t> / extent)
      detail::raise_text(umemValueError, "the product of the extents %s overflows",
                         detail::in_words(extents).text);
    else
      product *= extent;
  }
  return empty ? 0 : product;
}

/* The order of elements in memory. row_major: the last index is the fastest, as in C. column_major:
 * the first index is, as in Fortran, BLAS and MATLAB. */
enum Order : int { row_major, column_major };

/* The strides of an array in an order without gaps. An extent of 0 counts as 1. */
template <int Rank>
UMEM_FUNCTION constexpr Extents<Rank> strides_in(Order order,
                                                 Extents<Rank> const &extents) noexcept {
  Extents<Rank> strides;
  index_t stride = 1;
  for (int n = 0; n < Rank; n++) {
    int const k = order == row_major ? Rank - 1 - n : n;
    strides.at[k] = stride;
    stride *= extents.at[k] > 0 ? extents.at[k] : 1;
  }
  return strides;
}

/* The strides in C order: the last index is the fastest. */
template <int Rank>
UMEM_FUNCTION constexpr Extents<Rank> c_strides(Extents<Rank> const &extents) noexcept {
  return strides_in(row_major, extents);
}

namespace detail {

/* The exceptions of checked access to views. Host only. */

/* Index i of dimension k is not in [low, high). */
[[noreturn]] void raise_index(index_t i, int k, index_t low, index_t high);

/* There is no dimension k. */
[[noreturn]] void raise_dimension(int k, int rank);

/* The slice begin, end, step is not within [low, high). */
[[noreturn]] void raise_slice(index_t begin, index_t end, index_t step, int k, index_t low,
                              index_t high);

/* Throws for a slice of an array of rank extents, and for a range that is not within [low, high)
 * or has step 0. */
[[noreturn]] void raise_slice_index(index_t i, int k, index_t low, index_t high,
                                    index_t const *extents, int rank);
[[noreturn]] void raise_range(index_t first, index_t last, index_t step, int k, index_t low,
                              index_t high, index_t const *extents, int rank);

/* The extents have not as many elements as the shape. */
[[noreturn]] void raise_reshape_size(index_t const *extents, int rank, index_t const *shape,
                                     int shape_rank);

/* The elements are not where they would be in the shape. */
[[noreturn]] void raise_reshape(index_t const *extents, index_t const *strides, int rank,
                                index_t const *shape, int shape_rank, Order order);

/* The elements are not in the layout that the type of their view says. */
[[noreturn]] void raise_layout(index_t const *extents, index_t const *strides, int rank);

/* There are not so many cells in dimension k that they could be ghost cells. */
[[noreturn]] void raise_ghosts(index_t below, index_t above, int k, index_t cells);

[[noreturn]] void raise_value(char const *message);

} // namespace detail
} // namespace umem

#endif

#if !defined(UMEM_EXTENTS_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_EXTENTS_FUNCTIONS

namespace umem::detail {

UMEM_INLINE InWords::InWords(index_t const *begin, index_t const *end) noexcept {
  char *at = text, *last = text + sizeof text - 40; /* a number and the end of the text */
  *at++ = '(';
  for (index_t const *value = begin; value != end; ++value) {
    if (at > last) {
      at += std::snprintf(at, 8, "...");
      break;
    }
    at += std::snprintf(at, 32, value + 1 == end ? "%td" : "%td, ", *value);
  }
  std::snprintf(at, 4, end - begin == 1 ? ",)" : ")");
}

UMEM_INLINE InWords &InWords::add(char const *word) noexcept {
  std::size_t length = std::strlen(text);
  std::snprintf(text + length, sizeof text - length, "%s", word);
  return *this;
}

UMEM_INLINE void raise_index(index_t i, int k, index_t low, index_t high) {
  raise_text(umemIndexError, "index %td is outside the range [%td, %td) of dimension %d", i, low,
             high, k);
}

UMEM_INLINE void raise_dimension(int k, int rank) {
  raise_text(umemIndexError, "there is no dimension %d in a view of rank %d", k, rank);
}

UMEM_INLINE void raise_slice(index_t begin, index_t end, index_t step, int k, index_t low,
                             index_t high) {
  if (step < 1) raise_text(umemValueError, "the step %td of a slice is not positive", step);
  raise_text(umemIndexError, "the slice [%td, %td) is outside the range [%td, %td) of dimension %d",
             begin, end, low, high, k);
}

UMEM_INLINE void raise_slice_index(index_t i, int k, index_t low, index_t high,
                                   index_t const *extents, int rank) {
  raise_text(umemIndexError,
             "part: index %td is outside the range [%td, %td) of dimension %d of the extents %s", i,
             low, high, k, InWords(extents, extents + rank).text);
}

UMEM_INLINE void raise_range(index_t first, index_t last, index_t step, int k, index_t low,
                             index_t high, index_t const *extents, int rank) {
  if (step == 0)
    raise_text(umemValueError, "part: the step of the range %td to %td in dimension %d is 0", first,
               last, k);
  raise_text(umemIndexError,
             "part: the range %td to %td with step %td leaves the range [%td, %td) of dimension %d "
             "of the extents %s",
             first, last, step, low, high, k, InWords(extents, extents + rank).text);
}

UMEM_INLINE void raise_reshape_size(index_t const *extents, int rank, index_t const *shape,
                                    int shape_rank) {
  raise_text(umemValueError, "reshape: the extents %s and %s have different numbers of elements",
             InWords(extents, extents + rank).text, InWords(shape, shape + shape_rank).text);
}

UMEM_INLINE void raise_reshape(index_t const *extents, index_t const *strides, int rank,
                               index_t const *shape, int shape_rank, Order order) {
  raise_text(umemValueError,
             "reshape: elements with extents %s and strides %s cannot get the extents %s in "
             "%s-major order without a copy: copy them to an array first",
             InWords(extents, extents + rank).text, InWords(strides, strides + rank).text,
             InWords(shape, shape + shape_rank).text, order == row_major ? "row" : "column");
}

UMEM_INLINE void raise_layout(index_t const *extents, index_t const *strides, int rank) {
  raise_text(umemValueError,
             "elements with extents %s and strides %s are not in the layout of the type of their "
             "view: see umem/layout.hpp",
             InWords(extents, extents + rank).text, InWords(strides, strides + rank).text);
}

UMEM_INLINE void raise_ghosts(index_t below, index_t above, int k, index_t cells) {
  if (below < 0 || above < 0)
    raise_text(umemValueError, "a number of ghost cells, %td, is negative",
               below < 0 ? below : above);
  raise_text(umemValueError, "%td and %td ghost cells are more than the %td cells of dimension %d",
             below, above, cells, k);
}

UMEM_INLINE void raise_value(char const *message) { raise_text(umemValueError, "%s", message); }

} // namespace umem::detail

#endif
