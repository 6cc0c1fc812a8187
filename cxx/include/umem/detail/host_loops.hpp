/* umem/detail/host_loops.hpp - loops over elements and over indices on the host, written so that
 * compilers vectorise the innermost one: it runs over one pointer with stride 1, or over one
 * index. */
#ifndef UMEM_DETAIL_HOST_LOOPS_HPP
#define UMEM_DETAIL_HOST_LOOPS_HPP

#include <umem/detail/host_threads.hpp>
#include <umem/detail/loop_layout.hpp>

#include <utility>

namespace umem {
namespace detail {

/* ---- elements ---- */

template <class F, class... T> void host_row(F &f, index n, T *...element) {
  for (index i = 0; i < n; i++) f(element[i]...);
}

template <class F, class... T, int... M>
void host_strided_row(F &f, index n, index const *stride, std::integer_sequence<int, M...>,
                      T *...element) {
  index const s[] = {stride[M]...};
  for (index i = 0; i < n; i++) f(element[i * s[M]]...);
}

/* Loops K to N - 1. */
template <int K, int N, class F, class... T, int... M>
void host_nest(F &f, LoopLayout<N, sizeof...(T)> const &loops, std::integer_sequence<int, M...> all,
               T *...element) {
  if constexpr (K < N - 1) {
    for (index i = 0; i < loops.extents.at[K]; i++)
      host_nest<K + 1>(f, loops, all, element + i * loops.strides[M].at[K]...);
  } else {
    index const stride[] = {loops.strides[M].at[K]...};
    if (((stride[M] == 1) && ...))
      host_row(f, loops.extents.at[K], element...);
    else
      host_strided_row(f, loops.extents.at[K], stride, all, element...);
  }
}

/* Calls f(element of each operand) for all elements, in any order. Threads get copies of f. */
template <int N, class F, class... T, int... M>
void host_map(HostPlace place, F &f, LoopLayout<N, sizeof...(T)> const &loops,
              std::integer_sequence<int, M...> all, T *...element) {
  if (place.threads == 1) return host_nest<0>(f, loops, all, element...);
  Cut const cut = cut_for(threads_of(place), loops.extents);
  int const k = cut.dimension;
  on_threads(cut, [&](index begin, index end) {
    LoopLayout<N, sizeof...(T)> part = loops;
    part.extents.at[k] = end - begin;
    F own = f;
    host_nest<0>(own, part, all, element + begin * loops.strides[M].at[k]...);
  });
}

/* The same for views with equal extents. */
template <class F, class T, int N, class... A>
void host_map(HostPlace place, F &f, View<T, N> const &view, View<A, N> const &...others) {
  if (view.size() == 0) return;
  auto loops = loops_of(view, others...);
  simplify(loops);
  host_map(place, f, loops, std::make_integer_sequence<int, 1 + sizeof...(A)>(), view.data,
           others.data...);
}

/* ---- indices ---- */

/* Loops K to N - 1 over [begin, end), in C order, with the indices of the outer loops before.
 * All loops become one function, like loops that are written out: a compiler that calls the
 * inner ones reads the functor from memory again for each row. */
template <int K, int N, class Index, class F, class... I>
UMEM_ALWAYS_INLINE void host_index_nest(F &f, Extents<N> const &begin, Extents<N> const &end,
                                        I... before) {
  if constexpr (K == N) {
    f(before...);
  } else {
    Index const last = static_cast<Index>(end.at[K]);
    for (Index i = static_cast<Index>(begin.at[K]); i < last; i++)
      host_index_nest<K + 1, N, Index>(f, begin, end, before..., i);
  }
}

/* The same for f(element, i, j, ...); row: the element with the indices before, and 0 from K on. */
template <bool unit, int K, class Index, class F, class T, int N, class... I>
UMEM_ALWAYS_INLINE void host_element_nest(F &f, T *row, Extents<N> const &strides,
                                          Extents<N> const &begin, Extents<N> const &end,
                                          I... before) {
  if constexpr (K == N) {
    f(*row, before...);
  } else {
    index const stride = unit && K == N - 1 ? 1 : strides.at[K];
    Index const last = static_cast<Index>(end.at[K]);
    for (Index i = static_cast<Index>(begin.at[K]); i < last; i++)
      host_element_nest<unit, K + 1, Index>(f, row + static_cast<index>(i) * stride, strides, begin,
                                            end, before..., i);
  }
}

/* Calls run(begin, end) once for [begin, end), or for one part per thread. */
template <int N, class Run>
UMEM_ALWAYS_INLINE void host_share(HostPlace place, Extents<N> const &begin, Extents<N> const &end,
                                   Run const &run) {
  Extents<N> extents;
  for (int k = 0; k < N; k++) {
    extents.at[k] = end.at[k] - begin.at[k];
    if (extents.at[k] <= 0) return;
  }
  if constexpr (N > 0) {
    if (place.threads != 1) {
      Cut const cut = cut_for(threads_of(place), extents);
      int const k = cut.dimension;
      on_threads(cut, [&](index first, index last) {
        Extents<N> low = begin, high = end;
        low.at[k] = begin.at[k] + first;
        high.at[k] = begin.at[k] + last;
        run(low, high);
      });
      return;
    }
  }
  run(begin, end);
}

/* Calls f(i, j, ...) for begin <= (i, j, ...) < end, with a copy of f for each thread: no other
 * code can see the copy, so it may be in registers. */
template <class Index, int N, class F>
UMEM_ALWAYS_INLINE void host_indices(HostPlace place, F const &f, Extents<N> const &begin,
                                     Extents<N> const &end) {
  host_share(
      place, begin,
      end, [&](Extents<N> const low, Extents<N> const high) __attribute__((always_inline)) {
        F own = f;
        host_index_nest<0, N, Index>(own, low, high);
      });
}

/* Calls f(element, i, j, ...) for the elements of a view. unit: the stride of the last dimension
 * is 1, as a constant for the compiler. */
template <bool unit, class T, int N, class F> struct CallWithElement {
  F f;
  View<T, N> view;

  template <class... I> decltype(auto) operator()(I... i) {
    if constexpr (unit)
      return f(view.data[offset(std::make_integer_sequence<int, N>(), static_cast<index>(i)...)],
               i...);
    else
      return f(view(i...), i...);
  }

private:
  template <int... K, class... I>
  index offset(std::integer_sequence<int, K...>, I... i) const noexcept {
    return ((i * (K == N - 1 ? 1 : view.strides.at[K])) + ... + index(0));
  }
};

template <bool unit, class Index, class T, int N, class F>
UMEM_ALWAYS_INLINE void host_indexed_rows(HostPlace place, F const &f, View<T, N> const &view,
                                          Extents<N> const &begin, Extents<N> const &end) {
  host_share(
      place, begin,
      end, [&](Extents<N> const low, Extents<N> const high) __attribute__((always_inline)) {
        F own = f;
        Extents<N> const strides = view.strides;
        host_element_nest<unit, 0, Index>(own, view.data, strides, low, high);
      });
}

/* Calls f(element, i, j, ...) for the elements of a view with begin <= (i, j, ...) < end. */
template <class Index, class T, int N, class F>
UMEM_ALWAYS_INLINE void host_indexed(HostPlace place, F const &f, View<T, N> const &view,
                                     Extents<N> const &begin, Extents<N> const &end) {
  if constexpr (N > 0) {
    if (view.strides.at[N - 1] == 1)
      return host_indexed_rows<true, Index>(place, f, view, begin, end);
  }
  host_indexed_rows<false, Index>(place, f, view, begin, end);
}

} // namespace detail
} // namespace umem

#endif
