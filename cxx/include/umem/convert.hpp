/* umem/convert.hpp - elements copied into those of another type, on host or GPU.
 *
 *     umem::convert(umem::on_host, doubles, floats);
 *     umem::convert(int_array, double_array);               // on the place of double_array
 *
 * Each element is converted by static_cast to the other type, which may be the same. A
 * conversion that C++ does not define (a float beyond the range of an integer) is not defined
 * here. See transform.hpp for places, elements, order and failures. Without a place, the arrays
 * may be on any two contexts: from a GPU to the host, and from the host or a file to a GPU, the
 * host converts the elements. */
#ifndef UMEM_CONVERT_HPP
#define UMEM_CONVERT_HPP

#include <umem/functional.hpp>
#include <umem/transform.hpp>

#include <type_traits>

namespace umem {

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out = in */
template <class PlaceType, class Operand, class Other,
          class = std::enable_if_t<detail::is_place<PlaceType>>>
void convert(PlaceType const &place, Operand const &in, Other &&out) {
  transform(place, in, out, detail::Identity());
}
template <class Operand, class Other, class = std::enable_if_t<detail::is_operand<Operand>>>
void convert(Operand const &in, Other &&out) {
  transform(in, out, detail::Identity());
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
