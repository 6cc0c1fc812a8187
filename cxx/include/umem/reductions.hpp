/* umem/reductions.hpp - what programs ask of whole arrays, on host or GPU: where the smallest or largest element is,
 * whether a condition holds, dot products and norms.
 *
 *     umem::Extents<2> at = umem::argmax(u);                 // u(at) is the largest element
 *     auto [low, high] = umem::minmax(umem::on_host, view);
 *     double angle = umem::dot(x, y) / (umem::norm(x) * umem::norm(y));
 *     if (umem::any(u, IsNegative())) ...
 *
 * See for_each.hpp for places, operands and failures; without a place the loop runs on that of the first array.
 * Calls return when the result is there. The result is the same from run to run on one place.
 *
 * A NaN among the elements is both the smallest and the largest, as in NumPy: argmin and argmax return the first NaN,
 * and minmax returns NaN twice. Of equal elements, argmin and argmax return the first in C order, whatever the order
 * in memory is. Complex numbers have no order.
 *
 * Like reduce.hpp, this header includes CUB with nvcc. */
#ifndef UMEM_REDUCTIONS_HPP
#define UMEM_REDUCTIONS_HPP

#include <umem/detail/device_sweep.hpp>
#include <umem/detail/host_pieces.hpp>
#include <umem/detail/monoids.hpp>
#include <umem/reduce.hpp>

#include <atomic>
#include <limits>
#include <string>
#include <type_traits>

namespace umem {

namespace detail {

/* Throws umem::value_error if there are no elements. */
template <class A> void check_some(char const *function, A const &elements) {
  for (index_t extent : extents_of(elements))
    if (extent == 0) throw value_error(std::string(function) + " of no elements");
}

template <class A> constexpr void check_order() {
  static_assert(!is_complex<value_of<A>>, "complex numbers have no smallest and largest one");
}

inline namespace UMEM_LAUNCH_NAMESPACE {

template <class Host, class Device, class V>
auto on_side(HostPlace const &place, Host const &host, Device const &, V const &view) {
  return host(place, view);
}
template <class Host, class Device, class V>
auto on_side(DevicePlace const &place, Host const &, Device const &device, V const &view) {
  return device(place, view);
}
template <class Host, class Device, class V>
auto on_side(Place const &place, Host const &host, Device const &device, V const &view) {
  return place.is_device() ? device(place.device(), view) : host(place.host(), view);
}

/* host(place, view) or device(place, view), whose results are of one type. */
template <class P, class A, class Host, class Device>
auto reduce_view(P const &place, A const &elements, Host const &host, Device const &device) {
  auto const used = use(elements, read);
  auto where = settled(place, used);
  return with_views(
      where, [&](auto const &view) { return on_side(where, host, device, view); }, used);
}

template <bool largest_value, class P, class A>
Extents<rank_of<A>> position_of_extreme(P const &place, A const &elements) {
  using T = value_of<A>;
  constexpr int N = rank_of<A>;
  FirstExtreme<largest_value> op;
  Located<T> const found = reduce_view(
      place, elements,
      [=](HostPlace const &host, View<T const, N> const &view) {
        return host_reduce_pieces<Located<T>>(host, op, FindExtreme<largest_value>(), view).value;
      },
      [=](DevicePlace const &device, View<T const, N> const &view) {
        LocatedElement<T const, N> call{view, c_strides(view.extents)};
        return device_index_reduce<index_t>(device, op, call, last_extreme<T>(largest_value),
                                            Extents<N>(), view.extents);
      });
  Extents<N> at, extents = extents_of(elements);
  index_t number = found.number;
  for (int k = N - 1; k >= 0; k--) {
    at.at[k] = number % extents.at[k];
    number /= extents.at[k];
  }
  return at;
}

template <bool largest_value, class P, class A>
Extents<rank_of<A>> arg_extreme(char const *function, P const &place, A const &elements) {
  check_order<A>();
  if constexpr (is_complex<value_of<A>>) {
    return {};
  } else {
    check_some(function, elements);
    return position_of_extreme<largest_value>(place, elements);
  }
}

/* Whether f holds for any element. */
template <class P, class A, class F> bool any_of(P const &place, A const &elements, F f) {
  using T = value_of<A>;
  constexpr int N = rank_of<A>;
  return reduce_view(
      place, elements,
      [=](HostPlace const &host, View<T const, N> const &view) {
        check_for_host<F>();
        std::atomic<bool> found{false};
        host_reduce_pieces<bool>(host, maximum(), FindAny<F>{f, &found}, view);
        return found.load();
      },
      [=](DevicePlace const &device, View<T const, N> const &view) {
        return reduce_all<int>(device, maximum(), CountOf<int, F>{f}, 0, view) != 0;
      });
}

template <bool conjugates, class P, class A, class B>
auto dot_product(char const *function, P const &place, A const &one, B const &two) {
  using R = product_sum<value_of<A>, value_of<B>>;
  return reduce_uses<R>(function, place, R(), plus(), ProductOf<R, conjugates>(), use(one, read),
                        use(two, read));
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- extremes ---- */

/* The indices of the smallest element, and of the largest: element u(umem::argmin(u)). umem::value_error if there are
 * no elements. */
template <class P, class A, class = std::enable_if_t<detail::is_place<P>>>
Extents<detail::rank_of<A>> argmin(P const &place, A const &elements) {
  UMEM_TRACE("umem::argmin");
  return detail::arg_extreme<false>("argmin", place, elements);
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>>
Extents<detail::rank_of<A>> argmin(A const &elements) {
  return argmin(detail::AtHome(), elements);
}
template <class P, class A, class = std::enable_if_t<detail::is_place<P>>>
Extents<detail::rank_of<A>> argmax(P const &place, A const &elements) {
  UMEM_TRACE("umem::argmax");
  return detail::arg_extreme<true>("argmax", place, elements);
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>>
Extents<detail::rank_of<A>> argmax(A const &elements) {
  return argmax(detail::AtHome(), elements);
}

/* The smallest and the largest element, in one pass over memory. umem::value_error if there are no elements. */
template <class P, class A, class = std::enable_if_t<detail::is_place<P>>>
MinMax<detail::value_of<A>> minmax(P const &place, A const &elements) {
  UMEM_TRACE("umem::minmax");
  using T = detail::value_of<A>;
  constexpr int N = detail::rank_of<A>;
  detail::check_order<A>();
  detail::check_some("minmax", elements);
  return detail::reduce_view(
      place, elements,
      [](HostPlace const &host, View<T const, N> const &view) {
        return detail::host_reduce_pieces<MinMax<T>>(host, detail::JoinMinMax(),
                                                     detail::FindMinMax(), view)
            .value;
      },
      [](DevicePlace const &device, View<T const, N> const &view) {
        MinMax<T> const none{detail::limit_of<T>(true), detail::limit_of<T>(false)};
        return detail::reduce_all<MinMax<T>>(device, detail::JoinMinMax(), detail::BothOf(), none,
                                             view);
      });
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>>
MinMax<detail::value_of<A>> minmax(A const &elements) {
  return minmax(detail::AtHome(), elements);
}

/* ---- conditions ---- */

/* For how many elements f(element) is true. */
template <class P, class A, class F, class = std::enable_if_t<detail::is_place<P>>>
index_t count_if(P const &place, A const &elements, F f) {
  UMEM_TRACE("umem::count_if");
  return detail::reduce_uses<index_t>("count_if", place, index_t(0), plus(),
                                      detail::CountOf<index_t, F>{f}, detail::use(elements, read));
}
template <class A, class F, class = std::enable_if_t<detail::is_operand<A>>>
index_t count_if(A const &elements, F f) {
  return count_if(detail::AtHome(), elements, f);
}

/* Whether f(element) is true for any element, false if there are none. On the host the loop ends soon after it has
 * found one. Without f: whether any element is not zero; NaN is not zero. */
template <class P, class A, class F, class = std::enable_if_t<detail::is_place<P>>>
bool any(P const &place, A const &elements, F f) {
  UMEM_TRACE("umem::any");
  return detail::any_of(place, elements, f);
}
template <class A, class F,
          class = std::enable_if_t<detail::is_operand<A> && !detail::is_operand<F>>, class = void>
bool any(A const &elements, F f) {
  return any(detail::AtHome(), elements, f);
}
template <class P, class A, class = std::enable_if_t<detail::is_place<P> && detail::is_operand<A>>>
bool any(P const &place, A const &elements) {
  return any(place, elements, detail::IsTrue());
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>> bool any(A const &elements) {
  return any(detail::AtHome(), elements, detail::IsTrue());
}

/* Whether f(element) is true for all elements, true if there are none; else as any. */
template <class P, class A, class F, class = std::enable_if_t<detail::is_place<P>>>
bool all(P const &place, A const &elements, F f) {
  UMEM_TRACE("umem::all");
  return !detail::any_of(place, elements, detail::Negated<F>{f});
}
template <class A, class F,
          class = std::enable_if_t<detail::is_operand<A> && !detail::is_operand<F>>, class = void>
bool all(A const &elements, F f) {
  return all(detail::AtHome(), elements, f);
}
template <class P, class A, class = std::enable_if_t<detail::is_place<P> && detail::is_operand<A>>>
bool all(P const &place, A const &elements) {
  return all(place, elements, detail::IsTrue());
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>> bool all(A const &elements) {
  return all(detail::AtHome(), elements, detail::IsTrue());
}

/* ---- products and norms ---- */

/* The sum of the products of elements with the same indices, 0 for no elements; in accumulator of their common type.
 * dot conjugates nothing; vdot takes the complex conjugate of the first operand, so vdot(x, x) is the square of the
 * norm. umem::value_error if the extents differ. */
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
auto dot(P const &place, A const &one, B const &two) {
  UMEM_TRACE("umem::dot");
  return detail::dot_product<false>("dot", place, one, two);
}
template <class A, class B, class = std::enable_if_t<detail::is_operand<A>>>
auto dot(A const &one, B const &two) {
  return dot(detail::AtHome(), one, two);
}
template <class P, class A, class B, class = std::enable_if_t<detail::is_place<P>>>
auto vdot(P const &place, A const &one, B const &two) {
  UMEM_TRACE("umem::vdot");
  return detail::dot_product<true>("vdot", place, one, two);
}
template <class A, class B, class = std::enable_if_t<detail::is_operand<A>>>
auto vdot(A const &one, B const &two) {
  return vdot(detail::AtHome(), one, two);
}

/* The root of the sum of the squares of all elements, of whatever rank; 0 for no elements. double for integers, float
 * and double, also complex ones; float for floating-point numbers of 16 bits. The squares may be too large or too small
 * for a double: then a second pass scales them. */
template <class P, class A, class = std::enable_if_t<detail::is_place<P>>>
detail::norm_of<detail::value_of<A>> norm(P const &place, A const &elements) {
  UMEM_TRACE("umem::norm");
  using T = detail::value_of<A>;
  using R = detail::norm_of<T>;
  using Plain = detail::Squares<R>;
  auto add = [&](auto zero) {
    using S = decltype(zero);
    return detail::reduce_uses<S>("norm", place, zero, plus(), detail::SquareOf<R, S>(),
                                  detail::use(elements, read));
  };
  Plain const squares = add(Plain{R(0)});
  if constexpr (std::is_same_v<detail::squares_of<T>, detail::ScaledSquares>) {
    constexpr R most = std::numeric_limits<R>::max();
    constexpr R least = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
    if (squares.sum > most || squares.sum < least)
      return static_cast<R>(add(detail::ScaledSquares{0, 0, 0}));
  }
  return static_cast<R>(squares);
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>>
detail::norm_of<detail::value_of<A>> norm(A const &elements) {
  return norm(detail::AtHome(), elements);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
