/* umem/functional.hpp - operations for reductions, on host and device. */
#ifndef UMEM_FUNCTIONAL_HPP
#define UMEM_FUNCTIONAL_HPP

#include <umem/config.hpp>
#include <umem/element.hpp>

#include <complex>
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

/* The smaller one; a NaN if either is one, unlike std::min and fmin, which may lose it. */
struct minimum {
  template <class T> UMEM_FUNCTION constexpr T operator()(T const &a, T const &b) const {
    return b < a || !(b == b) ? b : a;
  }
};

/* The larger one; a NaN if either is one. */
struct maximum {
  template <class T> UMEM_FUNCTION constexpr T operator()(T const &a, T const &b) const {
    return b > a || !(b == b) ? b : a;
  }
};

namespace detail {

template <class T, class = void> struct Accumulator { using type = T; };
template <class T> struct Accumulator<T, std::enable_if_t<std::is_integral_v<T>>> {
  using type = std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, std::int64_t,
                                  std::uint64_t>;
};
template <class T> struct Accumulator<T, std::enable_if_t<is_short_float<T>>> {
  using type = float;
};
template <> struct Accumulator<float> { using type = double; };
template <> struct Accumulator<std::complex<float>> { using type = std::complex<double>; };

/* What is not larger, or not smaller, than any T. */
template <class T> T limit_of(bool largest_value) {
  using Limits = std::numeric_limits<T>;
  static_assert(Limits::is_specialized, "min and max are for types with std::numeric_limits");
  if (Limits::has_infinity)
    return largest_value ? Limits::infinity() : static_cast<T>(-Limits::infinity());
  return largest_value ? Limits::max() : Limits::lowest();
}

} // namespace detail

/* The type that sums of T are computed in and are: double for float, float for floating-point
 * numbers of 16 bits, 64 bits for integers (bool is counted), std::complex<double> for
 * std::complex<float>, else T itself. */
template <class T> using accumulator = typename detail::Accumulator<std::remove_cv_t<T>>::type;

} // namespace umem

#endif
