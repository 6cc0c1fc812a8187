/* umem/convert.hpp - elements copied into those of another type, on host or GPU.
 *
 *     umem::convert(umem::on_host, doubles, floats);
 *     umem::convert(int_array, double_array);               // where double_array lives
 *
 * Each is static_cast to the other type; what that does not define (a float beyond the range of an
 * integer) is not defined here. Places, elements, order and failures as in transform.hpp. */
#ifndef UMEM_CONVERT_HPP
#define UMEM_CONVERT_HPP

#include <umem/transform.hpp>

#include <type_traits>

namespace umem {

namespace detail {

struct Same {
  template <class T> UMEM_FUNCTION T const &operator()(T const &value) const { return value; }
};

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out = in */
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void convert(P const &place, A const &in, B &&out) {
  transform(place, in, out, detail::Same());
}
template <
    class A, class B,
    class = std::enable_if_t<detail::is_array<std::remove_reference_t<B>> && !detail::is_place<A>>>
void convert(A const &in, B &&out) {
  transform(in, out, detail::Same());
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
