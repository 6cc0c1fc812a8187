/* umem/reductions_along.hpp - the reductions of reductions.hpp along one dimension: each gives one
 * element of the output, which has one dimension less.
 *
 *     umem::Array<umem::index_t, 1> best({rows});
 *     umem::argmax_along(scores, 1, best);                  // for each row, a column
 *     umem::norm_along(umem::on_host, vectors, 1, lengths); // one norm for each row
 *
 * See for_each.hpp for places, operands and failures, reduce_along.hpp for outputs, and
 * reductions.hpp for NaN, equal elements and types of results. */
#ifndef UMEM_REDUCTIONS_ALONG_HPP
#define UMEM_REDUCTIONS_ALONG_HPP

#include <umem/reduce_along.hpp>

namespace umem {

namespace detail {

inline namespace UMEM_LAUNCH_NAMESPACE {

template <bool largest_value, class PlaceType, class Operand, class Other>
void arg_along(Called const &function, PlaceType const &place, Operand const &in, int axis,
               Other &out) {
  using Type = value_of<Operand>;
  static_assert(!is_complex<Type>, "complex numbers have no smallest and largest one");
  static_assert(std::is_integral_v<value_of<std::remove_const_t<Other>>>,
                "argmin_along, argmax_along: the output has elements of an integer type");
  check_some_along(function, in, axis);
  reduce_dimension(function, place, axis, out, last_extreme<Type>(largest_value),
                   FirstExtreme<largest_value>(), LocatedAlong(), in);
}

template <bool conjugates, class PlaceType, class Operand, class Other, class Output>
void dot_products(Called const &function, PlaceType const &place, Operand const &one,
                  Other const &two, int axis, Output &out) {
  using Result = product_sum<value_of<Operand>, value_of<Other>>;
  reduce_dimension(function, place, axis, out, Result(), plus(), ProductOf<Result, conjugates>(),
                   one, two);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- extremes ---- */

/* out(...) = the position n of the first smallest, or largest, element in(..., n, ...).
 * umem::value_error if dimension axis has no elements. */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
void argmin_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  detail::arg_along<false>("argmin_along", place, in, axis, out);
}
UMEM_AT_HOME(argmin_along)
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
void argmax_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  detail::arg_along<true>("argmax_along", place, in, axis, out);
}
UMEM_AT_HOME(argmax_along)

/* The smallest and the largest elements to two outputs, as min_along and then max_along.
 * umem::value_error if dimension axis has no elements. */
template <class PlaceType, class Operand, class Other, class Output,
          class = detail::if_place<PlaceType>>
void minmax_along(PlaceType const &place, Operand const &in, int axis, Other &&smallest,
                  Output &&largest) {
  detail::Called const function("minmax_along");
  detail::extremes_along(function, place, in, axis, smallest, minimum(), false);
  detail::extremes_along(function, place, in, axis, largest, maximum(), true);
}
UMEM_AT_HOME(minmax_along)

/* ---- conditions ---- */

/* For how many elements f(element) is true. */
template <class PlaceType, class Operand, class Other, class Function,
          class = detail::if_place<PlaceType>>
void count_if_along(PlaceType const &place, Operand const &in, int axis, Other &&out, Function f) {
  detail::reduce_dimension("count_if_along", place, axis, out, index_t(0), plus(),
                           detail::CountOf<index_t, Function>{f}, in);
}
UMEM_AT_HOME(count_if_along)

/* Whether f(element) is true for any element, or for all; without f, whether the elements are not
 * zero. */
template <class PlaceType, class Operand, class Other, class Function = detail::IsTrue,
          class = detail::if_place<PlaceType>>
void any_along(PlaceType const &place, Operand const &in, int axis, Other &&out, Function f = {}) {
  detail::reduce_dimension("any_along", place, axis, out, 0, maximum(),
                           detail::CountOf<int, Function>{f}, in);
}
UMEM_AT_HOME(any_along)
template <class PlaceType, class Operand, class Other, class Function = detail::IsTrue,
          class = detail::if_place<PlaceType>>
void all_along(PlaceType const &place, Operand const &in, int axis, Other &&out, Function f = {}) {
  detail::reduce_dimension("all_along", place, axis, out, 1, minimum(),
                           detail::CountOf<int, Function>{f}, in);
}
UMEM_AT_HOME(all_along)

/* ---- products and norms ---- */

/* The sums of products along a dimension. vdot_along takes the complex conjugates of the first
 * operand. */
template <class PlaceType, class Operand, class Other, class Output,
          class = detail::if_place<PlaceType>>
void dot_along(PlaceType const &place, Operand const &one, Other const &two, int axis,
               Output &&out) {
  detail::dot_products<false>("dot_along", place, one, two, axis, out);
}
UMEM_AT_HOME(dot_along)
template <class PlaceType, class Operand, class Other, class Output,
          class = detail::if_place<PlaceType>>
void vdot_along(PlaceType const &place, Operand const &one, Other const &two, int axis,
                Output &&out) {
  detail::dot_products<true>("vdot_along", place, one, two, axis, out);
}
UMEM_AT_HOME(vdot_along)

/* The roots of the sums of squares, without overflow. */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
void norm_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  using Type = detail::value_of<Operand>;
  using Square = detail::squares_of<Type>;
  detail::reduce_dimension("norm_along", place, axis, out, Square{}, plus(),
                           detail::SquareOf<detail::norm_of<Type>, Square>(), in);
}
UMEM_AT_HOME(norm_along)

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
