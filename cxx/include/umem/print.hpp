/* umem/print.hpp - arrays, parts, views and guards on streams, as NumPy prints them.
 *
 *     std::cout << array << '\n';              // [[0.  0.5]
 *                                              //  [1.  1.5]]
 *
 * Of more than 1000 elements it prints only the first and the last three of each dimension. It
 * breaks lines at 75 characters. Elements are numbers: bool, integers, floats, complex. Ghost cells
 * are not printed. The text does not depend on the locale: numbers have "." and no separators of
 * thousands. */
#ifndef UMEM_PRINT_HPP
#define UMEM_PRINT_HPP

#include <umem/detail/operand.hpp>
#include <umem/element.hpp>

#include <charconv>
#include <cmath>
#include <ostream>

namespace umem {
namespace detail {

/* ---- floating-point numbers as decimal digits ---- */

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

/* What decides about the form of numbers of a type: the decimal digits that each can have, and the
 * type that they are compared in. */
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

/* ---- the text of one array: which of its elements it shows, and where ---- */

/* The elements of an array that are shown: their offsets from the first in elements, in the order
 * of the text; the caller gives each to add. Then text() is that of the array. A rank of 0 is that
 * of one element without brackets. */
class Printed {
public:
  std::vector<index_t> const offsets;

  Printed(int rank, index_t const *extents, index_t const *strides);

  void add(std::string const &word);
  void add(Decimal const &number);
  void add(Decimal const &real, Decimal const &imag);

  /* Of words, which it makes equally wide: at least width. */
  std::string text(std::size_t width);
  /* Of numbers. */
  std::string text(FloatKind kind);

private:
  struct Rows; /* what is printed so far */

  int rank_;
  index_t const *extents_;
  bool is_summary_;
  std::vector<std::string> words_;
  std::vector<Decimal> real_, imag_;

  std::string in_brackets() const;
};

/* The text of an integer or a bool. */
template <class Type> std::string integer_text(Type value) {
  static_assert(std::is_integral_v<Type>,
                "operator<<: elements that are printed must be numbers; print members one by one");
  if constexpr (std::is_same_v<Type, bool>)
    return value ? "True" : "False";
  else if constexpr (std::is_integral_v<Type>)
    return std::to_string(value);
  else
    return std::string();
}

template <class Type> std::string print_elements(Type const *data, Printed printed) {
  if constexpr (std::is_floating_point_v<Type> || is_short_float<Type>) {
    for (index_t at : printed.offsets) printed.add(shortest(data[at]));
    return printed.text(float_kind<Type>);
  } else if constexpr (is_complex<Type>) {
    using Part = complex_part_t<Type>;
    for (index_t at : printed.offsets)
      printed.add(shortest(static_cast<Part>(data[at].real())),
                  shortest(static_cast<Part>(data[at].imag())));
    return printed.text(float_kind<Part>);
  } else {
    for (index_t at : printed.offsets) printed.add(integer_text(data[at]));
    return printed.text(std::is_same_v<Type, bool> ? 5 : 0); /* that of False */
  }
}

template <class Type, int Rank> std::string print(View<Type const, Rank> const &view) {
  if (Rank > 0 && view.is_empty()) return "[]";
  if (!view.data) throw value_error("an empty view cannot be printed");
  return print_elements<Type>(view.data, Printed(Rank, view.extents.begin(), view.strides.begin()));
}

/* The text of any operand of a loop. Brings the elements of an array to the host, of a smaller part
 * only these. */
template <class Operand> std::string printed_text(Operand const &elements) {
  constexpr int Rank = rank_of<Operand>;
  if constexpr (kind_of<Operand> == OperandKind::view) {
    return print<value_of<Operand>, Rank>(elements);
  } else {
    auto const text = [](auto const &view) { return print<value_of<Operand>, Rank>(view); };
    return with_views(settled(on_host, elements), text, use(elements, read));
  }
}

} // namespace detail

template <class Type, int Rank>
std::ostream &operator<<(std::ostream &stream, View<Type, Rank> const &view) {
  return stream << detail::printed_text(view);
}

/* Any other operand of a loop: an array, a part, a guard. Brings the elements to the host, of a
 * smaller part only these: see for_each.hpp. */
template <class Operand, class = detail::if_operand<Operand>>
std::ostream &operator<<(std::ostream &stream, Operand const &elements) {
  return stream << detail::printed_text(elements);
}

} // namespace umem

#endif

#if !defined(UMEM_PRINT_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_PRINT_FUNCTIONS

namespace umem::detail {

UMEM_INLINE Decimal decimal_of(long double value, char const *text) {
  if (!std::isfinite(value)) return {value, "", 0};
  std::string digits;
  for (; *text && *text != 'e'; text++)
    if (*text >= '0' && *text <= '9') digits += *text;
  digits.resize(std::max<std::size_t>(1, digits.find_last_not_of('0') + 1));
  return {value, digits, std::atoi(text + 1)};
}

template <class Type> Decimal shortest_of(Type value) {
  char text[64];
  *std::to_chars(text, text + sizeof text - 1, value, std::chars_format::scientific).ptr = '\0';
  return decimal_of(static_cast<long double>(value), text);
}
UMEM_INLINE Decimal shortest(float value) { return shortest_of(value); }
UMEM_INLINE Decimal shortest(double value) { return shortest_of(value); }
/* Not by to_chars: that of libc++ takes a long double for a double. The numbers above a power of
 * two are twice as far apart as those below, so that the next number of some digits may be this one
 * where the nearest is not. */
UMEM_INLINE Decimal shortest(long double value) {
  char text[64];
  for (int digits = 0; digits < std::numeric_limits<long double>::max_digits10; digits++) {
    std::snprintf(text, sizeof text, "%.*Le", digits, value);
    if (std::strtold(text, nullptr) == value) break;
    char &last = text[std::strcspn(text, "e") - 1];
    if (last < '0' || last >= '9') continue;
    ++last;
    if (std::strtold(text, nullptr) == value) break;
  }
  return decimal_of(value, text);
}

/* ---- one number, without its sign ---- */

/* The text that printf makes of the magnitude. Its point is "." whatever the locale is. */
UMEM_INLINE std::string rounded(bool scientific, int precision, Decimal const &number) {
  char text[5200]; /* the largest long double has 4933 digits before the point */
  std::snprintf(text, sizeof text, scientific ? "%#.*Le" : "%#.*Lf", precision,
                std::fabs(number.value));
  std::size_t const point = std::strspn(text, "0123456789");
  std::string result(text, point); /* to replace characters makes GCC 12 warn at -O3 */
  return (result += '.').append(text + point + std::strcspn(text + point, "0123456789e"));
}

UMEM_INLINE std::string without_zeros(std::string text) {
  text.resize(text.find_last_not_of('0') + 1);
  return text;
}

/* "12.5", "3." : with a point, without zeros at the end, at most precision digits after the
 * point. */
UMEM_INLINE std::string positional(Decimal const &number, int precision) {
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
UMEM_INLINE Scientific scientific(Decimal const &number, int precision) {
  Scientific parts{number.digits, number.exponent};
  if (number.fraction() == precision) {
    parts.mantissa.insert(1, ".");
  } else {
    parts.mantissa = rounded(true, precision, number);
    std::size_t const e = parts.mantissa.find('e');
    parts.exponent = std::atoi(parts.mantissa.c_str() + e + 1);
    parts.mantissa.resize(e);
  }
  return parts;
}

/* "e+05": at least `digits` digits of the exponent. */
UMEM_INLINE std::string exponent_text(int exponent, std::size_t digits) {
  char text[16];
  std::snprintf(text, sizeof text, "e%c%0*d", exponent < 0 ? '-' : '+', static_cast<int>(digits),
                std::abs(exponent));
  return text;
}

/* The text of infinities and NaN. */
UMEM_INLINE std::string special(Decimal const &number, bool plus) {
  if (std::isnan(number.value)) return plus ? "+nan" : "nan";
  return std::string(number.sign(plus)) += "inf";
}

/* A single number, with all its digits; if short, "3.0" is "3". */
UMEM_INLINE std::string scalar_text(Decimal const &number, FloatKind kind, bool plus = false,
                                    bool is_short = false) {
  if (!number.is_finite()) return special(number, plus);
  std::string text = number.sign(plus);
  long double const magnitude = std::fabs(number.value),
                    limit = kind.digits < 15 ? std::pow(10.L, kind.digits) : 1e16L;
  if (number.value == 0 || (magnitude >= 1e-4L && magnitude < limit)) {
    text += positional(number, std::max(0, number.fraction() - number.exponent));
    if (text.back() != '.') return text;
    if (is_short)
      text.pop_back();
    else
      text += '0';
    return text;
  }
  text += scientific(number, number.fraction()).mantissa;
  if (text.back() == '.') text.pop_back();
  return text += exponent_text(number.exponent, 2);
}

UMEM_INLINE std::string scalar_text(Decimal const &real, Decimal const &imag, FloatKind kind) {
  if (real.value == 0 && !std::signbit(real.value))
    return scalar_text(imag, kind, false, true) += "j";
  std::string text = "(";
  text += scalar_text(real, kind, false, true);
  text += scalar_text(imag, kind, true, true);
  return text += "j)";
}

/* ---- numbers in columns ---- */

/* The text at the end of this width. */
UMEM_INLINE std::string aligned(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

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
    std::string text = number.sign(plus_);
    if (is_scientific_) {
      Scientific const parts = scientific(number, static_cast<int>(fraction_));
      text = aligned(text += parts.mantissa, left_ + 1 + fraction_);
      return text += exponent_text(parts.exponent, exponent_);
    }
    text += positional(number, most_digits);
    std::size_t const behind = text.size() - text.find('.') - 1;
    text = aligned(text, left_ + 1 + behind);
    return text.append(fraction_ - behind, ' ');
  }

private:
  static constexpr int most_digits = 8; /* after the point */

  void fit(Decimal const &number) {
    std::string text;
    if (is_scientific_) {
      Scientific const parts = scientific(number, std::min(most_digits, number.fraction()));
      text = without_zeros(parts.mantissa);
      exponent_ = std::max(exponent_, exponent_text(parts.exponent, 2).size() - 2);
    } else
      text = positional(number, most_digits);
    std::size_t const point = text.find('.'), sign = *number.sign(plus_) ? 1 : 0;
    left_ = std::max(left_, sign + point);
    fraction_ = std::max(fraction_, text.size() - point - 1);
  }

  void fit_special(Decimal const &number) {
    bool const is_negative = std::isinf(number.value) && number.value < 0;
    std::size_t const width = is_negative || plus_ ? 4 : 3, rest = right() + 1;
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

template <class RealType>
bool want_scientific_as(long double largest, long double smallest, int digits) {
  RealType const high = static_cast<RealType>(largest), low = static_cast<RealType>(smallest);
  return high >= static_cast<RealType>(std::pow(10., std::min(8, digits))) ||
         low < static_cast<RealType>(0.0001) || high / low > static_cast<RealType>(1000);
}

/* Whether some numbers are too large, too small or too far apart for columns with aligned
 * points. All comparisons are in their own type. */
UMEM_INLINE bool want_scientific(std::vector<Decimal> const &numbers, FloatKind kind) {
  long double largest = 0, smallest = 0;
  for (Decimal const &number : numbers) {
    long double const magnitude = std::fabs(number.value);
    if (!number.is_finite() || !(magnitude > 0)) continue;
    largest = std::max(largest, magnitude);
    smallest = smallest > 0 ? std::min(smallest, magnitude) : magnitude;
  }
  if (!(largest > 0)) return false;
  return kind.real == FloatKind::in_float
             ? want_scientific_as<float>(largest, smallest, kind.digits)
         : kind.real == FloatKind::in_double
             ? want_scientific_as<double>(largest, smallest, kind.digits)
             : want_scientific_as<long double>(largest, smallest, kind.digits);
}

/* Numbers as words of equal width: at most 8 digits after the point, fewer if fewer distinguish a
 * number from its neighbours; all in scientific form if one number, or the ratio of two, requires
 * it. plus: numbers that are not negative get a sign. */
UMEM_INLINE std::vector<std::string> words_of(std::vector<Decimal> const &numbers, FloatKind kind,
                                              bool plus = false) {
  FloatColumn const column(numbers, want_scientific(numbers, kind), plus);
  std::vector<std::string> words;
  words.reserve(numbers.size());
  for (Decimal const &number : numbers) words.push_back(column.word(number));
  return words;
}

/* ---- rows and brackets ---- */

inline constexpr index_t printed_edge = 3; /* elements at each edge of a summary */

/* The index after i of those shown; it is that of the other edge after `printed_edge` ones. */
inline index_t next_shown(index_t i, index_t extent, bool is_summary) {
  return is_summary && extent > 2 * printed_edge && i + 1 == printed_edge ? extent - printed_edge
                                                                          : i + 1;
}

UMEM_INLINE void add_offsets(std::vector<index_t> &to, int rank, index_t const *extents,
                             index_t const *strides, bool is_summary, index_t from) {
  if (rank == 0) return to.push_back(from);
  for (index_t i = 0; i < extents[0]; i = next_shown(i, extents[0], is_summary))
    add_offsets(to, rank - 1, extents + 1, strides + 1, is_summary, from + i * strides[0]);
}

UMEM_INLINE bool is_summary(int rank, index_t const *extents) {
  index_t size = 1;
  for (int k = 0; k < rank; k++) size *= extents[k];
  return size > 1000;
}

UMEM_INLINE std::vector<index_t> shown_offsets(int rank, index_t const *extents,
                                               index_t const *strides) {
  std::vector<index_t> offsets;
  add_offsets(offsets, rank, extents, strides, is_summary(rank, extents), 0);
  return offsets;
}

UMEM_INLINE Printed::Printed(int rank, index_t const *extents, index_t const *strides)
    : offsets(shown_offsets(rank, extents, strides)), rank_(rank), extents_(extents),
      is_summary_(is_summary(rank, extents)) {}

UMEM_INLINE void Printed::add(std::string const &word) { words_.push_back(word); }
UMEM_INLINE void Printed::add(Decimal const &number) { real_.push_back(number); }
UMEM_INLINE void Printed::add(Decimal const &real, Decimal const &imag) {
  real_.push_back(real);
  imag_.push_back(imag);
}

/* Writes words in their order. */
struct Printed::Rows {
  Printed const &of;
  std::string text;
  std::size_t next; /* word */

  /* Calls item() for each index shown of dimension k, and gap() between the edges. */
  template <class Item, class Gap> void for_shown(int k, Item const &item, Gap const &gap) {
    index_t const extent = of.extents_[k];
    for (index_t i = 0, following; i < extent; i = following) {
      item();
      following = next_shown(i, extent, of.is_summary_);
      if (following > i + 1) gap();
    }
  }

  void print(int k);
  void print_row();
};

/* The elements of dimension k and those after it, in brackets. */
UMEM_INLINE void Printed::Rows::print(int k) {
  text += '[';
  if (k == of.rank_ - 1) {
    print_row();
  } else {
    bool first = true;
    auto separate = [&] {
      if (!first)
        text.append(static_cast<std::size_t>(of.rank_) - 1 - static_cast<std::size_t>(k), '\n')
            .append(1 + static_cast<std::size_t>(k), ' ');
      first = false;
    };
    for_shown(
        k,
        [&] {
          separate();
          print(k + 1);
        },
        [&] {
          separate();
          text += "...";
        });
  }
  text += ']';
}

/* The last dimension: its words, in as many lines as they need. */
UMEM_INLINE void Printed::Rows::print_row() {
  std::size_t const line_length = 75;
  auto const brackets =
      static_cast<std::size_t>(of.rank_); /* the width of those before the first line */
  std::string const indent(brackets, ' ');
  std::string rows, line = indent;
  auto add = [&](char const *word, std::size_t length) {
    if (line.size() + length > line_length - brackets && line != indent) {
      line.resize(line.find_last_not_of(' ') + 1);
      rows += line;
      rows += '\n';
      line = indent;
    }
    line.append(word, length) += ' ';
  };
  for_shown(
      of.rank_ - 1,
      [&] {
        std::string const &word = of.words_[next++];
        add(word.data(), word.size());
      },
      [&] { add("...", 3); });
  line.pop_back();
  rows += line;
  text.append(rows, brackets, std::string::npos);
}

UMEM_INLINE std::string Printed::in_brackets() const {
  Rows rows = {*this, std::string(), 0};
  rows.print(0);
  return rows.text;
}

UMEM_INLINE std::string Printed::text(std::size_t width) {
  if (rank_ == 0) return words_[0];
  for (std::string const &word : words_) width = std::max(width, word.size());
  for (std::string &word : words_) word = aligned(word, width);
  return in_brackets();
}

UMEM_INLINE std::string Printed::text(FloatKind kind) {
  if (rank_ == 0)
    return imag_.empty() ? scalar_text(real_[0], kind) : scalar_text(real_[0], imag_[0], kind);
  words_ = words_of(real_, kind);
  if (!imag_.empty()) {
    std::vector<std::string> imag = words_of(imag_, kind, true);
    for (std::size_t n = 0; n < words_.size(); n++) {
      imag[n].insert(imag[n].find_last_not_of(' ') + 1, "j");
      words_[n] += imag[n];
    }
  }
  return in_brackets();
}

} // namespace umem::detail

#endif
