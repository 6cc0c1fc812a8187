/* umem/detail/host_reduce.hpp - reductions on the host: 16 interleaved partial results, in
 * vector registers, over blocks of at most 1024 elements; then the results of blocks in pairs,
 * so that the error of a sum grows with the logarithm of its length. */
#ifndef UMEM_DETAIL_HOST_REDUCE_HPP
#define UMEM_DETAIL_HOST_REDUCE_HPP

#include <umem/detail/host_loops.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace umem {
namespace detail {

/* The result over some elements. Over no elements there is none. */
template <class R> struct Partial {
  R value{};
  bool any = false;
};

template <class R, class Op>
UMEM_FUNCTION Partial<R> combine(Op &op, Partial<R> const &a, Partial<R> const &b) {
  if (!a.any) return b;
  if (!b.any) return a;
  return {static_cast<R>(op(a.value, b.value)), true};
}

inline constexpr index reduce_lanes = 16;
inline constexpr index reduce_block = 1024;

/* Over get(0), ..., get(n - 1); n > 0. */
template <class R, class Op, class Get> R host_reduce_block(Op &op, index n, Get const &get) {
  if (n < 2 * reduce_lanes) {
    R result = get(index(0));
    for (index i = 1; i < n; i++) result = static_cast<R>(op(result, get(i)));
    return result;
  }
  R lane[reduce_lanes];
  for (index l = 0; l < reduce_lanes; l++) lane[l] = get(l);
  index i = reduce_lanes;
  for (; i + reduce_lanes <= n; i += reduce_lanes)
    for (index l = 0; l < reduce_lanes; l++) lane[l] = static_cast<R>(op(lane[l], get(i + l)));
  for (index l = 0; i + l < n; l++) lane[l] = static_cast<R>(op(lane[l], get(i + l)));
  for (index width = reduce_lanes / 2; width > 0; width /= 2)
    for (index l = 0; l < width; l++) lane[l] = static_cast<R>(op(lane[l], lane[l + width]));
  return lane[0];
}

/* The middle of a range of count > unit items, at a multiple of unit. */
inline index middle(index count, index unit) noexcept {
  return (count / unit + (count % unit != 0)) / 2 * unit;
}

/* Over begin <= i < end, in pairs of blocks. */
template <class R, class Op, class Get>
R host_reduce_row(Op &op, index begin, index end, Get const &get) {
  if (end - begin <= reduce_block)
    return host_reduce_block<R>(op, end - begin, [&](index i) { return get(begin + i); });
  index half = begin + middle(end - begin, reduce_block);
  R first = host_reduce_row<R>(op, begin, half, get);
  return static_cast<R>(op(first, host_reduce_row<R>(op, half, end, get)));
}

/* ---- over elements ---- */

template <class R, class Op, class F, class... T>
R host_reduce_elements(Op &op, F &f, index n, T *...element) {
  return host_reduce_row<R>(op, 0, n, [&](index i) { return static_cast<R>(f(element[i]...)); });
}

/* Loops K to N - 1, all of whose extents are positive. */
template <int K, class R, int N, class Op, class F, class... T, int... M>
R host_reduce_nest(Op &op, F &f, LoopLayout<N, sizeof...(T)> const &loops, index begin, index end,
                   std::integer_sequence<int, M...> all, T *...element) {
  if constexpr (K == N - 1) {
    index const stride[] = {loops.strides[M].at[K]...};
    if (((stride[M] == 1) && ...))
      return host_reduce_elements<R>(op, f, end - begin, (element + begin)...);
    return host_reduce_row<R>(op, begin, end, [&, stride](index i) {
      return static_cast<R>(f(element[i * stride[M]]...));
    });
  } else {
    if (end - begin == 1)
      return host_reduce_nest<K + 1, R>(op, f, loops, 0, loops.extents.at[K + 1], all,
                                        element + begin * loops.strides[M].at[K]...);
    index half = begin + middle(end - begin, 1);
    R first = host_reduce_nest<K, R>(op, f, loops, begin, half, all, element...);
    return static_cast<R>(
        op(first, host_reduce_nest<K, R>(op, f, loops, half, end, all, element...)));
  }
}

/* Joins reduce(begin, end) of the chunks of a cut, in their order. */
template <class R, class Op, class Reduce>
Partial<R> host_reduce_parts(Cut const &cut, Op &op, Reduce const &reduce) {
  std::vector<Partial<R>> parts(static_cast<std::size_t>(cut.chunks));
  on_threads(cut.chunks, [&](index n) {
    index begin = cut.begin(n), end = cut.begin(n + 1);
    if (begin < end) parts[static_cast<std::size_t>(n)] = {reduce(begin, end), true};
  });
  Partial<R> result;
  for (Partial<R> const &part : parts) result = combine(op, result, part);
  return result;
}

template <class R, int N, class Op, class F, class... T, int... M>
Partial<R> host_reduce_loops(HostPlace place, Op &op, F &f,
                             LoopLayout<N, sizeof...(T)> const &loops,
                             std::integer_sequence<int, M...> all, T *...element) {
  if (place.threads == 1)
    return {host_reduce_nest<0, R>(op, f, loops, 0, loops.extents.at[0], all, element...), true};
  Cut const cut = cut_for(parts_of(place), loops.extents);
  int const k = cut.dimension;
  return host_reduce_parts<R>(cut, op, [&](index begin, index end) {
    LoopLayout<N, sizeof...(T)> part = loops;
    part.extents.at[k] = end - begin;
    F own = f;
    Op own_op = op;
    return host_reduce_nest<0, R>(own_op, own, part, 0, part.extents.at[0], all,
                                  element + begin * loops.strides[M].at[k]...);
  });
}

/* Over f(element of each view). */
template <class R, class Op, class F, class T, int N, class... A>
Partial<R> host_reduce(HostPlace place, Op &op, F &f, View<T, N> const &view,
                       View<A, N> const &...others) {
  if (view.size() == 0) return {};
  auto loops = loops_of(view, others...);
  simplify(loops);
  return host_reduce_loops<R>(place, op, f, loops,
                              std::make_integer_sequence<int, 1 + sizeof...(A)>(), view.data,
                              others.data...);
}

/* ---- over indices ---- */

/* Stores the values of f for a strip of indices and then reduces them: so the compiler
 * vectorises both loops, even if f itself stores. Index counts the indices of a strip, so a
 * strip is no longer than the largest Index. */
template <class Index> inline constexpr index reduce_strip = largest<Index> < 256 ? 64 : 256;

template <class R, class Index, class Op, class F, class... I>
R host_reduce_strips(Op &op, F &f, index begin, index end, I... before) {
  constexpr index strip = reduce_strip<Index>;
  R value[static_cast<std::size_t>(strip)];
  R result{};
  for (index first = begin; first < end; first += strip) {
    index n = end - first < strip ? end - first : strip;
    Index const low = static_cast<Index>(first), count = static_cast<Index>(n);
    for (Index i = 0; i < count; i++)
      value[i] = static_cast<R>(f(before..., static_cast<Index>(low + i)));
    R part = host_reduce_block<R>(op, n, [&](index i) { return value[i]; });
    result = first == begin ? part : static_cast<R>(op(result, part));
  }
  return result;
}

/* Loops K to N - 1 with the indices of the outer loops before. Each loop runs at least once. */
template <int K, class R, class Index, int N, class Op, class F, class... I>
R host_reduce_index_nest(Op &op, F &f, Extents<N> const &begin, Extents<N> const &end,
                         I... before) {
  if constexpr (N == 0) {
    return static_cast<R>(f());
  } else if constexpr (K == N - 1) {
    return host_reduce_strips<R, Index>(op, f, begin.at[K], end.at[K], before...);
  } else {
    R result{};
    for (index i = begin.at[K]; i < end.at[K]; i++) {
      R part = host_reduce_index_nest<K + 1, R, Index>(op, f, begin, end, before...,
                                                       static_cast<Index>(i));
      result = i == begin.at[K] ? part : static_cast<R>(op(result, part));
    }
    return result;
  }
}

/* Over f(i, j, ...) for begin <= (i, j, ...) < end. */
template <class Index, class R, int N, class Op, class F>
Partial<R> host_index_reduce(HostPlace place, Op &op, F &f, Extents<N> const &begin,
                             Extents<N> const &end) {
  Extents<N> extents;
  for (int k = 0; k < N; k++) {
    extents.at[k] = end.at[k] - begin.at[k];
    if (extents.at[k] <= 0) return {};
  }
  if constexpr (N > 0) {
    if (place.threads != 1) {
      Cut const cut = cut_for(parts_of(place), extents);
      int const k = cut.dimension;
      return host_reduce_parts<R>(cut, op, [&](index first, index last) {
        Extents<N> low = begin, high = end;
        low.at[k] = begin.at[k] + first;
        high.at[k] = begin.at[k] + last;
        F own = f;
        Op own_op = op;
        return host_reduce_index_nest<0, R, Index>(own_op, own, low, high);
      });
    }
  }
  return {host_reduce_index_nest<0, R, Index>(op, f, begin, end), true};
}

/* f(element of a view, i, j, ...) as a function of indices alone. unit: the stride of the last dimension is 1, as a
 * constant for the compiler. */
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

/* The same for f(element, i, j, ...), where the element is that of a view. */
template <class Index, class R, class T, int N, class Op, class F>
Partial<R> host_sweep(HostPlace place, Op &op, F &f, View<T, N> const &view,
                      Extents<N> const &begin, Extents<N> const &end) {
  if constexpr (N > 0) {
    if (view.strides.at[N - 1] == 1) {
      CallWithElement<true, T, N, F> call{f, view};
      return host_index_reduce<Index, R>(place, op, call, begin, end);
    }
  }
  CallWithElement<false, T, N, F> call{f, view};
  return host_index_reduce<Index, R>(place, op, call, begin, end);
}

} // namespace detail
} // namespace umem

#endif
