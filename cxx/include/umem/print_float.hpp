/* umem/print_float.hpp - floating-point numbers in columns, as NumPy prints them. Programs
 * include print.hpp. The rules: at most 8 digits after the point, fewer if fewer distinguish a
 * number from its neighbours; all numbers in scientific form if one number, or the ratio of two,
 * requires it. */
#ifndef UMEM_PRINT_FLOAT_HPP
#define UMEM_PRINT_FLOAT_HPP

#include <umem/element.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

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
  std::string sign(bool plus) const { return std::signbit(value) ? "-" : plus ? "+" : ""; }
};

/* Parses a text of the form of "%e". */
inline Decimal decimal_of(long double value, std::string const &text) {
  if (!std::isfinite(value)) return {value, "", 0};
  std::size_t e = text.find('e');
  std::string digits;
  for (char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  digits.resize(std::max<std::size_t>(1, digits.find_last_not_of('0') + 1));
  return {value, digits, std::atoi(text.c_str() + e + 1)};
}

template <class T> Decimal shortest(T value) {
  char text[64];
  if constexpr (is_short_float<T>) {
    float exact = static_cast<float>(value);
    for (int digits = 0; digits <= 8; digits++) {
      std::snprintf(text, sizeof text, "%.*e", digits, static_cast<double>(exact));
      if (static_cast<float>(T(std::strtof(text, nullptr))) == exact) break;
    }
    return decimal_of(static_cast<long double>(exact), text);
  } else {
    *std::to_chars(text, text + sizeof text - 1, value, std::chars_format::scientific).ptr = '\0';
    return decimal_of(static_cast<long double>(value), text);
  }
}

/* ---- one number, without its sign ---- */

/* The text that printf makes of the magnitude. */
inline std::string rounded(bool scientific, int precision, Decimal const &number) {
  char text[5200]; /* the largest long double has 4933 digits before the point */
  std::snprintf(text, sizeof text, scientific ? "%#.*Le" : "%#.*Lf", precision,
                std::fabs(number.value));
  return text;
}

inline std::string without_zeros(std::string text) {
  text.resize(text.find_last_not_of('0') + 1);
  return text;
}

/* "12.5", "3." : with a point, without zeros at the end, at most precision digits after the
 * point. */
inline std::string positional(Decimal const &number, int precision) {
  if (number.fraction() - number.exponent > precision)
    return without_zeros(rounded(false, precision, number));
  std::string text;
  for (int k = std::min(0, number.exponent); k <= number.exponent; k++) text += number.digit(k);
  if (number.exponent < 0) text = "0";
  text += '.';
  for (int k = number.exponent + 1; k <= number.fraction(); k++) text += number.digit(k);
  return text;
}

struct Scientific {
  std::string mantissa; /* "1.25", "3." */
  int exponent;
};

/* precision digits after the point; fewer if fewer distinguish the value. */
inline Scientific scientific(Decimal const &number, int precision) {
  if (number.fraction() == precision)
    return {number.digits.substr(0, 1) + "." + number.digits.substr(1), number.exponent};
  std::string text = rounded(true, precision, number);
  std::size_t e = text.find('e');
  return {text.substr(0, e), std::atoi(text.c_str() + e + 1)};
}

/* "e+05": at least `digits` digits of the exponent. */
inline std::string exponent_text(int exponent, std::size_t digits) {
  std::string text = std::to_string(std::abs(exponent));
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return (exponent < 0 ? "e-" : "e+") + text;
}

/* The text of infinities and NaN. */
inline std::string special(Decimal const &number, bool plus) {
  if (std::isnan(number.value)) return plus ? "+nan" : "nan";
  return number.sign(plus) + "inf";
}

/* A single number, with all its digits; in scientific form from limit on. If short, "3.0" is
 * "3". */
inline std::string scalar_text(Decimal const &number, long double limit, bool plus, bool is_short) {
  if (!number.is_finite()) return special(number, plus);
  std::string text;
  long double magnitude = std::fabs(number.value);
  if (number.value == 0 || (magnitude >= 1e-4L && magnitude < limit)) {
    text = positional(number, std::max(0, number.fraction() - number.exponent));
    if (text.back() != '.') return number.sign(plus) + text;
    return number.sign(plus) + (is_short ? text.substr(0, text.size() - 1) : text + "0");
  }
  text = scientific(number, number.fraction()).mantissa;
  if (text.back() == '.') text.pop_back();
  return number.sign(plus) + text + exponent_text(number.exponent, 2);
}

/* ---- numbers in columns ---- */

/* The common widths of the parts of all numbers in a column. */
class FloatColumn {
public:
  /* plus: numbers that are not negative get a sign. */
  FloatColumn(std::vector<Decimal> const &numbers, bool is_scientific, bool plus)
      : is_scientific_(is_scientific), plus_(plus) {
    for (Decimal const &number : numbers)
      if (number.is_finite()) fit(number);
    for (Decimal const &number : numbers) /* last: these fill the width of the others */
      if (!number.is_finite()) fit_special(number);
  }

  std::string word(Decimal const &number) const {
    if (!number.is_finite()) return aligned(special(number, plus_), left_ + 1 + right());
    if (is_scientific_) {
      Scientific parts = scientific(number, static_cast<int>(fraction_));
      return aligned(number.sign(plus_) + parts.mantissa, left_ + 1 + fraction_) +
             exponent_text(parts.exponent, exponent_);
    }
    std::string text = number.sign(plus_) + positional(number, most_digits);
    std::size_t behind = text.size() - text.find('.') - 1;
    return aligned(text, left_ + 1 + behind) + std::string(fraction_ - behind, ' ');
  }

private:
  static constexpr int most_digits = 8; /* after the point */

  static std::string aligned(std::string const &text, std::size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
  }

  void fit(Decimal const &number) {
    std::string text;
    if (is_scientific_) {
      Scientific parts = scientific(number, std::min(most_digits, number.fraction()));
      text = without_zeros(parts.mantissa);
      exponent_ = std::max(exponent_, exponent_text(parts.exponent, 2).size() - 2);
    } else
      text = positional(number, most_digits);
    std::size_t point = text.find('.');
    left_ = std::max(left_, number.sign(plus_).size() + point);
    fraction_ = std::max(fraction_, text.size() - point - 1);
  }

  void fit_special(Decimal const &number) {
    bool is_negative = std::isinf(number.value) && number.value < 0;
    std::size_t width = is_negative || plus_ ? 4 : 3, rest = right() + 1;
    if (width > rest) left_ = std::max(left_, width - rest);
  }

  /* The text after the point. */
  std::size_t right() const noexcept { return fraction_ + (exponent_ ? exponent_ + 2 : 0); }

  bool is_scientific_;
  bool plus_;
  std::size_t left_ = 0;     /* before the point, with the sign */
  std::size_t fraction_ = 0; /* digits after the point */
  std::size_t exponent_ = 0; /* digits of the exponent; 0 for none */
};

/* The decimal digits that every number of type T can have. */
template <class T>
inline constexpr int decimal_digits =
    is_half<T>                         ? 3
    : std::is_same_v<T, __nv_bfloat16> ? 2
                                       : std::numeric_limits<T>::digits10;

/* From this value on, scalars of type T are printed in scientific form. */
template <class T> long double scalar_limit() {
  return decimal_digits<T> < 15 ? std::pow(10.L, decimal_digits<T>) : 1e16L;
}

/* Whether some numbers are too large, too small or too far apart for columns with aligned
 * points. All comparisons are in their own type. */
template <class T> bool want_scientific(std::vector<T> const &numbers) {
  using Real = std::conditional_t<is_short_float<T>, float, T>;
  Real largest = 0, smallest = 0;
  for (T number : numbers) {
    Real magnitude = std::fabs(static_cast<Real>(number));
    if (!std::isfinite(magnitude) || !(magnitude > 0)) continue;
    largest = std::max(largest, magnitude);
    smallest = smallest > 0 ? std::min(smallest, magnitude) : magnitude;
  }
  if (!(largest > 0)) return false;
  return largest >= static_cast<Real>(std::pow(10., std::min(8, decimal_digits<T>))) ||
         smallest < static_cast<Real>(0.0001) || largest / smallest > static_cast<Real>(1000);
}

} // namespace detail
} // namespace umem

#endif
