/* umem/convert.hpp - elements copied into those of another type, on host or GPU.
 *
 *     umem::convert(umem::on_host, doubles, floats);
 *     umem::convert(int_array, double_array);               // on the place of double_array
 *
 *     umem::convert(doubles, bytes, umem::wrapping);        // 300 becomes 44, not 127
 *
 * Numbers are converted by the rules of umemArray_convert (array_convert.h): floating-point numbers become integers by
 * rounding toward zero, numbers out of the range of an integer type become the nearest number in range, and NaN becomes
 * 0; floating-point numbers are rounded once, to the nearest number. With umem::wrapping numbers out of range wrap, as by
 * umemArray_convert_wrapping. Complex numbers are converted part by part. For other types static_cast converts each
 * element. The two types may be the same.
 *
 * See transform.hpp for places, elements, order and failures. Without a place, the arrays may be on any two contexts:
 * from a GPU to the host, and from the host or a file to a GPU, the host converts the elements. */
#ifndef UMEM_CONVERT_HPP
#define UMEM_CONVERT_HPP

#include <umem/detail/conversion.hpp>
#include <umem/transform.hpp>

#include <type_traits>

namespace umem {

/* The type of wrapping. */
struct wrapping_t {
  explicit wrapping_t() = default;
};

/* The last argument of convert: numbers that are out of the range of an integer type of n bits become the number in range
 * that differs from them by a multiple of 2^n. Infinities and NaN become 0. */
inline constexpr wrapping_t wrapping{};

namespace detail {

inline namespace UMEM_LAUNCH_NAMESPACE {

template <bool wraps, class PlaceType, class Operand, class Other>
void convert_to(PlaceType const &place, Operand const &in, Other &out) {
  UMEM_TRACE("umem::convert");
  transform_uses("convert", place, Converted<value_of<Other>, wraps>(), use(out, discard),
                 use(in, read));
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out = in */
template <class PlaceType, class Operand, class Other,
          class = std::enable_if_t<detail::is_place<PlaceType>>>
void convert(PlaceType const &place, Operand const &in, Other &&out) {
  detail::convert_to<false>(place, in, out);
}
template <class Operand, class Other, class = std::enable_if_t<detail::is_operand<Operand>>>
void convert(Operand const &in, Other &&out) {
  detail::convert_to<false>(detail::AtHome(), in, out);
}

/* With umem::wrapping, integers out of range wrap. */
template <class PlaceType, class Operand, class Other,
          class = std::enable_if_t<detail::is_place<PlaceType>>>
void convert(PlaceType const &place, Operand const &in, Other &&out, wrapping_t) {
  detail::convert_to<true>(place, in, out);
}
template <class Operand, class Other, class = std::enable_if_t<detail::is_operand<Operand>>>
void convert(Operand const &in, Other &&out, wrapping_t) {
  detail::convert_to<true>(detail::AtHome(), in, out);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
