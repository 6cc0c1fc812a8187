/* umem/detail/decimal.hpp - floating-point numbers as decimal digits, for print.hpp. */
#ifndef UMEM_DETAIL_DECIMAL_HPP
#define UMEM_DETAIL_DECIMAL_HPP

#include <umem/element.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

namespace umem {
namespace detail {

/* A number and the fewest decimal digits d that distinguish it from the others of its type:
 * d[0].d[1]d[2]... times 10 to the exponent. Infinities and NaN have no digits. */
struct Decimal {
  long double value;
  std::string digits;
  int exponent;

  bool is_finite() const noexcept { return !digits.empty(); }
  int fraction() const noexcept { return static_cast<int>(digits.size()) - 1; }

  /* The digit of 10 to the exponent - k; zeros on either side. */
  char digit(int k) const noexcept {
    return k >= 0 && k <= fraction() ? digits[static_cast<std::size_t>(k)] : '0';
  }

  /* "-", or the sign of numbers that are not negative. */
  char const *sign(bool plus) const noexcept { return std::signbit(value) ? "-" : plus ? "+" : ""; }
};

/* Parses a text of the form of "%e". */
Decimal decimal_of(long double value, char const *text);

Decimal shortest(float value);
Decimal shortest(double value);
Decimal shortest(long double value);

/* Of 16 bits. */
template <class Type, class = std::enable_if_t<is_short_float<Type>>> Decimal shortest(Type value) {
  char text[64];
  float const exact = static_cast<float>(value);
  for (int digits = 0; digits <= 8; digits++) {
    std::snprintf(text, sizeof text, "%.*e", digits, static_cast<double>(exact));
    if (static_cast<float>(Type(std::strtof(text, nullptr))) == exact) break;
  }
  return decimal_of(static_cast<long double>(exact), text);
}

/* What decides about the form of numbers of a type: the decimal digits that each can have, and the type that they are
 * compared in. */
struct FloatKind {
  int digits;
  enum RealType { in_float, in_double, in_long_double } real;
};

template <class Type>
inline constexpr FloatKind float_kind = {
    is_half<Type>                         ? 3
    : std::is_same_v<Type, __nv_bfloat16> ? 2
                                          : std::numeric_limits<Type>::digits10,
    is_short_float<Type> || std::is_same_v<Type, float> ? FloatKind::in_float
    : std::is_same_v<Type, double>                      ? FloatKind::in_double
                                                        : FloatKind::in_long_double};

} // namespace detail
} // namespace umem

#endif
