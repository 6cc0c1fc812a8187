/* umem/print.hpp - arrays, parts, views and guards on streams, as NumPy prints them.
 *
 *     std::cout << array << '\n';              // [[0.  0.5]
 *                                              //  [1.  1.5]]
 *
 * Of more than 1000 elements it prints only the first and the last three of each dimension. It
 * breaks lines at 75 characters. Elements are numbers: bool, integers, floats, complex. Ghost
 * cells are not printed. */
#ifndef UMEM_PRINT_HPP
#define UMEM_PRINT_HPP

#include <umem/detail/operand.hpp>
#include <umem/element.hpp>
#include <umem/extents.hpp>
#include <umem/print_float.hpp>
#include <umem/view.hpp>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

namespace umem {
namespace detail {

/* ---- the text of elements, in columns and of a scalar ---- */

/* Integers and bool. */
template <class T, class = void> class Words {
  static_assert(std::is_integral_v<T>,
                "operator<<: elements that are printed must be numbers; print members one by one");

public:
  explicit Words(std::vector<T> const &values) {
    for (T value : values) width_ = std::max(width_, scalar(value).size());
    if (std::is_same_v<T, bool>) width_ = 5; /* of False */
  }

  std::string operator()(T value) const {
    std::string text = scalar(value);
    return std::string(width_ - text.size(), ' ') + text;
  }

  static std::string scalar(T value) {
    if constexpr (std::is_same_v<T, bool>)
      return value ? "True" : "False";
    else
      return std::to_string(value);
  }

private:
  std::size_t width_ = 0;
};

template <class T>
class Words<T, std::enable_if_t<std::is_floating_point_v<T> || is_short_float<T>>> {
public:
  explicit Words(std::vector<T> const &values, bool plus = false)
      : column_(decimals(values), want_scientific(values), plus) {}

  std::string operator()(T value) const { return column_.word(shortest(value)); }

  static std::string scalar(T value) {
    return scalar_text(shortest(value), scalar_limit<T>(), false, false);
  }

private:
  static std::vector<Decimal> decimals(std::vector<T> const &values) {
    std::vector<Decimal> result;
    result.reserve(values.size());
    for (T value : values) result.push_back(shortest(value));
    return result;
  }

  FloatColumn column_;
};

template <class T> class Words<T, std::enable_if_t<is_complex<T>>> {
  using Part = complex_part_t<T>;

public:
  explicit Words(std::vector<T> const &values)
      : real_(parts(values, [](T const &value) { return value.real(); })),
        imag_(parts(values, [](T const &value) { return value.imag(); }), true) {}

  std::string operator()(T const &value) const {
    std::string imag = imag_(value.imag());
    imag.insert(imag.find_last_not_of(' ') + 1, "j");
    return real_(value.real()) + imag;
  }

  static std::string scalar(T const &value) {
    long double limit = scalar_limit<Part>();
    Decimal real = shortest(static_cast<Part>(value.real()));
    Decimal imag = shortest(static_cast<Part>(value.imag()));
    if (real.value == 0 && !std::signbit(real.value))
      return scalar_text(imag, limit, false, true) + "j";
    return "(" + scalar_text(real, limit, false, true) + scalar_text(imag, limit, true, true) +
           "j)";
  }

private:
  template <class F> static std::vector<Part> parts(std::vector<T> const &values, F const &part) {
    std::vector<Part> result;
    for (T const &value : values) result.push_back(part(value));
    return result;
  }

  Words<Part> real_;
  Words<Part> imag_;
};

/* ---- rows and brackets ---- */

/* Prints one view into a string. */
template <class T, int N> class Printer {
public:
  explicit Printer(View<T const, N> const &view)
      : view_(view), is_summary_(view.size() > 1000), words_(shown()) {}

  std::string text() {
    print(0);
    return text_;
  }

private:
  /* The number of elements at each edge of a summary. */
  static constexpr index edge = 3;
  static constexpr std::size_t line_length = 75;

  bool is_cut(int k) const { return is_summary_ && view_.extent(k) > 2 * edge; }

  /* Calls item(i) for the printed indices i of dimension k, and gap() between the edges. */
  template <class Item, class Gap> void for_shown(int k, Item const &item, Gap const &gap) {
    index extent = view_.extent(k);
    for (index i = 0; i < extent; i++) {
      if (is_cut(k) && i == edge) {
        gap();
        i = extent - edge;
      }
      item(i);
    }
  }

  /* The printed elements. */
  std::vector<T> shown() {
    std::vector<T> values;
    collect(0, values);
    return values;
  }

  void collect(int k, std::vector<T> &values) {
    if (k == N) return values.push_back(view_(at_));
    for_shown(
        k,
        [&](index i) {
          at_[k] = i;
          collect(k + 1, values);
        },
        [] {});
  }

  /* The elements with the indices at_ before dimension k. */
  void print(int k) {
    text_ += '[';
    if (k == N - 1)
      print_row();
    else
      print_rows(k);
    text_ += ']';
  }

  void print_rows(int k) {
    std::string between;
    auto separate = [&] {
      text_ += between;
      between = std::string(static_cast<std::size_t>(N - 1 - k), '\n') +
                std::string(static_cast<std::size_t>(k + 1), ' ');
    };
    for_shown(
        k,
        [&](index i) {
          separate();
          at_[k] = i;
          print(k + 1);
        },
        [&] {
          separate();
          text_ += "...";
        });
  }

  /* The last dimension: its texts, in as many lines as they need. */
  void print_row() {
    std::string const indent(N, ' '); /* the width of the brackets before the first line */
    std::string rows, line = indent;
    auto add = [&](std::string const &word) {
      if (line.size() + word.size() > line_length - N && line != indent) {
        rows += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
        line = indent;
      }
      line += word + ' ';
    };
    for_shown(
        N - 1,
        [&](index i) {
          at_[N - 1] = i;
          add(words_(view_(at_)));
        },
        [&] { add("..."); });
    line.pop_back();
    text_ += (rows + line).substr(N);
  }

  View<T const, N> view_;
  bool is_summary_;
  Extents<N> at_;
  Words<T> words_;
  std::string text_;
};

template <class T, int N> std::string print(View<T const, N> const &view) {
  if (N > 0 && view.is_empty()) return "[]";
  if (!view.data) throw value_error("an empty view cannot be printed");
  if constexpr (N == 0)
    return Words<T>::scalar(view());
  else
    return Printer<T, N>(view).text();
}

} // namespace detail

template <class T, int N> std::ostream &operator<<(std::ostream &stream, View<T, N> const &view) {
  return stream << detail::print<std::remove_cv_t<T>, N>(view);
}

/* Any other operand of a loop: an array, a part, a guard. Brings the elements to the host, of a smaller part only these:
 * see for_each.hpp. */
template <class A, class = std::enable_if_t<detail::is_operand<A>>>
std::ostream &operator<<(std::ostream &stream, A const &elements) {
  auto const text = [](auto const &view) {
    using V = detail::bare_t<decltype(view)>;
    return detail::print<typename V::value_type, V::rank>(view);
  };
  auto const where = detail::settled(on_host, elements);
  return stream << detail::with_views(where, text, detail::use(elements, read));
}

} // namespace umem

#endif
