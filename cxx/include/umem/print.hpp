/* umem/print.hpp - arrays, parts, views and guards on streams, as NumPy prints them.
 *
 *     std::cout << array << '\n';              // [[0.  0.5]
 *                                              //  [1.  1.5]]
 *
 * Of more than 1000 elements it prints only the first and the last three of each dimension. It
 * breaks lines at 75 characters. Elements are numbers: bool, integers, floats, complex. Ghost
 * cells are not printed. The text does not depend on the locale: numbers have "." and no separators of thousands. */
#ifndef UMEM_PRINT_HPP
#define UMEM_PRINT_HPP

#include <umem/detail/operand.hpp>
#include <umem/detail/printed.hpp>
#include <umem/element.hpp>
#include <umem/view.hpp>

#include <ostream>
#include <string>
#include <type_traits>

namespace umem {
namespace detail {

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

/* The text of any operand of a loop. Brings the elements of an array to the host, of a smaller part only these. */
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
template <class Operand, class = std::enable_if_t<detail::is_operand<Operand>>>
std::ostream &operator<<(std::ostream &stream, Operand const &elements) {
  return stream << detail::printed_text(elements);
}

} // namespace umem

#endif
