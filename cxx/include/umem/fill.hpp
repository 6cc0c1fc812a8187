/* umem/fill.hpp - sets elements to one value or to their numbers, on host or GPU.
 *
 *     umem::fill(array, 0.0);
 *     umem::iota(umem::on_host, view, 1, 2);                // 1, 3, 5, ... in C order
 *
 * See for_each.hpp for places, elements and failures. */
#ifndef UMEM_FILL_HPP
#define UMEM_FILL_HPP

#include <umem/for_each.hpp>

#include <type_traits>

namespace umem {

namespace detail {

/* element = value */
template <class T> struct SetTo {
  T value;
  UMEM_FUNCTION void operator()(T &element) const { element = value; }
};

/* element = start + step * number of the element in C order */
template <class T, int N> struct Count {
  T start, step;
  Extents<N> strides;

  template <class... I> UMEM_FUNCTION void operator()(T &element, I... i) const {
    index_t n = number(std::make_integer_sequence<int, N>(), i...);
    element = static_cast<T>(start + step * static_cast<T>(n));
  }

private:
  template <int... K, class... I>
  UMEM_FUNCTION index_t number(std::integer_sequence<int, K...>, I... i) const {
    return ((i * strides.at[K]) + ... + index_t(0));
  }
};

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* Every element becomes value. */
template <class P, class A, class V, class = std::enable_if_t<detail::is_place<P>>>
void fill(P const &place, A &&elements, V const &value) {
  UMEM_TRACE("umem::fill");
  using T = detail::value_of<detail::bare_t<A>>;
  detail::loop("fill", place, detail::SetTo<T>{static_cast<T>(value)},
               detail::use(elements, discard));
}
template <class A, class V, class = std::enable_if_t<detail::is_operand<A>>>
void fill(A &&elements, V const &value) {
  fill(detail::AtHome(), elements, value);
}

/* start, start + step, start + 2 * step, ... in C order. Each element is computed from its
 * number, with the arithmetic of the element type. */
template <class P, class A, class V, class W, class = std::enable_if_t<detail::is_place<P>>>
void iota(P const &place, A &&elements, V const &start, W const &step) {
  UMEM_TRACE("umem::iota");
  using T = detail::value_of<detail::bare_t<A>>;
  constexpr int N = detail::rank_of<detail::bare_t<A>>;
  Extents<N> const extents = detail::extents_of(elements);
  detail::Count<T, N> count{static_cast<T>(start), static_cast<T>(step), c_strides(extents)};
  detail::loop_indexed<index_t>("iota", place, count, nullptr, detail::use(elements, discard));
}
template <class P, class A, class V, class = std::enable_if_t<detail::is_place<P>>>
void iota(P const &place, A &&elements, V const &start) {
  iota(place, elements, start, 1);
}
template <class A, class V, class W = int, class = std::enable_if_t<detail::is_operand<A>>>
void iota(A &&elements, V const &start, W const &step = 1) {
  iota(detail::AtHome(), elements, start, step);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
