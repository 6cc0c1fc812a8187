/* umem/format.hpp - std::format of arrays, parts, views and guards, with the text of print.hpp.
 *
 *     std::string text = std::format("u = {}", array);
 *     std::format("{:>30}", view);                     // width, fill and precision as for strings
 *
 * For C++20 libraries with <format>; with others this header is print.hpp. std::print and
 * std::format_to work likewise. Element types, long arrays and failures are as for operator<<. */
#ifndef UMEM_FORMAT_HPP
#define UMEM_FORMAT_HPP

#include <umem/print.hpp>

#if __cplusplus >= 202002L && __has_include(<version>) && __has_include(<format>)
#include <version>
#endif

#if defined(__cpp_lib_format)
#include <format>
#include <string_view>
#include <type_traits>

#if defined(__cpp_lib_format_ranges)
#include <concepts>
#include <ranges>

/* Those of rank 1 are ranges, too: C++23 would print them as such. */
template <class Operand>
requires std::ranges::input_range<Operand> && std::same_as<Operand, std::remove_cvref_t<Operand>> &&
    umem::detail::is_operand<Operand>
inline constexpr std::range_format std::format_kind<Operand> = std::range_format::disabled;
#endif

template <class Operand>
requires umem::detail::is_operand<Operand>
struct std::formatter<Operand, char> : std::formatter<std::string_view, char> {
  template <class Context> auto format(Operand const &elements, Context &context) const {
    return std::formatter<std::string_view, char>::format(umem::detail::printed_text(elements),
                                                          context);
  }
};
#endif

#endif
