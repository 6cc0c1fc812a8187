/* umem/detail/host_loops.hpp - loops over elements and over indices on the host, written so that
 * compilers vectorise the innermost one: it runs over one pointer with stride 1, or over one index.
 * */
#ifndef UMEM_DETAIL_HOST_LOOPS_HPP
#define UMEM_DETAIL_HOST_LOOPS_HPP

#include <umem/detail/host_threads.hpp>
#include <umem/detail/loop_layout.hpp>

#include <utility>

namespace umem {
namespace detail {

/* The elements that a cache line and a vector register do not share between threads. */
inline constexpr index host_grain = 64;

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
  int k = shared_loop(place, loops.extents);
  on_threads(place, loops.extents.at[k], k == N - 1 ? host_grain : 1, [&](index begin, index end) {
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

/* Loops K to N - 1 over [begin, end), in C order, with the indices of the outer loops before. */
template <int K, int N, class Index, class F, class... I>
void host_index_nest(F &f, Extents<N> const &begin, Extents<N> const &end, I... before) {
  if constexpr (K == N) {
    f(before...);
  } else {
    Index const last = static_cast<Index>(end.at[K]);
    for (Index i = static_cast<Index>(begin.at[K]); i < last; i++)
      host_index_nest<K + 1, N, Index>(f, begin, end, before..., i);
  }
}

/* Calls f(i, j, ...) for begin <= (i, j, ...) < end. Threads get copies of f. */
template <class Index, int N, class F>
void host_indices(HostPlace place, F &f, Extents<N> const &begin, Extents<N> const &end) {
  Extents<N> extents;
  for (int k = 0; k < N; k++) {
    extents.at[k] = end.at[k] - begin.at[k];
    if (extents.at[k] <= 0) return;
  }
  if constexpr (N > 0) {
    if (place.threads != 1) {
      int k = shared_loop(place, extents);
      on_threads(place, extents.at[k], k == N - 1 ? host_grain : 1, [&](index first, index last) {
        Extents<N> low = begin, high = end;
        low.at[k] = begin.at[k] + first;
        high.at[k] = begin.at[k] + last;
        F own = f;
        host_index_nest<0, N, Index>(own, low, high);
      });
      return;
    }
  }
  host_index_nest<0, N, Index>(f, begin, end);
}

/* Calls f(element, i, j, ...) for the elements of a view; unit: that the stride of the last
 * dimension is 1, told to the compiler. */
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

template <class Index, class T, int N, class F>
void host_indexed(HostPlace place, F &f, View<T, N> const &view, Extents<N> const &begin,
                  Extents<N> const &end) {
  if constexpr (N > 0) {
    if (view.strides.at[N - 1] == 1) {
      CallWithElement<true, T, N, F> call{f, view};
      return host_indices<Index>(place, call, begin, end);
    }
  }
  CallWithElement<false, T, N, F> call{f, view};
  host_indices<Index>(place, call, begin, end);
}

} // namespace detail
} // namespace umem

#endif
