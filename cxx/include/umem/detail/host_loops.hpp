/* umem/detail/host_loops.hpp - loops over elements and over indices on the host, written so that
 * compilers vectorise the innermost one: it runs over one pointer with stride 1, or over one
 * index. */
#ifndef UMEM_DETAIL_HOST_LOOPS_HPP
#define UMEM_DETAIL_HOST_LOOPS_HPP

#include <umem/detail/host_threads.hpp>
#include <umem/detail/loop_layout.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace umem {
namespace detail {

/* ---- elements ---- */

/* The function as the loop over a row calls it: a copy where calls cannot change it. No other code can see the copy, so
 * that its members are in registers, even if the loop writes elements of their types. */
template <class F, class... T>
using InRow = std::conditional_t<std::is_trivially_copyable_v<F> && sizeof(F) <= 128 &&
                                     std::is_invocable_v<F const &, T &...>,
                                 F const, F &>;

template <class F, class... T> void host_row(F &f, index_t n, T *...element) {
  InRow<F, T...> call = f;
  for (index_t i = 0; i < n; i++) call(element[i]...);
}

template <class F, class... T, int... M>
void host_strided_row(F &f, index_t n, index_t const *stride, std::integer_sequence<int, M...>,
                      T *...element) {
  InRow<F, T...> call = f;
  index_t const s[] = {stride[M]...};
  for (index_t i = 0; i < n; i++) call(element[i * s[M]]...);
}

/* Rows in which one operand has another stride than 1, as a constant for the compiler which: the loops that a program
 * would write for such a layout. */
template <int S, class F, class... T, int... M>
void host_row_but_one(F &f, index_t n, index_t stride, std::integer_sequence<int, M...>,
                      T *...element) {
  InRow<F, T...> call = f;
  for (index_t i = 0; i < n; i++) call(element[M == S ? i * stride : i]...);
}

/* The same where all elements of the row share one of the operand, which is only read. */
template <bool is_shared, class T> struct RowElement {
  T *row;
  UMEM_ALWAYS_INLINE T &operator[](index_t i) const noexcept { return row[i]; }
};
template <class T> struct RowElement<true, T const> {
  T const value; /* nothing else can write to it */
  explicit RowElement(T const *row) noexcept : value(*row) {}
  UMEM_ALWAYS_INLINE T const &operator[](index_t) const noexcept { return value; }
};
template <class F, class... E> void host_shared_row(F &f, index_t n, E const... element) {
  InRow<F, decltype(element[0])...> call = f;
  for (index_t i = 0; i < n; i++) call(element[i]...);
}

/* Rows whose strides are not all 1. Loops for rows with one such operand, if there are few: S, S + 1, ... may be it. */
template <int S, class F, class... T, int... M>
void host_rows_with_gaps(F &f, index_t n, index_t const *stride,
                         std::integer_sequence<int, M...> all, T *...element) {
  constexpr int count = sizeof...(T);
  if constexpr (S == count || count == 1 || count > 4) {
    host_strided_row(f, n, stride, all, element...);
  } else {
    if (!((M == S || stride[M] == 1) && ...))
      return host_rows_with_gaps<S + 1>(f, n, stride, all, element...);
    using Operand = std::tuple_element_t<static_cast<std::size_t>(S), std::tuple<T...>>;
    if constexpr (std::is_const_v<Operand> && std::is_copy_constructible_v<Operand>)
      if (stride[S] == 0) return host_shared_row(f, n, RowElement<M == S, T>{element}...);
    host_row_but_one<S>(f, n, stride[S], all, element...);
  }
}

/* Loops K to N - 1. */
template <int K, int N, class F, class... T, int... M>
void host_nest(F &f, LoopLayout<N, sizeof...(T)> const &loops, std::integer_sequence<int, M...> all,
               T *...element) {
  if constexpr (K < N - 1) {
    for (index_t i = 0; i < loops.extents.at[K]; i++)
      host_nest<K + 1>(f, loops, all, element + i * loops.strides[M].at[K]...);
  } else {
    index_t const stride[] = {loops.strides[M].at[K]...};
    if (((stride[M] == 1) && ...))
      host_row(f, loops.extents.at[K], element...);
    else
      host_rows_with_gaps<0>(f, loops.extents.at[K], stride, all, element...);
  }
}

/* Calls f(element of each operand) for all elements, in any order. Threads get copies of f. */
template <int N, class F, class... T, int... M>
void host_map(HostPlace place, F &f, LoopLayout<N, sizeof...(T)> const &loops,
              std::integer_sequence<int, M...> all, T *...element) {
  if (place.threads == 1) return host_nest<0>(f, loops, all, element...);
  Cut const cut = cut_for(threads_of(place), loops.extents);
  int const k = cut.dimension;
  on_threads(cut, [&](index_t begin, index_t end) {
    LoopLayout<N, sizeof...(T)> part = loops;
    part.extents.at[k] = end - begin;
    F own = f;
    host_nest<0>(own, part, all, element + begin * loops.strides[M].at[k]...);
  });
}

/* The same for views with equal extents. */
template <class F, class T, int N, class... A>
UMEM_ALWAYS_INLINE void host_map(HostPlace place, F &f, View<T, N> const &view,
                                 View<A, N> const &...others) {
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

/* The elements of several operands at some indices. */
template <int M, class T> struct OperandElement { T *at; };

template <class All, class... T> struct OperandElements;
template <int... M, class... T>
struct OperandElements<std::integer_sequence<int, M...>, T...> : OperandElement<M, T>... {
  /* Those i further in dimension k. unit: there all strides are 1. */
  template <bool unit, int N>
  UMEM_ALWAYS_INLINE OperandElements moved(index_t i, int k,
                                           Extents<N> const *strides) const noexcept {
    return {{OperandElement<M, T>::at + i * (unit ? 1 : strides[M].at[k])}...};
  }
  template <class F, class... I> UMEM_ALWAYS_INLINE decltype(auto) call(F &f, I... i) const {
    return f(*OperandElement<M, T>::at..., i...);
  }
};

/* The same for f(element of each operand, i, j, ...); row: the elements with the indices before, and 0 from K on. */
template <bool unit, int K, class Index, class F, class Elements, int N, class... I>
UMEM_ALWAYS_INLINE void host_element_nest(F &f, Elements const row, Extents<N> const *strides,
                                          Extents<N> const &begin, Extents<N> const &end,
                                          I... before) {
  if constexpr (K == N) {
    row.call(f, before...);
  } else {
    Index const last = static_cast<Index>(end.at[K]);
    for (Index i = static_cast<Index>(begin.at[K]); i < last; i++)
      host_element_nest<unit, K + 1, Index>(
          f, row.template moved < unit && K == N - 1 > (static_cast<index_t>(i), K, strides),
          strides, begin, end, before..., i);
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
      on_threads(cut, [&](index_t first, index_t last) {
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

/* Calls f(element of each view, i, j, ...) for begin <= (i, j, ...) < end. unit: all strides of the last dimension are
 * 1, as a constant for the compiler. */
template <bool unit, class Index, int N, class F, class... T>
UMEM_ALWAYS_INLINE void host_indexed_rows(HostPlace place, F const &f, Extents<N> const &begin,
                                          Extents<N> const &end, View<T, N> const &...views) {
  using Elements = OperandElements<std::make_integer_sequence<int, sizeof...(T)>, T...>;
  host_share(
      place, begin,
      end, [&](Extents<N> const low, Extents<N> const high) __attribute__((always_inline)) {
        F own = f;
        Extents<N> const strides[] = {views.strides...};
        host_element_nest<unit, 0, Index>(own, Elements{{views.data}...}, strides, low, high);
      });
}

/* f(element of each operand, i, j, ...) for loops over transposed views: it gets the indices in reversed order. */
template <class F, class All, class... T> struct ReversedIndices;
template <class F, int... K, class... T>
struct ReversedIndices<F, std::integer_sequence<int, K...>, T...> {
  F f;

  template <class... I> UMEM_ALWAYS_INLINE decltype(auto) operator()(T &...elements, I... i) {
    std::common_type_t<I...> const at[] = {i...};
    return f(elements..., at[sizeof...(K) - 1 - K]...);
  }
};
template <int N, class F, class... T>
using reversed_indices = ReversedIndices<F, std::make_integer_sequence<int, N>, T...>;

template <class Index, int N, class F, class... T>
UMEM_ALWAYS_INLINE void host_indexed(HostPlace place, F const &f, Extents<N> const &begin,
                                     Extents<N> const &end, View<T, N> const &...views) {
  if constexpr (N > 0) {
    if (((views.strides.at[N - 1] == 1) && ...))
      return host_indexed_rows<true, Index>(place, f, begin, end, views...);
  }
  if constexpr (N > 1) {
    if (((views.strides.at[0] == 1) && ...)) /* column-major */
      return host_indexed_rows<true, Index>(place, reversed_indices<N, F, T...>{f}, reversed(begin),
                                            reversed(end), views.transpose()...);
  }
  host_indexed_rows<false, Index>(place, f, begin, end, views...);
}

} // namespace detail
} // namespace umem

#endif
