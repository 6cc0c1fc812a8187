/* umem/reductions.hpp - what programs ask of whole arrays, on host or GPU: where the smallest or
 * largest element is, whether a condition holds, dot products and norms.
 *
 *     umem::Extents<2> at = umem::argmax(u);                 // u(at) is the largest element
 *     auto [low, high] = umem::minmax(umem::on_host, view);
 *     double angle = umem::dot(x, y) / (umem::norm(x) * umem::norm(y));
 *     if (umem::any(u, IsNegative())) ...
 *
 * See for_each.hpp for places, operands and failures; without a place the loop runs on that of the
 * first array. Calls return when the result is there. The result is the same from run to run on one
 * place.
 *
 * A NaN among the elements is both the smallest and the largest, as in NumPy: argmin and argmax
 * return the first NaN, and minmax returns NaN twice. Of equal elements, argmin and argmax return
 * the first in C order, whatever the order in memory is. Complex numbers have no order. */
#ifndef UMEM_REDUCTIONS_HPP
#define UMEM_REDUCTIONS_HPP

#include <umem/detail/monoids.hpp>
#include <umem/reduce.hpp>

namespace umem {

namespace detail {

template <class Operand> constexpr void check_order() {
  static_assert(!is_complex<value_of<Operand>>, "complex numbers have no smallest and largest one");
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* host(place, view) or device(place, view), whose results are of one type. */
template <class PlaceType, class Operand, class OnHost, class OnDevice>
auto reduce_view(PlaceType const &place, Operand const &elements, OnHost const &host,
                 OnDevice const &device) {
  auto const used = use(elements, read);
  auto where = settled(place, used);
  return with_views(
      where,
      [&](auto const &view) {
        return on_side(
            where, [&](auto const &one) { return host(one, view); },
            [&](auto const &one) { return device(one, view); });
      },
      used);
}

template <bool largest_value, class PlaceType, class Operand>
Extents<rank_of<Operand>> arg_extreme(Called const &function, PlaceType const &place,
                                      Operand const &elements) {
  using Type = value_of<Operand>;
  constexpr int Rank = rank_of<Operand>;
  check_order<Operand>();
  if constexpr (is_complex<Type>) {
    return {};
  } else {
    check_some(function, elements);
    FirstExtreme<largest_value> op;
    Located<Type> const found = reduce_view(
        place, elements,
        [=](HostPlace const &host, View<Type const, Rank> const &view) {
          return host_reduce_pieces<Located<Type>>(host, op, FindExtreme<largest_value>(), view)
              .value;
        },
        [=](DevicePlace const &device, View<Type const, Rank> const &view) {
          LocatedElement<Type const, Rank> invoke{view, c_strides(view.extents)};
          return device_index_reduce<index_t>(device, op, invoke, last_extreme<Type>(largest_value),
                                              Extents<Rank>(), view.extents);
        });
    return indices_at(found.number, extents_of(elements));
  }
}

/* Whether f holds for any element. */
template <class PlaceType, class Operand, class Function>
bool any_of(PlaceType const &place, Operand const &elements, Function f) {
  using Type = value_of<Operand>;
  constexpr int Rank = rank_of<Operand>;
  if constexpr (takes_elements<called_by<Function>, Type>())
    return reduce_view(
        place, elements,
        [=](HostPlace const &host, View<Type const, Rank> const &view) {
          check_for_host<Function>();
          std::atomic<bool> found{false};
          host_reduce_pieces<bool>(host, maximum(), FindAny<Function>{f, &found}, view);
          return found.load();
        },
        [=](DevicePlace const &device, View<Type const, Rank> const &view) {
          return reduce_all<int>(device, maximum(), CountOf<int, Function>{f}, 0, view) != 0;
        });
  else
    return false;
}

template <bool conjugates, class PlaceType, class Operand, class Other>
auto dot_product(Called const &function, PlaceType const &place, Operand const &one,
                 Other const &two) {
  using Result = product_sum<value_of<Operand>, value_of<Other>>;
  return reduce_uses<Result>(function, place, Result(), plus(), ProductOf<Result, conjugates>(),
                             use(one, read), use(two, read));
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- extremes ---- */

/* The indices of the smallest element, and of the largest: element u(umem::argmin(u)).
 * umem::value_error if there are no elements. */
template <class PlaceType, class Operand, class = detail::if_place<PlaceType>>
Extents<detail::rank_of<Operand>> argmin(PlaceType const &place, Operand const &elements) {
  return detail::arg_extreme<false>("argmin", place, elements);
}
UMEM_AT_HOME(argmin)
template <class PlaceType, class Operand, class = detail::if_place<PlaceType>>
Extents<detail::rank_of<Operand>> argmax(PlaceType const &place, Operand const &elements) {
  return detail::arg_extreme<true>("argmax", place, elements);
}
UMEM_AT_HOME(argmax)

/* The smallest and the largest element, in one pass over memory. umem::value_error if there are no
 * elements. */
template <class PlaceType, class Operand, class = detail::if_place<PlaceType>>
MinMax<detail::value_of<Operand>> minmax(PlaceType const &place, Operand const &elements) {
  detail::Called const function("minmax");
  using Type = detail::value_of<Operand>;
  constexpr int Rank = detail::rank_of<Operand>;
  detail::check_order<Operand>();
  detail::check_some(function, elements);
  return detail::reduce_view(
      place, elements,
      [](HostPlace const &host, View<Type const, Rank> const &view) {
        return detail::host_reduce_pieces<MinMax<Type>>(host, detail::JoinMinMax(),
                                                        detail::FindMinMax(), view)
            .value;
      },
      [](DevicePlace const &device, View<Type const, Rank> const &view) {
        MinMax<Type> const none{detail::limit_of<Type>(true), detail::limit_of<Type>(false)};
        return detail::reduce_all<MinMax<Type>>(device, detail::JoinMinMax(), detail::BothOf(),
                                                none, view);
      });
}
UMEM_AT_HOME(minmax)

/* ---- conditions ---- */

/* For how many elements f(element) is true. */
template <class PlaceType, class Operand, class Function, class = detail::if_place<PlaceType>>
index_t count_if(PlaceType const &place, Operand const &elements, Function f) {
  return detail::reduce_uses<index_t>("count_if", place, index_t(0), plus(),
                                      detail::CountOf<index_t, Function>{f},
                                      detail::use(elements, read));
}
UMEM_AT_HOME(count_if)

/* Whether f(element) is true for any element, false if there are none. On the host the loop ends
 * soon after it has found one. Without f: whether any element is not zero; NaN is not zero. */
template <class PlaceType, class Operand, class Function = detail::IsTrue,
          class = detail::if_place<PlaceType>>
bool any(PlaceType const &place, Operand const &elements, Function f = {}) {
  detail::Called const function("any");
  return detail::any_of(place, elements, f);
}
UMEM_AT_HOME(any)

/* Whether f(element) is true for all elements, true if there are none; else as any. */
template <class PlaceType, class Operand, class Function = detail::IsTrue,
          class = detail::if_place<PlaceType>>
bool all(PlaceType const &place, Operand const &elements, Function f = {}) {
  detail::Called const function("all");
  return !detail::any_of(place, elements, detail::Negated<Function>{f});
}
UMEM_AT_HOME(all)

/* ---- products and norms ---- */

/* The sum of the products of elements with the same indices, 0 for no elements; in accumulator of
 * their common type. dot conjugates nothing; vdot takes the complex conjugate of the first operand,
 * so vdot(x, x) is the square of the norm. umem::value_error if the extents differ. */
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
auto dot(PlaceType const &place, Operand const &one, Other const &two) {
  return detail::dot_product<false>("dot", place, one, two);
}
UMEM_AT_HOME(dot)
template <class PlaceType, class Operand, class Other, class = detail::if_place<PlaceType>>
auto vdot(PlaceType const &place, Operand const &one, Other const &two) {
  return detail::dot_product<true>("vdot", place, one, two);
}
UMEM_AT_HOME(vdot)

/* The root of the sum of the squares of all elements, of whatever rank; 0 for no elements. double
 * for integers, float and double, also complex ones; float for floating-point numbers of 16 bits.
 * The squares may be too large or too small for a double: then a second pass scales them. */
template <class PlaceType, class Operand, class = detail::if_place<PlaceType>>
detail::norm_of<detail::value_of<Operand>> norm(PlaceType const &place, Operand const &elements) {
  detail::Called const function("norm");
  using Type = detail::value_of<Operand>;
  using Result = detail::norm_of<Type>;
  using Plain = detail::Squares<Result>;
  auto add = [&](auto zero) {
    using Square = decltype(zero);
    return detail::reduce_uses<Square>(function, place, zero, plus(),
                                       detail::SquareOf<Result, Square>(),
                                       detail::use(elements, read));
  };
  Plain const squares = add(Plain{Result(0)});
  if constexpr (std::is_same_v<detail::squares_of<Type>, detail::ScaledSquares>) {
    constexpr Result most = std::numeric_limits<Result>::max();
    constexpr Result least =
        std::numeric_limits<Result>::min() / std::numeric_limits<Result>::epsilon();
    if (squares.sum > most || squares.sum < least)
      return static_cast<Result>(add(detail::ScaledSquares{0, 0, 0}));
  }
  return static_cast<Result>(squares);
}
UMEM_AT_HOME(norm)

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
