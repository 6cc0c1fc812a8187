/* umem/reduce.hpp - one value from many elements, or from many indices, on host or GPU.
 *
 *     double total = umem::sum(array);
 *     float low = umem::min(umem::on_host, view);
 *     double norm2 = umem::transform_reduce(umem::on_host, x, x, 0.0, umem::plus(), Product());
 *
 * See for_each.hpp for operands, places and failures; without a place, the home of the first
 * operand. Calls return when the result is there.
 *
 * umem chooses the order in which it applies the operation: it must be associative and
 * commutative, up to rounding. On the host one thread keeps 16 partial results over blocks of
 * 1024 elements and joins the blocks in pairs. With several threads the elements are cut in as
 * many parts as the place names threads; each part is reduced like that, and the parts are
 * joined in their order. On a GPU each thread block has its part. So the last digits of a sum of
 * floating-point numbers may differ between places, numbers of threads and kinds of GPU, but not
 * from run to run on one. umem_set_threads changes them only for on_host_threads(0).
 *
 * Results have the type of init, to which elements are converted first; sum chooses the type
 * accumulator<T> (functional.hpp). A NaN among the elements makes sum, min and max NaN. */
#ifndef UMEM_REDUCE_HPP
#define UMEM_REDUCE_HPP

#include <umem/detail/host_reduce.hpp>
#include <umem/for_each.hpp>

#if defined(__CUDACC__)
#include <umem/reduce.cuh>
#endif

namespace umem {

namespace detail {

/* Throws umem::value_error if there are no elements. */
template <class Operand> void check_some(Called const &function, Operand const &elements) {
  if (extents_of(elements).product() == 0)
    raise_text(umemValueError, "%s of no elements", function.name);
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(element of each view). */
template <class Result, class PlaceType, class Op, class Function, class... Views>
Result reduce_all(PlaceType const &place, Op op, Function f, Result const &init,
                  Views const &...views) {
  static_assert(std::is_trivially_copyable_v<Result>, "results are trivially copyable");
  return on_side(
      place,
      [&](auto const &host) -> Result {
        check_for_host<Op, Function>();
        Partial<Result> part = host_reduce<Result>(host, op, f, views...);
        return part.any ? static_cast<Result>(op(init, part.value)) : init;
      },
      [&](auto const &device) -> Result {
        check_for_device<Op, Function>();
        return device_reduce<Result>(device, op, f, init, views...);
      });
}

/* Reduces the elements of uses. */
template <class Result, class PlaceType, class Op, class Function, class... Uses>
Result reduce_uses(Called const &function, PlaceType const &place, Result const &init, Op op,
                   Function f, Uses const &...uses) {
  auto where = settled(place, uses...);
  check_ranks<Uses...>();
  if constexpr (are_allowed<Uses...>() && joins<Op, Result>() &&
                takes_elements<called_by<Function>, typename Uses::value_type...>()) {
    check_extents(function.name, extents_of(uses)...);
    return with_views(
        where,
        [&](auto const &...views) { return reduce_all<Result>(where, op, f, init, views...); },
        uses...);
  } else {
    return init;
  }
}

/* The smallest or largest element; init: what is larger or smaller than all. */
template <class PlaceType, class Operand, class Op>
auto extreme(Called const &function, PlaceType const &place, Operand const &elements, Op op,
             bool largest) {
  using Type = value_of<Operand>;
  check_some(function, elements);
  return reduce_uses<Type>(function, place, limit_of<Type>(!largest), op, Identity(),
                           use(elements, read));
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- whole arrays ---- */

/* op over init and f(element) of every element. */
template <class PlaceType, class Operand, class Result, class Op, class Function,
          class = detail::if_place<PlaceType>>
Result transform_reduce(PlaceType const &place, Operand const &elements, Result init, Op op,
                        Function f) {
  return detail::reduce_uses<Result>("transform_reduce", place, init, op, f,
                                     detail::use(elements, read));
}

/* op over init and f(element of one, element of two); the extents are equal. Without a place, on
 * that of one. */
template <class PlaceType, class Operand, class Other, class Result, class Op, class Function,
          class = detail::if_place<PlaceType>>
Result transform_reduce(PlaceType const &place, Operand const &one, Other const &two, Result init,
                        Op op, Function f) {
  return detail::reduce_uses<Result>("transform_reduce", place, init, op, f, detail::use(one, read),
                                     detail::use(two, read));
}
UMEM_AT_HOME(transform_reduce)

/* op over init and every element. */
template <class PlaceType, class Operand, class Result, class Op,
          class = detail::if_place<PlaceType>>
Result reduce(PlaceType const &place, Operand const &elements, Result init, Op op) {
  static_assert(!std::is_floating_point_v<detail::value_of<Operand>> || !std::is_integral_v<Result>,
                "reduce: the result is of the type of init: for these elements 0.0, not 0");
  return detail::reduce_uses<Result>("reduce", place, init, op, detail::Identity(),
                                     detail::use(elements, read));
}
UMEM_AT_HOME(reduce)

/* The sum, 0 for no elements. */
template <class PlaceType, class Operand, class = detail::if_place<PlaceType>>
auto sum(PlaceType const &place, Operand const &elements) {
  using Result = accumulator<detail::value_of<Operand>>;
  return detail::reduce_uses<Result>("sum", place, Result(), plus(), detail::Identity(),
                                     detail::use(elements, read));
}
UMEM_AT_HOME(sum)

/* The smallest and the largest element; umem::value_error where there are none. */
template <class PlaceType, class Operand, class = detail::if_place<PlaceType>>
auto min(PlaceType const &place, Operand const &elements) {
  return detail::extreme("min", place, elements, minimum(), false);
}
UMEM_AT_HOME(min)
template <class PlaceType, class Operand, class = detail::if_place<PlaceType>>
auto max(PlaceType const &place, Operand const &elements) {
  return detail::extreme("max", place, elements, maximum(), true);
}
UMEM_AT_HOME(max)

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
