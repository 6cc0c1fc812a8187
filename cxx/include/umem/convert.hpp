/* umem/convert.hpp - elements copied into those of another type, on host or GPU.
 *
 *     umem::convert(umem::on_host, doubles, floats);
 *     umem::convert(int_array, double_array);               // where double_array lives
 *
 * Each is static_cast to the other type, which may be the same; what that does not define (a float
 * beyond the range of an integer) is not defined here. Places, elements, order and failures as in
 * transform.hpp. So without a place arrays on any two storages will do: from a GPU to the host, and
 * from the host or a file to a GPU, the elements are converted on the host. */
#ifndef UMEM_CONVERT_HPP
#define UMEM_CONVERT_HPP

#include <umem/functional.hpp>
#include <umem/transform.hpp>

#include <type_traits>

namespace umem {

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out = in */
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void convert(P const &place, A const &in, B &&out) {
  transform(place, in, out, detail::Identity());
}
template <class A, class B, class = std::enable_if_t<!detail::is_place<A>>>
void convert(A const &in, B &&out) {
  transform(in, out, detail::Identity());
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
