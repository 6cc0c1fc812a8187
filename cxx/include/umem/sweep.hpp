/* umem/sweep.hpp - loops over indices that also compute one value: a sweep of a stencil with the
 * norm of its change, in one pass over memory.
 *
 *     struct Jacobi {
 *       umem::View<double const, 2> u;
 *       UMEM_FUNCTION double operator()(double &value, umem::index_t i, umem::index_t j) const {
 *         value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
 *         return fabs(value - u(i, j));
 *       }
 *     };
 *     double change = umem::sweep(place, next, interior(next), 0.0, umem::maximum(), Jacobi{u});
 *
 * On a GPU neighbouring threads take neighbouring elements of a row. An array in column-major order
 * is faster there as its transpose, with f for the indices in reversed order.
 *
 * See for_each.hpp for operands, places, order and failures, and reduce.hpp for the order of
 * operations. */
#ifndef UMEM_SWEEP_HPP
#define UMEM_SWEEP_HPP

#include <umem/detail/host_reduce.hpp>
#include <umem/for_each.hpp>

#if defined(__CUDACC__)
#include <umem/detail/sweep_kernels.cuh>
#endif

namespace umem {

namespace detail {

/* Whether a functor gets elements of these types with indices, and returns a value for op. */
template <class Index, int Rank, class Result, class Op, class Function, class... Types>
constexpr bool is_sweep() {
  using Call = indexed_call<Index, Function, Rank, Types...>;
  static_assert(!Call::fits || Call::with_indices, UMEM_INTEGER_INDEX);
  constexpr bool writes = sizeof...(Types) == 0 || !only_reads<Function, 0>;
  constexpr bool fits =
      Call::hides || (Call::fits && writes && (!Call::with_indices || Call::returns_value()));
  static_assert(fits,
                "f takes a reference to the element of a sweep, then one index per dimension, "
                "and returns a value; for_each_index_reduce gives it the indices alone");
  return joins<Op, Result>() && fits && (Call::hides || Call::with_indices);
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(i, j, ...) for the indices of a range. */
template <class Index, class PlaceType, int Rank, class Result, class Op, class Function>
Result reduce_indices(PlaceType const &place, Range<Rank> const &range, Result const &init, Op op,
                      Function f) {
  return on_side(
      place,
      [&](auto const &host) -> Result {
        check_for_host<Op, Function>();
        auto &&own = with_own_indices<Index, 0, Rank>(f);
        auto part = host_index_reduce<Index, Result>(host, op, own, range.begin, range.end);
        return part.any ? static_cast<Result>(op(init, part.value)) : init;
      },
      [&](auto const &device) -> Result {
        return device_index_reduce<Index>(device, op, f, init, range.begin, range.end);
      });
}

/* A view in column-major order. The loop is no part of its caller, and gets copies: so compilers
 * keep f in registers in the loop over rows. */
template <class Index, class Type, int Rank, class Result, class Op, class Function>
[[gnu::noinline]] Result sweep_columns(HostPlace place, View<Type, Rank> view, Range<Rank> range,
                                       Result init, Op op, Function f) {
  auto part = host_sweep_columns<Index, Result>(place, op, f, view, range.begin, range.end);
  return part.any ? static_cast<Result>(op(init, part.value)) : init;
}
/* op over init and f(value, i, j, ...) for the elements of a view. */
template <class Index, class Type, int Rank, class Result, class Op, class Function>
Result sweep_view(HostPlace const &place, View<Type, Rank> const &view, Range<Rank> const &range,
                  Result const &init, Op op, Function f) {
  check_for_host<Op, Function>();
  auto &&own = with_own_indices<Index, 1, Rank>(f);
  if constexpr (Rank > 1) {
    if (view.strides.at[0] == 1 && view.strides.at[Rank - 1] != 1)
      return sweep_columns<Index>(place, view, range, init, op, own);
  }
  auto part = host_sweep<Index, Result>(place, op, own, view, range.begin, range.end);
  return part.any ? static_cast<Result>(op(init, part.value)) : init;
}
/* Overloads, not functions of on_side: a place that is a device never instantiates the host's. */
template <class Index, class Type, int Rank, class Result, class Op, class Function>
Result sweep_view(DevicePlace const &place, View<Type, Rank> const &view, Range<Rank> const &range,
                  Result const &init, Op op, Function f) {
  return device_sweep<Index>(place, op, f, init, view, range.begin, range.end);
}
template <class Index, class Type, int Rank, class Result, class Op, class Function>
Result sweep_view(Place const &place, View<Type, Rank> const &view, Range<Rank> const &range,
                  Result const &init, Op op, Function f) {
  return place.is_device() ? sweep_view<Index>(place.device(), view, range, init, op, f)
                           : sweep_view<Index>(place.host(), view, range, init, op, f);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(i, j, ...) for all indices of a range. */
template <class Index = index_t, class PlaceType, int Rank, class Result, class Op, class Function,
          class = detail::if_place<PlaceType>>
Result for_each_index_reduce(PlaceType const &place, Range<Rank> const &range, Result init, Op op,
                             Function f) {
  detail::Called const function("for_each_index_reduce");
  using Own = detail::own_index<Index, Function, 0, Rank>;
  detail::check_index_types<Own, Function, 0>(range);
  if constexpr (detail::is_sweep<Index, Rank, Result, Op, Function>())
    return detail::reduce_indices<Own>(detail::as_place(place), range, init, op, f);
  else
    return init;
}
template <class Index = index_t, class PlaceType, int Rank, class Result, class Op, class Function,
          class = detail::if_place<PlaceType>>
Result for_each_index_reduce(PlaceType const &place, Extents<Rank> const &extents, Result init,
                             Op op, Function f) {
  return for_each_index_reduce<Index>(place, Range<Rank>(extents), init, op, f);
}

/* Gives new values to the elements whose indices are in range, and returns op over init and the
 * results of f. f(value, i, j, ...) writes the new value of element (i, j, ...) to value and does
 * not read it: value need not be the element itself. f must not read elements that the sweep
 * writes. Throws umem::index_error if the range leaves the elements and their ghost cells. */
template <class Index = index_t, class PlaceType, class Operand, class Result, class Op,
          class Function, class = detail::if_place<PlaceType>>
Result sweep(PlaceType const &place, Operand &&elements, detail::range_of<Operand> const &range,
             Result init, Op op, Function f) {
  detail::Called const function("sweep");
  using Extents = decltype(range.begin);
  bool is_all = range.begin == Extents() && range.end == detail::extents_of(elements);
  auto written = detail::use(elements, discard, is_all);
  auto where = detail::settled(place, written);
  detail::check_kernels(where);
  using Used = decltype(written);
  using Own = detail::own_index<Index, Function, 1, Used::rank>;
  detail::check_index_types<Own, Function, 1>(range);
  if constexpr (Used::is_allowed && detail::is_sweep<Index, Used::rank, Result, Op, Function,
                                                     typename Used::value_type>())
    return detail::with_views(
        where,
        [&](auto const &view) {
          detail::check_range(view, range);
          return detail::sweep_view<Own>(where, view, range, init, op, f);
        },
        written);
  else
    return init;
}
template <class Index = index_t, class Operand, class Result, class Op, class Function,
          class = detail::if_operand<Operand>>
Result sweep(Operand &&elements, detail::range_of<Operand> const &range, Result init, Op op,
             Function f) {
  return sweep<Index>(detail::AtHome(), elements, range, init, op, f);
}

/* For all elements, without their ghost cells. */
template <class Index = index_t, class PlaceType, class Operand, class Result, class Op,
          class Function, class = detail::if_place<PlaceType>, class = detail::if_operand<Operand>>
Result sweep(PlaceType const &place, Operand &&elements, Result init, Op op, Function f) {
  return sweep<Index>(place, elements, Range(detail::extents_of(elements)), init, op, f);
}
template <class Index = index_t, class Operand, class Result, class Op, class Function,
          class = detail::if_operand<Operand>>
Result sweep(Operand &&elements, Result init, Op op, Function f) {
  return sweep<Index>(detail::AtHome(), elements, init, op, f);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
