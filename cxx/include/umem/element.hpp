/* umem/element.hpp - the kinds of elements, for files (npy.hpp) and text (print.hpp), and numbers
 * that become elements. */
#ifndef UMEM_ELEMENT_HPP
#define UMEM_ELEMENT_HPP

#include <umem/error.hpp>

#include <limits>

/* The types of CUDA, if its headers define them. */
struct __half;
struct __nv_bfloat16;

namespace umem {
namespace detail {

template <class Type, class = void> struct complex_part { using type = void; };

/* std::complex, cuda::std::complex and similar types: two floating-point numbers side by side. */
template <class Type>
struct complex_part<
    Type, std::void_t<typename Type::value_type, decltype(std::declval<Type const &>().real()),
                      decltype(std::declval<Type const &>().imag())>> {
  using type = typename Type::value_type;
};

/* The type of the real and imaginary part; void if Type is no complex number. */
template <class Type> using complex_part_t = typename complex_part<Type>::type;

template <class Type> inline constexpr bool is_complex = !std::is_void_v<complex_part_t<Type>>;

/* _Float16, if the compiler has it in C++; some standard libraries do not support it. GCC has it
 * in C++ since version 13, on x86 since 12. The macro of its precision exists earlier, for C. */
#if defined(__FLT16_MANT_DIG__) && (defined(__clang__) || __GNUC__ >= 13 || defined(__SSE2__))
#define UMEM_HAS_FLOAT16
using Float16 = _Float16;
#else
using Float16 = void;
#endif

/* IEEE's numbers of 16 bits. */
template <class Type>
inline constexpr bool is_half = std::is_same_v<Type, __half> || std::is_same_v<Type, Float16>;

/* Floating-point numbers of 16 bits, for which std::is_floating_point may be false. */
template <class Type>
inline constexpr bool is_short_float = is_half<Type> || std::is_same_v<Type, __nv_bfloat16>;

template <class Type>
inline constexpr bool is_integer = std::is_integral_v<Type> && !std::is_same_v<Type, bool>;

/* ---- numbers of a program as elements ---- */

/* Whether elements To can be this number: integers those without a fraction and in range. All other
 * elements take every number, and round it. */
template <class To, class From> constexpr bool has_number(From const &x) {
  if constexpr (is_integer<To> && is_integer<From>) {
    To const element = static_cast<To>(x);
    return static_cast<From>(element) == x && (x < From(0)) == (element < To(0));
  } else if constexpr (is_integer<To> && std::is_floating_point_v<From>) {
    constexpr From end = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    return x >= static_cast<From>(std::numeric_limits<To>::min()) && x < end &&
           static_cast<From>(static_cast<To>(x)) == x;
  } else {
    return true;
  }
}

/* The number as an element. Throws umem::value_error if elements of this type cannot be it. */
template <class To, class From> To as_element(char const *function, From const &x) {
  static_assert(!is_complex<From> || !std::is_arithmetic_v<To>,
                "elements that are real cannot have a complex value");
  if constexpr (is_short_float<From>) {
    return as_element<To>(function, static_cast<float>(x));
  } else if constexpr (is_complex<From> && std::is_arithmetic_v<To>) {
    return To();
  } else {
    if constexpr (is_integer<To> && std::is_arithmetic_v<From>)
      if (!has_number<To>(x))
        raise_text(umemValueError, "%s: %.17Lg does not fit into elements of %sint%d", function,
                   static_cast<long double>(x), std::is_signed_v<To> ? "" : "u",
                   static_cast<int>(8 * sizeof(To)));
    return static_cast<To>(x);
  }
}

/* For a number that the compiler would convert to an element in silence. */
template <class Value, class Type>
using if_other_number =
    std::enable_if_t<std::is_arithmetic_v<Value> && std::is_arithmetic_v<Type> &&
                     !std::is_same_v<Value, Type>>;

} // namespace detail
} // namespace umem

#endif
