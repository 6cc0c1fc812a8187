/* umem/for_each.hpp - a function called for every element, or for every index, on host or GPU.
 *
 *     struct AddIndex {
 *       template <class T, class... I> UMEM_FUNCTION void operator()(T &x, I... i) const {
 *         x += static_cast<T>((i + ...));
 *       }
 *     };
 *     umem::for_each_indexed(array, AddIndex());      // on the GPU if the array is there
 *     umem::for_each_indexed(umem::on_host, view, AddIndex());
 *     umem::for_each_indexed(array, umem::interior(array), AddIndex());
 *
 * The elements are those of a View, of a guard of an array, or of an Array. The first argument
 * is the place where the loops run (place.hpp); without it, an array's loop runs on the place of
 * its context. Loops visit ghost cells only if a range reaches into them.
 *
 * Loops call functions in no particular order. On the GPU, and with several threads, calls run
 * at the same time, and each thread has its own copy of f; so f may write only its own element,
 * or elements that no other call touches. With on_host the calls run one after the other; those
 * with indices run in C order.
 *
 * If f throws on the host, the call throws the same exception. A kernel that cannot be launched
 * throws umem::runtime_error with CUDA's message, and a GPU that does not exist
 * umem::value_error. If a kernel crashes, a later call that waits for it throws. */
#ifndef UMEM_FOR_EACH_HPP
#define UMEM_FOR_EACH_HPP

#include <umem/detail/device.hpp>
#include <umem/detail/host_loops.hpp>
#include <umem/detail/operand.hpp>
#include <umem/detail/trace.hpp>
#include <umem/place.hpp>
#include <umem/range.hpp>
#include <umem/view.hpp>

#include <type_traits>
#include <utility>

namespace umem {

namespace detail {

/* Throws umem::value_error if an index type cannot hold the indices of a range. */
template <class Index, int N> void check_index_type(Range<N> const &range) {
  static_assert(is_index<Index> && std::is_signed_v<Index>,
                "the type of indices is a signed integer");
  constexpr index most = largest<Index>;
  for (int k = 0; k < N; k++)
    if (range.begin.at[k] < -most - 1 || range.end.at[k] > most)
      throw value_error("indices up to " + in_words(range.end) + " do not fit the type asked for");
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* f(element of target, element of each input); load: that f reads the target. */
template <bool load, class P, class F, class T, int N, class... A>
void map(P const &place, F f, View<T, N> const &target, View<A, N> const &...inputs) {
  if constexpr (may_be_device<P>)
    if (is_device(place)) return device_map<load>(device_of(place), f, target, inputs...);
  if constexpr (may_be_host<P>) {
    check_for_host<F>();
    host_map(host_of(place), f, target, inputs...);
  }
}

/* f(element, i, j, ...) for the indices of a range. */
template <class Index, class P, class F, class T, int N>
UMEM_ALWAYS_INLINE void map_indexed(P const &place, F f, View<T, N> const &view,
                                    Range<N> const &range) {
  check_index_type<Index>(range);
  if constexpr (may_be_device<P>)
    if (is_device(place))
      return device_indexed<Index>(device_of(place), f, view, range.begin, range.end);
  if constexpr (may_be_host<P>) {
    check_for_host<F>();
    host_indexed<Index>(host_of(place), f, view, range.begin, range.end);
  }
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- elements ---- */

/* f(element): a T &, or a T const & if the elements cannot be written. */
template <class P, class A, class F, class = std::enable_if_t<detail::is_place<P>>>
void for_each(P const &place, A &&elements, F f) {
  UMEM_TRACE("umem::for_each");
  auto where = detail::settled(place, elements);
  auto open = detail::open(where, elements, write);
  detail::map<true>(where, f, open.view);
}
template <class A, class F, class = std::enable_if_t<!detail::is_place<std::remove_reference_t<A>>>>
void for_each(A &&array, F f) {
  for_each(detail::home_of(array), array, f);
}

/* The same for the elements whose indices are in range: a Range<N>, Extents or {begin, end}.
 * Throws umem::index_error if a range that is not empty leaves the elements and their ghost
 * cells. */
template <class P, class A, class F, class = std::enable_if_t<detail::is_place<P>>>
void for_each(P const &place, A &&elements, detail::range_of<A> const &range, F f) {
  UMEM_TRACE("umem::for_each");
  auto where = detail::settled(place, elements);
  auto open = detail::open(where, elements, write);
  detail::map<true>(where, f, detail::part_of(open.view, range));
}
template <class A, class F, class = std::enable_if_t<!detail::is_place<std::remove_reference_t<A>>>>
void for_each(A &&array, detail::range_of<A> const &range, F f) {
  for_each(detail::home_of(array), array, range, f);
}

/* ---- elements with their indices ---- */

/* f(element, i, j, ...). The indices are umem::index or the type that the caller names. With 32
 * bits, for_each_indexed<std::int32_t>, compilers vectorise loops on the host better that
 * compute with indices. Throws umem::value_error if the type is too narrow. */
template <class Index = index, class P, class A, class F,
          class = std::enable_if_t<detail::is_place<P>>>
UMEM_ALWAYS_INLINE void for_each_indexed(P const &place, A &&elements, F f) {
  UMEM_TRACE("umem::for_each_indexed");
  auto where = detail::settled(place, elements);
  auto open = detail::open(where, elements, write);
  detail::map_indexed<Index>(where, f, open.view, Range(open.view.extents));
}
template <class Index = index, class A, class F,
          class = std::enable_if_t<!detail::is_place<std::remove_reference_t<A>>>>
void for_each_indexed(A &&array, F f) {
  for_each_indexed<Index>(detail::home_of(array), array, f);
}

/* The same for the elements whose indices are in range, as for for_each. */
template <class Index = index, class P, class A, class F,
          class = std::enable_if_t<detail::is_place<P>>>
UMEM_ALWAYS_INLINE void for_each_indexed(P const &place, A &&elements,
                                         detail::range_of<A> const &range, F f) {
  UMEM_TRACE("umem::for_each_indexed");
  auto where = detail::settled(place, elements);
  auto open = detail::open(where, elements, write);
  detail::check_range(open.view, range);
  detail::map_indexed<Index>(where, f, open.view, range);
}
template <class Index = index, class A, class F,
          class = std::enable_if_t<!detail::is_place<std::remove_reference_t<A>>>>
void for_each_indexed(A &&array, detail::range_of<A> const &range, F f) {
  for_each_indexed<Index>(detail::home_of(array), array, range, f);
}

/* ---- indices alone ---- */

/* f(i, j, ...) for all indices of a range, or all below extents. The place must be able to use
 * the memory that f touches. */
template <class Index = index, class P, int N, class F>
UMEM_ALWAYS_INLINE void for_each_index(P const &place, Range<N> const &range, F f) {
  UMEM_TRACE("umem::for_each_index");
  auto where = detail::as_place(place);
  using Where = decltype(where);
  detail::check_index_type<Index>(range);
  if constexpr (detail::may_be_device<Where>)
    if (detail::is_device(where))
      return detail::device_indices<Index>(detail::device_of(where), f, range.begin, range.end);
  if constexpr (detail::may_be_host<Where>) {
    detail::check_for_host<F>();
    detail::host_indices<Index>(detail::host_of(where), f, range.begin, range.end);
  }
}
template <class Index = index, class P, int N, class F>
UMEM_ALWAYS_INLINE void for_each_index(P const &place, Extents<N> const &extents, F f) {
  for_each_index<Index>(place, Range<N>(extents), f);
}
template <class Index = index, class P, int N, class F>
UMEM_ALWAYS_INLINE void for_each_index(P const &place, Extents<N> const &begin,
                                       Extents<N> const &end, F f) {
  for_each_index<Index>(place, Range<N>(begin, end), f);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
