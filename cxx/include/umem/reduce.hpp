/* umem/reduce.hpp - one value from many elements, or from many indices, on host or GPU.
 *
 *     double total = umem::sum(array);
 *     float low = umem::min(umem::on_host, view);
 *     double norm2 = umem::transform_reduce(umem::on_host, x, x, 0.0, umem::plus(), Product());
 *
 * See for_each.hpp for operands, places and failures; without a place, the home of the first operand. Calls return when the result is there.
 *
 * umem.hpp does not include this header: with nvcc it includes CUB, which takes long to compile.
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
#include <umem/functional.hpp>

#if defined(__CUDACC__)
#include <umem/reduce.cuh>
#else
#include <umem/detail/device_reduce.hpp>
#endif

#include <string>
#include <type_traits>

namespace umem {

namespace detail {

inline namespace UMEM_LAUNCH_NAMESPACE {

/* op over init and f(element of each view). */
template <class R, class Op, class F, class T, int N, class... A>
R reduce_all(DevicePlace const &place, Op op, F f, R const &init, View<T, N> const &view,
             View<A, N> const &...others) {
  static_assert(std::is_trivially_copyable_v<R>, "results are trivially copyable");
  check_for_device<Op, F>();
  return device_reduce<R>(place, op, f, init, view, others...);
}
template <class R, class Op, class F, class T, int N, class... A>
R reduce_all(HostPlace const &place, Op op, F f, R const &init, View<T, N> const &view,
             View<A, N> const &...others) {
  static_assert(std::is_trivially_copyable_v<R>, "results are trivially copyable");
  check_for_host<Op, F>();
  Partial<R> part = host_reduce<R>(place, op, f, view, others...);
  return part.any ? static_cast<R>(op(init, part.value)) : init;
}
template <class R, class Op, class F, class... V>
R reduce_all(Place const &place, Op op, F f, R const &init, V const &...views) {
  return place.is_device() ? reduce_all<R>(place.device(), op, f, init, views...)
                           : reduce_all<R>(place.host(), op, f, init, views...);
}

/* The same for the elements of uses. */
template <class R, class P, class Op, class F, class... U>
R reduce_uses(char const *function, P const &place, R const &init, Op op, F f, U const &...uses) {
  auto where = settled(place, uses...);
  check_ranks<U...>();
  check_extents(function, extents_of(uses)...);
  return with_views(
      where, [&](auto const &...views) { return reduce_all<R>(where, op, f, init, views...); },
      uses...);
}

/* The smallest or largest element; init: what is larger or smaller than all. */
template <class P, class A, class Op>
auto extreme(char const *function, P const &place, A const &elements, Op op, bool largest) {
  using T = value_of<A>;
  if (extents_of(elements).product() == 0)
    raise_text(umemValueError, "%s of no elements", function);
  return reduce_uses<T>(function, place, limit_of<T>(!largest), op, Identity(),
                        use(elements, read));
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- whole arrays ---- */

/* op over init and f(element) of every element. */
template <class P, class A, class R, class Op, class F,
          class = std::enable_if_t<detail::is_place<P>>>
R transform_reduce(P const &place, A const &elements, R init, Op op, F f) {
  UMEM_TRACE("umem::transform_reduce");
  return detail::reduce_uses<R>("transform_reduce", place, init, op, f,
                                detail::use(elements, read));
}
template <class A, class R, class Op, class F, class = std::enable_if_t<detail::is_operand<A>>>
R transform_reduce(A const &elements, R init, Op op, F f) {
  return transform_reduce(detail::AtHome(), elements, init, op, f);
}

/* op over init and f(element of one, element of two); the extents are equal. Without a place, on that of one. */
template <class P, class A, class B, class R, class Op, class F,
          class = std::enable_if_t<detail::is_place<P>>>
R transform_reduce(P const &place, A const &one, B const &two, R init, Op op, F f) {
  UMEM_TRACE("umem::transform_reduce");
  return detail::reduce_uses<R>("transform_reduce", place, init, op, f, detail::use(one, read),
                                detail::use(two, read));
}
template <class A, class B, class R, class Op, class F,
          class = std::enable_if_t<detail::is_operand<A> && detail::is_operand<B>>, class = void>
R transform_reduce(A const &one, B const &two, R init, Op op, F f) {
  return transform_reduce(detail::AtHome(), one, two, init, op, f);
}

/* op over init and every element. */
template <class P, class A, class R, class Op, class = std::enable_if_t<detail::is_place<P>>>
R reduce(P const &place, A const &elements, R init, Op op) {
  return transform_reduce(place, elements, init, op, detail::Identity());
}
template <class A, class R, class Op, class = std::enable_if_t<detail::is_operand<A>>>
R reduce(A const &elements, R init, Op op) {
  return reduce(detail::AtHome(), elements, init, op);
}

/* The sum, 0 for no elements. */
template <class P, class A, class = std::enable_if_t<detail::is_place<P>>>
auto sum(P const &place, A const &elements) {
  using R = accumulator<detail::value_of<A>>;
  return reduce(place, elements, R(), plus());
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>> auto sum(A const &elements) {
  return sum(detail::AtHome(), elements);
}

/* The smallest and the largest element; umem::value_error where there are none. */
template <class P, class A, class = std::enable_if_t<detail::is_place<P>>>
auto min(P const &place, A const &elements) {
  UMEM_TRACE("umem::min");
  return detail::extreme("min", place, elements, minimum(), false);
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>> auto min(A const &elements) {
  return min(detail::AtHome(), elements);
}
template <class P, class A, class = std::enable_if_t<detail::is_place<P>>>
auto max(P const &place, A const &elements) {
  UMEM_TRACE("umem::max");
  return detail::extreme("max", place, elements, maximum(), true);
}
template <class A, class = std::enable_if_t<detail::is_operand<A>>> auto max(A const &elements) {
  return max(detail::AtHome(), elements);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
