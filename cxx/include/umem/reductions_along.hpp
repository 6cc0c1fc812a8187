/* umem/reductions_along.hpp - the reductions of reductions.hpp along one dimension: each gives one element of the
 * output, which has one dimension less.
 *
 *     umem::Array<umem::index_t, 1> best({rows});
 *     umem::argmax_along(scores, 1, best);                  // for each row, the column of its largest element
 *     umem::norm_along(umem::on_host, vectors, 1, lengths); // one norm for each row
 *
 * See for_each.hpp for places, operands and failures, reduce_along.hpp for outputs, and reductions.hpp for NaN, equal
 * elements and types of results. */
#ifndef UMEM_REDUCTIONS_ALONG_HPP
#define UMEM_REDUCTIONS_ALONG_HPP

#include <umem/detail/monoids.hpp>
#include <umem/reduce_along.hpp>

#include <string>
#include <type_traits>

namespace umem {

namespace detail {

inline namespace UMEM_LAUNCH_NAMESPACE {

template <bool largest_value, class P, class A, class B>
void arg_along(char const *function, P const &place, A const &in, int axis, B &out) {
  using T = value_of<A>;
  static_assert(!is_complex<T>, "complex numbers have no smallest and largest one");
  static_assert(std::is_integral_v<value_of<std::remove_const_t<B>>>,
                "argmin_along, argmax_along: the output has elements of an integer type");
  auto const extents = extents_of(in);
  if (axis >= 0 && axis < rank_of<A> && extents[axis] == 0)
    throw value_error(std::string(function) + " of no elements");
  reduce_dimension(function, place, axis, out, last_extreme<T>(largest_value),
                   FirstExtreme<largest_value>(), LocatedAlong(), in);
}

template <bool conjugates, class P, class A, class B, class C>
void dot_products(char const *function, P const &place, A const &one, B const &two, int axis,
                  C &out) {
  using R = product_sum<value_of<A>, value_of<B>>;
  reduce_dimension(function, place, axis, out, R(), plus(), ProductOf<R, conjugates>(), one, two);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- extremes ---- */

/* out(...) = the position n of the first smallest, or largest, element in(..., n, ...). umem::value_error if dimension
 * axis has no elements. */
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void argmin_along(P const &place, A const &in, int axis, B &&out) {
  UMEM_TRACE("umem::argmin_along");
  detail::arg_along<false>("argmin_along", place, in, axis, out);
}
template <class A, class B, class = std::enable_if_t<detail::is_operand<A>>>
void argmin_along(A const &in, int axis, B &&out) {
  argmin_along(detail::AtHome(), in, axis, out);
}
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void argmax_along(P const &place, A const &in, int axis, B &&out) {
  UMEM_TRACE("umem::argmax_along");
  detail::arg_along<true>("argmax_along", place, in, axis, out);
}
template <class A, class B, class = std::enable_if_t<detail::is_operand<A>>>
void argmax_along(A const &in, int axis, B &&out) {
  argmax_along(detail::AtHome(), in, axis, out);
}

/* The smallest and the largest elements to two outputs, as min_along and then max_along. */
template <class P, class A, class B, class C, class = std::enable_if_t<detail::is_place<P>>>
void minmax_along(P const &place, A const &in, int axis, B &&smallest, C &&largest) {
  min_along(place, in, axis, smallest);
  max_along(place, in, axis, largest);
}
template <class A, class B, class C, class = std::enable_if_t<detail::is_operand<A>>>
void minmax_along(A const &in, int axis, B &&smallest, C &&largest) {
  minmax_along(detail::AtHome(), in, axis, smallest, largest);
}

/* ---- conditions ---- */

/* For how many elements f(element) is true. */
template <class P, class A, class B, class F, class = std::enable_if_t<detail::is_place<P>>>
void count_if_along(P const &place, A const &in, int axis, B &&out, F f) {
  UMEM_TRACE("umem::count_if_along");
  detail::reduce_dimension("count_if_along", place, axis, out, index_t(0), plus(),
                           detail::CountOf<index_t, F>{f}, in);
}
template <class A, class B, class F, class = std::enable_if_t<detail::is_operand<A>>>
void count_if_along(A const &in, int axis, B &&out, F f) {
  count_if_along(detail::AtHome(), in, axis, out, f);
}

/* Whether f(element) is true for any element, or for all; without f, whether the elements are not zero. */
template <class P, class A, class B, class F, class = std::enable_if_t<detail::is_place<P>>>
void any_along(P const &place, A const &in, int axis, B &&out, F f) {
  UMEM_TRACE("umem::any_along");
  detail::reduce_dimension("any_along", place, axis, out, 0, maximum(), detail::CountOf<int, F>{f},
                           in);
}
template <class A, class B, class F = detail::IsTrue,
          class = std::enable_if_t<detail::is_operand<A>>>
void any_along(A const &in, int axis, B &&out, F f = {}) {
  any_along(detail::AtHome(), in, axis, out, f);
}
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void any_along(P const &place, A const &in, int axis, B &&out) {
  any_along(place, in, axis, out, detail::IsTrue());
}
template <class P, class A, class B, class F, class = std::enable_if_t<detail::is_place<P>>>
void all_along(P const &place, A const &in, int axis, B &&out, F f) {
  UMEM_TRACE("umem::all_along");
  detail::reduce_dimension("all_along", place, axis, out, 1, minimum(), detail::CountOf<int, F>{f},
                           in);
}
template <class A, class B, class F = detail::IsTrue,
          class = std::enable_if_t<detail::is_operand<A>>>
void all_along(A const &in, int axis, B &&out, F f = {}) {
  all_along(detail::AtHome(), in, axis, out, f);
}
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void all_along(P const &place, A const &in, int axis, B &&out) {
  all_along(place, in, axis, out, detail::IsTrue());
}

/* ---- products and norms ---- */

/* The sums of products along a dimension. vdot_along takes the complex conjugates of the first operand. */
template <class P, class A, class B, class C, class = std::enable_if_t<detail::is_place<P>>>
void dot_along(P const &place, A const &one, B const &two, int axis, C &&out) {
  UMEM_TRACE("umem::dot_along");
  detail::dot_products<false>("dot_along", place, one, two, axis, out);
}
template <class A, class B, class C, class = std::enable_if_t<detail::is_operand<A>>>
void dot_along(A const &one, B const &two, int axis, C &&out) {
  dot_along(detail::AtHome(), one, two, axis, out);
}
template <class P, class A, class B, class C, class = std::enable_if_t<detail::is_place<P>>>
void vdot_along(P const &place, A const &one, B const &two, int axis, C &&out) {
  UMEM_TRACE("umem::vdot_along");
  detail::dot_products<true>("vdot_along", place, one, two, axis, out);
}
template <class A, class B, class C, class = std::enable_if_t<detail::is_operand<A>>>
void vdot_along(A const &one, B const &two, int axis, C &&out) {
  vdot_along(detail::AtHome(), one, two, axis, out);
}

/* The roots of the sums of squares, without overflow. */
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void norm_along(P const &place, A const &in, int axis, B &&out) {
  UMEM_TRACE("umem::norm_along");
  using T = detail::value_of<A>;
  using S = detail::squares_of<T>;
  detail::reduce_dimension("norm_along", place, axis, out, S{}, plus(),
                           detail::SquareOf<detail::norm_of<T>, S>(), in);
}
template <class A, class B, class = std::enable_if_t<detail::is_operand<A>>>
void norm_along(A const &in, int axis, B &&out) {
  norm_along(detail::AtHome(), in, axis, out);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
