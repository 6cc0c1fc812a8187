/* umem/detail/monoids.hpp - what the reductions of reductions.hpp join, on host and device: values with their
 * positions, two extremes at once, sums of squares, products. Every operation is associative and commutative. */
#ifndef UMEM_DETAIL_MONOIDS_HPP
#define UMEM_DETAIL_MONOIDS_HPP

#include <umem/config.hpp>
#include <umem/element.hpp>
#include <umem/extents.hpp>
#include <umem/functional.hpp>
#include <umem/place.hpp>
#include <umem/view.hpp>

#include <cmath>
#include <type_traits>
#include <utility>

namespace umem {

namespace detail {

/* ---- values with their positions ---- */

/* A value and its number; becomes the number where a loop stores it. */
template <class T> struct Located {
  T value;
  index_t number;

  template <class U, class = std::enable_if_t<std::is_arithmetic_v<U>>>
  UMEM_FUNCTION explicit constexpr operator U() const {
    return static_cast<U>(number);
  }
};

/* The smaller, or larger, value; a NaN before all others; of equal ones, that with the lower number. */
template <bool largest_value> struct FirstExtreme {
  template <class T>
  UMEM_FUNCTION constexpr Located<T> operator()(Located<T> const &a, Located<T> const &b) const {
    bool const a_nan = !(a.value == a.value), b_nan = !(b.value == b.value);
    bool const better = largest_value ? b.value > a.value : b.value < a.value;
    bool const same = a.value == b.value || (a_nan && b_nan);
    return (b_nan && !a_nan) || (better && !a_nan) || (same && b.number < a.number) ? b : a;
  }
};

/* No element comes after it. */
template <class T> Located<T> last_extreme(bool largest_value) {
  return {limit_of<T>(!largest_value), largest<index_t>};
}

/* The element with its number in C order, from its indices: for loops over indices. */
template <class T, int N> struct LocatedElement {
  View<T, N> view;
  Extents<N> numbers; /* c_strides of the extents */

  template <class... I> UMEM_FUNCTION Located<std::remove_const_t<T>> operator()(I... i) const {
    Extents<N> at;
    if constexpr (N > 0) at = Extents<N>(static_cast<index_t>(i)...);
    return {view.data[distance(at, view.strides)], distance(at, numbers)};
  }
};

/* The element with its position: for reductions along a dimension, which give f the position after the elements where
 * f has the member takes_position. */
struct LocatedAlong {
  static constexpr bool takes_position = true;
  template <class T> UMEM_FUNCTION Located<T> operator()(T const &value, index_t position) const {
    return {value, position};
  }
};

template <class F, class = void> inline constexpr bool takes_position = false;
template <class F>
inline constexpr bool takes_position<F, std::void_t<decltype(F::takes_position)>> = true;

/* ---- both extremes ---- */

struct JoinMinMax {
  template <class T>
  UMEM_FUNCTION constexpr MinMax<T> operator()(MinMax<T> const &a, MinMax<T> const &b) const {
    return {minimum()(a.min, b.min), maximum()(a.max, b.max)};
  }
};
struct BothOf {
  template <class T> UMEM_FUNCTION constexpr MinMax<T> operator()(T const &value) const {
    return {value, value};
  }
};

/* ---- conditions ---- */

/* Whether an element is not zero: NaN is not. */
struct IsTrue {
  template <class T> UMEM_FUNCTION constexpr bool operator()(T const &value) const {
    if constexpr (std::is_same_v<T, bool>)
      return value;
    else
      return !(value == T());
  }
};

/* F may also return a number, as functions of C do. */
template <class R, class F> struct CountOf {
  F f;
  template <class T> UMEM_FUNCTION R operator()(T const &value) { return f(value) ? R(1) : R(0); }
};
template <class F> struct Negated {
  F f;
  template <class T> UMEM_FUNCTION bool operator()(T const &value) {
    return f(value) ? false : true;
  }
};

template <class R, class F> inline constexpr bool is_for_device<CountOf<R, F>> = is_for_device<F>;
template <class F> inline constexpr bool is_for_device<Negated<F>> = is_for_device<F>;

/* ---- products ---- */

/* The sum of products of A and B. */
template <class A, class B> using product_sum = accumulator<std::common_type_t<A, B>>;

/* a * b in R; conjugates: that of the complex conjugate of a. The product of complex numbers is the plain formula: the
 * operator of std::complex also treats infinite numbers as the C standard wants, which takes ten times as long. */
template <class R, bool conjugates> struct ProductOf {
  template <class A, class B> UMEM_FUNCTION constexpr R operator()(A const &a, B const &b) const {
    R const x = static_cast<R>(a), y = static_cast<R>(b);
    if constexpr (is_complex<R>) {
      auto const sign = static_cast<complex_part_t<R>>(conjugates ? -1 : 1);
      auto const re = x.real(), im = sign * x.imag();
      return R(re * y.real() - im * y.imag(), re * y.imag() + im * y.real());
    } else {
      return static_cast<R>(x * y);
    }
  }
};

/* ---- norms ---- */

template <class T, class = void> struct NormOf { using type = accumulator<T>; };
template <class T> struct NormOf<T, std::enable_if_t<std::is_integral_v<T>>> {
  using type = double;
};
template <class T> struct NormOf<T, std::enable_if_t<is_complex<T>>> {
  using type = complex_part_t<accumulator<T>>;
};

/* The type of norms of T: that of its sums, but double for integers, and a real number for complex ones. */
template <class T> using norm_of = typename NormOf<T>::type;

/* f of the square, or of the squares of both parts of a complex number, added. */
template <class R, class S> struct SquareOf {
  template <class T> UMEM_FUNCTION constexpr S operator()(T const &x) const {
    if constexpr (is_complex<T>)
      return S::of(static_cast<R>(x.real())) + S::of(static_cast<R>(x.imag()));
    else
      return S::of(static_cast<R>(x));
  }
};

/* A sum of squares; becomes its root where a loop stores it. */
template <class R> struct Squares {
  R sum;

  UMEM_FUNCTION static constexpr Squares of(R x) { return {x * x}; }
  UMEM_FUNCTION friend constexpr Squares operator+(Squares const &a, Squares const &b) {
    return {a.sum + b.sum};
  }
  template <class U> UMEM_FUNCTION explicit operator U() const {
    return static_cast<U>(std::sqrt(sum));
  }
};

/* The same without overflow and underflow: three sums, of the squares of large numbers, scaled down, of small ones,
 * scaled up, and of all others. J. L. Blue, A portable Fortran program to find the Euclidean norm of a vector, ACM
 * TOMS 4 (1978); with the constants for double. */
struct ScaledSquares {
  double large, middle, small;

  static constexpr double from_large = 0x1p486, scale_large = 0x1p-538;
  static constexpr double to_small = 0x1p-511, scale_small = 0x1p537;

  UMEM_FUNCTION static constexpr ScaledSquares of(double x) {
    double const size = x < 0 ? -x : x, down = size * scale_large, up = size * scale_small;
    if (size > from_large) return {down * down, 0, 0};
    if (size < to_small) return {0, 0, up * up};
    return {0, size * size, 0};
  }
  UMEM_FUNCTION friend constexpr ScaledSquares operator+(ScaledSquares const &a,
                                                         ScaledSquares const &b) {
    return {a.large + b.large, a.middle + b.middle, a.small + b.small};
  }
  template <class U> UMEM_FUNCTION explicit operator U() const { return static_cast<U>(root()); }

private:
  UMEM_FUNCTION double root() const {
    double const root_middle = std::sqrt(middle); /* a NaN is among these */
    if (large > 0) return std::sqrt(large + (middle * scale_large) * scale_large) / scale_large;
    if (!(small > 0)) return root_middle;
    double const root_small = std::sqrt(small) / scale_small;
    double const low = root_middle < root_small ? root_middle : root_small;
    double const high = root_middle < root_small ? root_small : root_middle;
    return high * std::sqrt(1 + (low / high) * (low / high));
  }
};

/* What norms of T add: doubles can be too large for their squares, floats in a double cannot. */
template <class T>
using squares_of =
    std::conditional_t<std::is_same_v<norm_of<T>, double> && !std::is_integral_v<T> &&
                           !std::is_same_v<T, float> && !std::is_same_v<complex_part_t<T>, float>,
                       ScaledSquares, Squares<norm_of<T>>>;

} // namespace detail
} // namespace umem

#endif
