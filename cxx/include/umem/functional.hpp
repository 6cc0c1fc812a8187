/* umem/functional.hpp - operations for reductions, on host and device. */
#ifndef UMEM_FUNCTIONAL_HPP
#define UMEM_FUNCTIONAL_HPP

#include <umem/config.hpp>
#include <umem/element.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace umem {

struct plus {
  template <class T> UMEM_FUNCTION constexpr T operator()(T const &a, T const &b) const {
    return static_cast<T>(a + b);
  }
};

struct multiplies {
  template <class T> UMEM_FUNCTION constexpr T operator()(T const &a, T const &b) const {
    return static_cast<T>(a * b);
  }
};

/* The smaller value; a NaN if either is one, which std::min and fmin may lose. */
struct minimum {
  template <class T> UMEM_FUNCTION constexpr T operator()(T const &a, T const &b) const {
    T const chosen = b < a ? b : a;
    return b == b ? chosen : b;
  }
};

/* The larger value; a NaN if either is one. */
struct maximum {
  template <class T> UMEM_FUNCTION constexpr T operator()(T const &a, T const &b) const {
    T const chosen = b > a ? b : a;
    return b == b ? chosen : b;
  }
};

/* The smallest and the largest of some elements: what umem::minmax (reductions.hpp) returns. */
template <class T> struct MinMax { T min, max; };

namespace detail {

/* The element itself: for reductions without a function of the elements. */
struct Identity {
  template <class T> UMEM_FUNCTION constexpr T const &operator()(T const &value) const {
    return value;
  }
};

template <class T, class = void> struct Accumulator { using type = T; };
template <class T> struct Accumulator<T, std::enable_if_t<std::is_integral_v<T>>> {
  using type = std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, std::int64_t,
                                  std::uint64_t>;
};
template <class T> struct Accumulator<T, std::enable_if_t<is_short_float<T>>> {
  using type = float;
};
template <> struct Accumulator<float> { using type = double; };

/* For complex numbers of any library: the same template, of the accumulator of their parts, if
 * one can be made of them. */
template <template <class> class C, class T>
struct Accumulator<C<T>, std::enable_if_t<std::is_same_v<complex_part_t<C<T>>, T> &&
                                          (std::is_floating_point_v<T> || is_short_float<T>)>> {
  using Wide = C<typename Accumulator<T>::type>;
  using type = std::conditional_t<std::is_constructible_v<Wide, C<T> const &>, Wide, C<T>>;
};

/* The value that is not larger, or not smaller, than any T. */
template <class T> T limit_of(bool largest_value) {
  if constexpr (is_short_float<T>) { /* not every library has std::numeric_limits of these */
    return static_cast<T>(limit_of<float>(largest_value));
  } else {
    using Limits = std::numeric_limits<T>;
    static_assert(Limits::is_specialized, "min and max are for types with std::numeric_limits");
    if constexpr (Limits::has_infinity)
      return largest_value ? Limits::infinity() : static_cast<T>(-Limits::infinity());
    return largest_value ? Limits::max() : Limits::lowest();
  }
}

} // namespace detail

/* The type of sums of T: double for float; float for floating-point numbers of 16 bits; 64 bits
 * for integers (bool is counted); for std::complex, cuda::std::complex and similar types a
 * complex number whose parts follow these rules; else T itself. */
template <class T> using accumulator = typename detail::Accumulator<std::remove_cv_t<T>>::type;

} // namespace umem

#endif
