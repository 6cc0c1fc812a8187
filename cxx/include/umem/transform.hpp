/* umem/transform.hpp - elements computed from those of one or two others, on host or GPU.
 *
 *     umem::transform(umem::on_host, x, y, z, Add());       // z = x + y
 *     umem::transform(x_array, z_array, Square());          // on the place of z_array
 *
 * See for_each.hpp for places, elements, order and failures. All extents must be equal, else the
 * call throws umem::value_error. An input may be the output itself, but must not overlap it
 * otherwise. A call that refuses its arguments leaves the output as it was. If the call fails
 * for another reason, the side of an output array that was current before is current again,
 * unless it is the side that the call has written.
 *
 * The operands are those of for_each.hpp, and so is the place if the caller names none: the home of the output, or the
 * host if a kernel there cannot use an input. Then arrays transfer their elements to the host, the host side of the
 * output becomes current, and its next use on the GPU transfers it. For more inputs or outputs use for_each. */
#ifndef UMEM_TRANSFORM_HPP
#define UMEM_TRANSFORM_HPP

#include <umem/for_each.hpp>

#include <type_traits>

namespace umem {

namespace detail {

/* out = f(in...), one function for each side: so the compiler reports an f that is not for that
 * side. */
template <class F> struct Assign { F f; };
template <class F> struct AssignOnHost {
  F f;
  template <class T, class... A> void operator()(T &out, A const &...in) {
    out = static_cast<T>(f(in...));
  }
};
template <class F> struct AssignOnDevice {
  F f;
  template <class T, class... A> UMEM_DEVICE_FUNCTION void operator()(T &out, A const &...in) {
    out = static_cast<T>(f(in...));
  }
};
template <class F> AssignOnHost<F> for_host(Assign<F> const &assign) {
  check_for_host<F>();
  return {assign.f};
}
template <class F> AssignOnDevice<F> for_device(Assign<F> const &assign) {
  check_for_device<F>();
  return {assign.f};
}

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out = f(in) */
template <class P, class A, class B, class F, class = std::enable_if_t<detail::is_place<P>>>
void transform(P const &place, A const &in, B &&out, F f) {
  UMEM_TRACE("umem::transform");
  detail::loop("transform", place, detail::Assign<F>{f}, detail::use(out, discard),
               detail::use(in, read));
}
template <class A, class B, class F, class = std::enable_if_t<detail::is_operand<A>>>
void transform(A const &in, B &&out, F f) {
  transform(detail::AtHome(), in, out, f);
}

/* out = f(one, two) */
template <class P, class A, class B, class C, class F,
          class = std::enable_if_t<detail::is_place<P>>>
void transform(P const &place, A const &one, B const &two, C &&out, F f) {
  UMEM_TRACE("umem::transform");
  detail::loop("transform", place, detail::Assign<F>{f}, detail::use(out, discard),
               detail::use(one, read), detail::use(two, read));
}
template <class A, class B, class C, class F, class = std::enable_if_t<detail::is_operand<A>>,
          class = void>
void transform(A const &one, B const &two, C &&out, F f) {
  transform(detail::AtHome(), one, two, out, f);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
