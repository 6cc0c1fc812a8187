/* umem/convert.hpp - elements copied into those of another type, on host or GPU.
 *
 *     umem::convert(umem::on_host, doubles, floats);
 *     umem::convert(int_array, double_array);               // on the place of double_array
 *
 *     umem::convert(doubles, bytes, umem::wrapping);        // 300 becomes 44, not 127
 *
 * Numbers are converted by the rules of umemArray_convert (array_convert.h): floating-point numbers
 * become integers by rounding toward zero, numbers out of the range of an integer type become the
 * nearest number in range, and NaN becomes 0; floating-point numbers are rounded once, to the
 * nearest number. With umem::wrapping numbers out of range wrap, as by umemArray_convert_wrapping.
 * Complex numbers are converted part by part. For other types static_cast converts each element.
 * The two types may be the same.
 *
 * See transform.hpp for places, elements, order and failures. Without a place, the arrays may be on
 * any two contexts: from a GPU to the host, and from the host or a file to a GPU, the host converts
 * the elements. */
#ifndef UMEM_CONVERT_HPP
#define UMEM_CONVERT_HPP

#include <umem/element.hpp>
#include <umem/transform.hpp>

namespace umem {

/* The type of wrapping. */
struct wrapping_t {
  explicit wrapping_t() = default;
};

/* The last argument of convert: numbers that are out of the range of an integer type of n bits
 * become the number in range that differs from them by a multiple of 2^n. Infinities and NaN become
 * 0. */
inline constexpr wrapping_t wrapping{};

namespace detail {

/* One number of a type from one of another type: on host and GPU, without
 * branches, with the results of umemArray_convert. */

/* What std::numeric_limits says, without functions, which kernels cannot call. */
template <class Type> struct RangeOf {
  static constexpr int digits = std::numeric_limits<Type>::digits;
  static constexpr bool is_signed = std::numeric_limits<Type>::is_signed;
  static constexpr Type min = std::numeric_limits<Type>::min(); /* of integers */
  static constexpr Type max = std::numeric_limits<Type>::max();
  static constexpr Type epsilon = std::numeric_limits<Type>::epsilon();
};

/* ---- to integers ---- */

/* The integer in range that is nearest to an integer. */
template <class To, class From> UMEM_FUNCTION constexpr To nearest_of_integer(From x) {
  using Target = RangeOf<To>;
  using Source = RangeOf<From>;
  constexpr bool is_above = Target::digits < Source::digits;
  constexpr bool is_below = Source::is_signed && (is_above || !Target::is_signed);
  constexpr From low = is_below ? static_cast<From>(Target::min) : Source::min;
  constexpr From top = is_above ? static_cast<From>(Target::max) : Source::max;
  From const kept = x < low ? low : x;
  return static_cast<To>(kept > top ? top : kept);
}

/* A floating-point number toward zero, and what is out of range to the nearest number in range; NaN
 * becomes 0. `end` is the first power of two out of range, top the largest number of the type From
 * in range. */
template <class To, class From> UMEM_FUNCTION constexpr To nearest_of_float(From x) {
  using Target = RangeOf<To>;
  using Source = RangeOf<From>;
  constexpr bool is_exact = Target::digits <= Source::digits;
  constexpr To largest = Target::max, half = largest / 2 + 1;
  constexpr From low = static_cast<From>(Target::min);
  constexpr From end = static_cast<From>(half) * 2;
  constexpr From top = is_exact ? static_cast<From>(largest) : end * (1 - Source::epsilon / 2);
  From kept = x < low ? low : x;
  kept = kept > top ? top : kept;
  kept = x == x ? kept : 0;
  /* Processors convert to 32 bits with vectors. */
  using Between = std::conditional_t<sizeof(To) < 4, std::int32_t, To>;
  To const inside = static_cast<To>(static_cast<Between>(kept));
  return !is_exact && x >= end ? largest : inside;
}

/* A floating-point number toward zero, modulo 2^64; infinities and NaN become 0. Each step is
 * exact, and from 2^127 on all numbers of up to 64 digits are multiples of 2^64. */
template <class From> UMEM_FUNCTION constexpr std::uint64_t wrapped_of_float(From x) {
  constexpr From modulus = static_cast<From>(std::uint64_t(1) << 32) * (std::uint64_t(1) << 32);
  constexpr From large = modulus * static_cast<From>(std::uint64_t(1) << 63);
  if constexpr (RangeOf<From>::digits > 64) x = __builtin_fmodl(x, modulus);
  if (!(x > -large && x < large)) return 0;
  From const rest = x - static_cast<From>(static_cast<std::int64_t>(x / modulus)) * modulus;
  return rest < 0 ? 0 - static_cast<std::uint64_t>(-rest) : static_cast<std::uint64_t>(rest);
}

/* ---- to floating-point numbers of 16 bits ----
 *
 * By way of a float: to round twice is to round wrongly, but not if the first time is to odd. See
 * c/src/array/convert_number.h. */

/* Of the two floats beside a number that is none, the one whose last bit is 1. */
template <class From> UMEM_FUNCTION float odd_of_float(From x) {
  float const near = static_cast<float>(x);
  From const size = x < 0 ? -x : x, other = static_cast<From>(near < 0 ? -near : near);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &near, sizeof bits);
  std::uint32_t const is_even = ~bits & 1;
  bits += size > other ? is_even : 0;
  bits -= size < other ? is_even : 0;
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

/* By its first 53 bits, the last of them 1 where others follow. */
UMEM_FUNCTION inline float odd_of_size(std::uint64_t x) {
  std::uint64_t const first = x >> 11 | ((x & 2047) != 0 ? 1 : 0);
  return odd_of_float(x >> 53 ? static_cast<double>(first) * 2048 : static_cast<double>(x));
}

template <class From> UMEM_FUNCTION float odd_of(From x) {
  if constexpr (std::is_same_v<From, float>)
    return x;
  else if constexpr (std::is_floating_point_v<From>)
    return odd_of_float(x);
  else if constexpr (RangeOf<From>::digits <= 24)
    return static_cast<float>(x);
  else
    return x < 0 ? -odd_of_size(0 - static_cast<std::uint64_t>(x))
                 : odd_of_size(static_cast<std::uint64_t>(x));
}

/* ---- any type ---- */

/* wraps: numbers out of the range of an integer type wrap. */
template <class To, bool wraps, class From> UMEM_FUNCTION constexpr To converted(From const &x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_complex<To> && is_complex<From>) {
    using Part = complex_part_t<To>;
    return To(converted<Part, wraps>(x.real()), converted<Part, wraps>(x.imag()));
  } else if constexpr (is_short_float<From>) {
    return converted<To, wraps>(static_cast<float>(x));
  } else if constexpr (is_short_float<To> && std::is_arithmetic_v<From>) {
    return static_cast<To>(odd_of(x));
  } else if constexpr (is_integer<To> && is_integer<From>) {
    if constexpr (wraps)
      return static_cast<To>(x);
    else
      return nearest_of_integer<To>(x);
  } else if constexpr (is_integer<To> && std::is_floating_point_v<From>) {
    if constexpr (wraps)
      return static_cast<To>(wrapped_of_float(x));
    else
      return nearest_of_float<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/* For loops. */
template <class To, bool wraps> struct Converted {
  template <class From> UMEM_FUNCTION constexpr To operator()(From const &x) const {
    return converted<To, wraps>(x);
  }
};

inline namespace UMEM_LAUNCH_NAMESPACE {

template <bool wraps, class PlaceType, class Operand, class Other>
void convert_to(PlaceType const &place, Operand const &in, Other &out) {
  constexpr bool fits = !is_complex<value_of<Operand>> || !std::is_arithmetic_v<value_of<Other>>;
  static_assert(fits, "umem::convert: elements that are real cannot be complex numbers");
  if constexpr (fits)
    transform_uses("convert", place, Converted<value_of<Other>, wraps>(), use(out, discard),
                   use(in, read));
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out = in */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
void convert(PlaceType const &place, Operand const &in, Other &&out) {
  detail::convert_to<false>(place, in, out);
}

/* With umem::wrapping, integers out of range wrap. */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
void convert(PlaceType const &place, Operand const &in, Other &&out, wrapping_t) {
  detail::convert_to<true>(place, in, out);
}
UMEM_AT_HOME(convert)

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
