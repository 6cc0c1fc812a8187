/* umem/reduce_along.hpp - reductions along one dimension, on host or GPU: each gives one element
 * of the output, which has one dimension less.
 *
 *     umem::View<double, 2> m;
 *     umem::sum_along(umem::on_host, m, 0, column_sums);    // over all rows, for each column
 *     umem::max_along(array, 1, row_maxima);                // on the place of row_maxima, an Array
 *     umem::transform_reduce_along(a, b, 1, dots, 0.0, umem::plus(), Product()); // for each row
 *
 * See for_each.hpp for places, elements and failures. Sums are computed in accumulator<T> of the
 * input (functional.hpp), minima and maxima in the type of the elements, everything else in the
 * type of init; the results are converted to the type of the output. A NaN among the elements
 * makes its sum, minimum and maximum NaN. umem chooses the order in which it applies the
 * operation, the same from run to run on one place: the operation must be associative and
 * commutative, up to rounding. */
#ifndef UMEM_REDUCE_ALONG_HPP
#define UMEM_REDUCE_ALONG_HPP

#include <umem/detail/device_along.hpp>
#include <umem/detail/host_along.hpp>
#include <umem/detail/loop_layout.hpp>
#include <umem/for_each.hpp>
#include <umem/functional.hpp>
#include <umem/view_error.hpp>

#include <string>
#include <type_traits>

namespace umem {

namespace detail {

/* Throws umem::index_error if there is no such dimension, and umem::value_error unless the other
 * extents are those of the output. */
template <int Rank>
void check_along(char const *function, Extents<Rank> const &in, int axis,
                 Extents<Rank - 1> const &out) {
  if (axis < 0 || axis >= Rank) raise_dimension(axis, Rank);
  for (int k = 0; k < Rank - 1; k++)
    if (out.at[k] != in.at[k + (k >= axis)])
      raise_text(umemValueError, "%s: the extents %s without dimension %d are not %s", function,
                 in_words(in).text, axis, in_words(out).text);
}

/* Throws umem::value_error if dimension axis has no elements. */
template <class Operand> void check_some_along(char const *function, Operand const &in, int axis) {
  auto const extents = extents_of(in);
  if (axis >= 0 && axis < rank_of<Operand> && extents[axis] == 0)
    raise_text(umemValueError, "%s of no elements", function);
}

template <class Function, class... Types> constexpr bool takes_along() {
  if constexpr (takes_position<Function>)
    return true;
  else
    return takes_elements<called_by<Function>, Types...>();
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* out(...) = op over init and f(element of each input) for all n of dimension axis. */
template <class PlaceType, class Other, class Result, class Op, class Function, class Operand,
          class... More>
void reduce_dimension(char const *function, PlaceType const &place, int axis, Other &out,
                      Result const &init, Op op, Function f, Operand const &in,
                      More const &...others) {
  static_assert(rank_of<Operand> == rank_of<std::remove_const_t<Other>> + 1,
                "reduce_along: the output has one dimension less than the input");
  static_assert(std::is_trivially_copyable_v<Result>, "results are trivially copyable");
  constexpr bool fits = rank_of<Operand> == rank_of<std::remove_const_t<Other>> + 1;
  auto body = [&](auto const &where) {
    return [&](auto const &to, auto const &...from) {
      using Where = bare_t<decltype(where)>;
      if constexpr (may_be_device<Where>)
        if (is_device(where)) return device_along(device_of(where), op, f, init, axis, to, from...);
      if constexpr (may_be_host<Where>) {
        check_for_host<Op, Function>();
        host_along(host_of(where), op, f, init, axis, to, from...);
      }
    };
  };
  auto along = [&](auto const &...uses) {
    auto where = settled(place, uses...);
    auto const extents = extents_of(in);
    check_kernels(where);
    (check_extents(function, extents, extents_of(others)), ...);
    check_along(function, extents, axis, extents_of(out));
    with_views(where, body(where), uses...);
  };
  if constexpr (fits && joins<Op, Result>())
    if constexpr (takes_along<Function, value_of<Operand>, value_of<More>...>())
      along(use(out, discard), use(in, read), use(others, read)...);
}

/* The smallest or largest elements. */
template <class PlaceType, class Operand, class Other, class Op>
void extremes_along(char const *function, PlaceType const &place, Operand const &in, int axis,
                    Other &out, Op op, bool largest) {
  check_some_along(function, in, axis);
  reduce_dimension(function, place, axis, out, limit_of<value_of<Operand>>(!largest), op,
                   Identity(), in);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- any operation ---- */

/* out(...) = op over init and f(in(..., n, ...)) for all n of dimension axis. What f returns is
 * converted to the type of init. */
template <class PlaceType, class Operand, class Other, class Result, class Op, class Function,
          class = std::enable_if_t<detail::is_place<PlaceType>>>
void transform_reduce_along(PlaceType const &place, Operand const &in, int axis, Other &&out,
                            Result init, Op op, Function f) {
  UMEM_TRACE("umem::transform_reduce_along");
  detail::reduce_dimension("transform_reduce_along", place, axis, out, init, op, f, in);
}
template <class Operand, class Other, class Result, class Op, class Function,
          class = std::enable_if_t<detail::is_operand<Operand>>>
void transform_reduce_along(Operand const &in, int axis, Other &&out, Result init, Op op,
                            Function f) {
  transform_reduce_along(detail::AtHome(), in, axis, out, init, op, f);
}

/* out(...) = op over init and f(one(..., n, ...), two(..., n, ...)) for all n of dimension axis;
 * the extents of one and two are equal. */
template <class PlaceType, class Operand, class Other, class Output, class Result, class Op,
          class Function, class = std::enable_if_t<detail::is_place<PlaceType>>>
void transform_reduce_along(PlaceType const &place, Operand const &one, Other const &two, int axis,
                            Output &&out, Result init, Op op, Function f) {
  UMEM_TRACE("umem::transform_reduce_along");
  detail::reduce_dimension("transform_reduce_along", place, axis, out, init, op, f, one, two);
}
template <class Operand, class Other, class Output, class Result, class Op, class Function,
          class = std::enable_if_t<detail::is_operand<Operand>>, class = void>
void transform_reduce_along(Operand const &one, Other const &two, int axis, Output &&out,
                            Result init, Op op, Function f) {
  transform_reduce_along(detail::AtHome(), one, two, axis, out, init, op, f);
}

/* out(...) = op over init and in(..., n, ...) for all n of dimension axis. */
template <class PlaceType, class Operand, class Other, class Result, class Op,
          class = std::enable_if_t<detail::is_place<PlaceType>>>
void reduce_along(PlaceType const &place, Operand const &in, int axis, Other &&out, Result init,
                  Op op) {
  UMEM_TRACE("umem::reduce_along");
  detail::reduce_dimension("reduce_along", place, axis, out, init, op, detail::Identity(), in);
}
template <class Operand, class Other, class Result, class Op,
          class = std::enable_if_t<detail::is_operand<Operand>>>
void reduce_along(Operand const &in, int axis, Other &&out, Result init, Op op) {
  reduce_along(detail::AtHome(), in, axis, out, init, op);
}

/* ---- sums, smallest and largest elements ---- */

/* The sums; 0 over no elements. */
template <class PlaceType, class Operand, class Other,
          class = std::enable_if_t<detail::is_place<PlaceType>>>
void sum_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  UMEM_TRACE("umem::sum_along");
  detail::reduce_dimension("sum_along", place, axis, out, accumulator<detail::value_of<Operand>>(),
                           plus(), detail::Identity(), in);
}
template <class Operand, class Other, class = std::enable_if_t<detail::is_operand<Operand>>>
void sum_along(Operand const &in, int axis, Other &&out) {
  sum_along(detail::AtHome(), in, axis, out);
}

/* The smallest and the largest elements; umem::value_error if dimension axis has no elements. */
template <class PlaceType, class Operand, class Other,
          class = std::enable_if_t<detail::is_place<PlaceType>>>
void min_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  UMEM_TRACE("umem::min_along");
  detail::extremes_along("min_along", place, in, axis, out, minimum(), false);
}
template <class Operand, class Other, class = std::enable_if_t<detail::is_operand<Operand>>>
void min_along(Operand const &in, int axis, Other &&out) {
  min_along(detail::AtHome(), in, axis, out);
}
template <class PlaceType, class Operand, class Other,
          class = std::enable_if_t<detail::is_place<PlaceType>>>
void max_along(PlaceType const &place, Operand const &in, int axis, Other &&out) {
  UMEM_TRACE("umem::max_along");
  detail::extremes_along("max_along", place, in, axis, out, maximum(), true);
}
template <class Operand, class Other, class = std::enable_if_t<detail::is_operand<Operand>>>
void max_along(Operand const &in, int axis, Other &&out) {
  max_along(detail::AtHome(), in, axis, out);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
