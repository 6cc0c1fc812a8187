/* umem/reduce_along.hpp - reductions along one dimension, on host or GPU: each gives one element of
 * the output, which has one dimension less.
 *
 *     umem::View<double, 2> m;
 *     umem::sum_along(umem::on_host, m, 0, column_sums);    // of all rows, for each column
 *     umem::max_along(array, 1, row_maxima);                // where row_maxima, an Array, lives
 *
 * Places, elements and failures as in for_each.hpp. Sums are computed in accumulator<T> of the
 * input (functional.hpp), all else in the type of init, and converted to the type of the output. A
 * NaN among the elements makes its sum, minimum and maximum NaN. The order of operations is umem's
 * choice and the same from run to run on one place. */
#ifndef UMEM_REDUCE_ALONG_HPP
#define UMEM_REDUCE_ALONG_HPP

#include <umem/detail/device_along.hpp>
#include <umem/detail/host_along.hpp>
#include <umem/for_each.hpp>
#include <umem/functional.hpp>
#include <umem/view_error.hpp>

#include <string>
#include <type_traits>

namespace umem {

namespace detail {

/* Throws umem::index_error where there is no such dimension, and umem::value_error unless the other
 * extents are those of the output. */
template <int N> void check_along(Extents<N> const &in, int axis, Extents<N - 1> const &out) {
  if (axis < 0 || axis >= N) raise_dimension(axis, N);
  for (int k = 0; k < N - 1; k++)
    if (out.at[k] != in.at[k + (k >= axis)])
      throw value_error("reduce_along: the extents " + in_words(in) + " without dimension " +
                        std::to_string(axis) + " are not " + in_words(out));
}

template <class A> using element_of = std::remove_cv_t<typename A::value_type>;

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out(...) = op over init and in(..., n, ...) for all n of dimension axis. */
template <class P, class A, class B, class R, class Op,
          class = std::enable_if_t<detail::is_place<P>>>
void reduce_along(P const &place, A const &in, int axis, B &&out, R init, Op op) {
  auto where = detail::settled(place, out, in);
  using Where = decltype(where);
  auto const extents = detail::extents_of(in);
  auto const out_extents = detail::extents_of(out);
  static_assert(decltype(extents)::size() == decltype(out_extents)::size() + 1,
                "reduce_along: the output has one dimension less than the input");
  detail::check_kernels(where);
  detail::check_along(extents, axis, out_extents);
  auto from = detail::open(where, in, read);
  auto to = detail::open(where, out, discard); /* last: it forgets what out held */
  auto const view = detail::as_const(from.view);
  if constexpr (detail::may_be_device<Where>)
    if (detail::is_device(where))
      return detail::device_along(detail::device_of(where), op, init, view, axis, to.view);
  if constexpr (detail::may_be_host<Where>)
    detail::host_along(detail::host_of(where), op, init, view, axis, to.view);
}
template <
    class A, class B, class R, class Op,
    class = std::enable_if_t<detail::is_array<std::remove_reference_t<B>> && !detail::is_place<A>>>
void reduce_along(A const &in, int axis, B &&out, R init, Op op) {
  Place place = detail::home_of(out);
  detail::check_reach(place, in, out);
  reduce_along(place, in, axis, out, init, op);
}

/* The sums; 0 over no elements. */
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void sum_along(P const &place, A const &in, int axis, B &&out) {
  reduce_along(place, in, axis, out, accumulator<detail::element_of<A>>(), plus());
}
template <class A, class B, class = std::enable_if_t<!detail::is_place<A>>>
void sum_along(A const &in, int axis, B &&out) {
  reduce_along(in, axis, out, accumulator<detail::element_of<A>>(), plus());
}

/* The smallest and the largest elements; over none, the limits of the type (infinity where it has
 * one). */
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void min_along(P const &place, A const &in, int axis, B &&out) {
  reduce_along(place, in, axis, out, detail::limit_of<detail::element_of<A>>(true), minimum());
}
template <class A, class B, class = std::enable_if_t<!detail::is_place<A>>>
void min_along(A const &in, int axis, B &&out) {
  reduce_along(in, axis, out, detail::limit_of<detail::element_of<A>>(true), minimum());
}
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
void max_along(P const &place, A const &in, int axis, B &&out) {
  reduce_along(place, in, axis, out, detail::limit_of<detail::element_of<A>>(false), maximum());
}
template <class A, class B, class = std::enable_if_t<!detail::is_place<A>>>
void max_along(A const &in, int axis, B &&out) {
  reduce_along(in, axis, out, detail::limit_of<detail::element_of<A>>(false), maximum());
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
