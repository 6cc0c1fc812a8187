/* umem/element.hpp - the kinds of elements, for files (npy.hpp) and text (print.hpp). */
#ifndef UMEM_ELEMENT_HPP
#define UMEM_ELEMENT_HPP

#include <umem/config.hpp>

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

} // namespace detail
} // namespace umem

#endif
