/* umem/for_each.hpp - a function called for every element, or for every index, on host or GPU.
 *
 *     struct AddIndex {
 *       template <class T, class... I> UMEM_FUNCTION void operator()(T &x, I... i) const {
 *         x += static_cast<T>((i + ...));
 *       }
 *     };
 *     umem::for_each_indexed(array, AddIndex());      // on the GPU for an array that lives there
 *     umem::for_each_indexed(umem::on_host, view, AddIndex());
 *
 * The elements are those of a View, of a guard of an array, or of an Array; the first argument says
 * where the loops run (place.hpp), and an array without one means the place of its context. Ghost
 * cells are not visited.
 *
 * Functions are called in no particular order, on the GPU and with several threads at the same
 * time, each thread with a copy of f; so what f writes are its own element, or elements that no
 * other call touches. With on_host alone all calls are one after the other, those with indices in C
 * order.
 *
 * What f throws on the host comes out of the call. Failed launches of kernels are
 * umem::runtime_error with CUDA's words; a kernel that crashes is told by a later call that waits
 * for it. */
#ifndef UMEM_FOR_EACH_HPP
#define UMEM_FOR_EACH_HPP

#include <umem/detail/device.hpp>
#include <umem/detail/host_loops.hpp>
#include <umem/detail/operand.hpp>
#include <umem/place.hpp>
#include <umem/view.hpp>

#include <type_traits>

namespace umem {

/* Indices from begin to before end, in every dimension. */
template <int N> struct Range {
  Extents<N> begin, end;

  constexpr Range() noexcept = default;
  UMEM_FUNCTION constexpr Range(Extents<N> const &extents) noexcept : end(extents) {}
  UMEM_FUNCTION constexpr Range(Extents<N> const &begin_, Extents<N> const &end_) noexcept
      : begin(begin_), end(end_) {}
};

/* The indices of a view that are at least margin away from its ends. */
template <class T, int N>
UMEM_FUNCTION constexpr Range<N> interior(View<T, N> const &view, index margin = 1) noexcept {
  Range<N> range(view.extents);
  for (int k = 0; k < N; k++) {
    range.begin.at[k] += margin;
    range.end.at[k] -= margin;
  }
  return range;
}

namespace detail {

/* Throws umem::value_error where the numbers of an index type do not reach. */
template <class Index, int N> void check_index_type(Range<N> const &range) {
  static_assert(is_index<Index> && std::is_signed_v<Index>,
                "the type of indices is a signed integer");
  for (int k = 0; k < N; k++)
    if (range.begin.at[k] < -largest<Index> - 1 || range.end.at[k] > largest<Index>)
      throw value_error("indices up to " + in_words(range.end) + " do not fit the type asked for");
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* f(element of target, element of each input); load: that f reads the target. */
template <bool load, class P, class F, class T, int N, class... A>
void map(P const &place, F f, View<T, N> const &target, View<A, N> const &...inputs) {
  if constexpr (may_be_device<P>)
    if (is_device(place)) return device_map<load>(device_of(place), f, target, inputs...);
  if constexpr (may_be_host<P>) host_map(host_of(place), f, target, inputs...);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* ---- elements ---- */

/* f(element), a T & or, for what may not be written, a T const &. */
template <class P, class A, class F, class = std::enable_if_t<detail::is_place<P>>>
void for_each(P const &place, A &&elements, F f) {
  auto where = detail::settled(place, elements);
  auto open = detail::open(where, elements, write);
  detail::map<true>(where, f, open.view);
}
template <class A, class F, class = std::enable_if_t<detail::is_array<std::remove_reference_t<A>>>>
void for_each(A &&array, F f) {
  for_each(detail::home_of(array), array, f);
}

/* ---- elements with their indices ---- */

/* f(element, i, j, ...). The indices are umem::index or what the caller names as Index: with 32
 * bits, for_each_indexed<std::int32_t>, host loops that turn indices into numbers vectorise better.
 * umem::value_error where it is too narrow. */
template <class Index = index, class P, class A, class F,
          class = std::enable_if_t<detail::is_place<P>>>
void for_each_indexed(P const &place, A &&elements, F f) {
  auto where = detail::settled(place, elements);
  auto open = detail::open(where, elements, write);
  using Where = decltype(where);
  detail::check_index_type<Index>(Range(open.view.extents));
  if constexpr (detail::may_be_device<Where>)
    if (detail::is_device(where))
      return detail::device_indexed<Index>(detail::device_of(where), f, open.view);
  if constexpr (detail::may_be_host<Where>)
    detail::host_indexed<Index>(detail::host_of(where), f, open.view);
}
template <class Index = index, class A, class F,
          class = std::enable_if_t<detail::is_array<std::remove_reference_t<A>>>>
void for_each_indexed(A &&array, F f) {
  for_each_indexed<Index>(detail::home_of(array), array, f);
}

/* ---- indices alone ---- */

/* f(i, j, ...) for all indices of a range, or all below extents. For what f touches, its views must
 * be of memory that the place can use. */
template <class Index = index, class P, int N, class F>
void for_each_index(P const &place, Range<N> const &range, F f) {
  auto where = detail::as_place(place);
  using Where = decltype(where);
  detail::check_index_type<Index>(range);
  if constexpr (detail::may_be_device<Where>)
    if (detail::is_device(where))
      return detail::device_indices<Index>(detail::device_of(where), f, range.begin, range.end);
  if constexpr (detail::may_be_host<Where>)
    detail::host_indices<Index>(detail::host_of(where), f, range.begin, range.end);
}
template <class Index = index, class P, int N, class F>
void for_each_index(P const &place, Extents<N> const &extents, F f) {
  for_each_index<Index>(place, Range<N>(extents), f);
}
template <class Index = index, class P, int N, class F>
void for_each_index(P const &place, Extents<N> const &begin, Extents<N> const &end, F f) {
  for_each_index<Index>(place, Range<N>(begin, end), f);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
