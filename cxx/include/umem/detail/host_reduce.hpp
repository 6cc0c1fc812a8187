/* umem/detail/host_reduce.hpp - reductions on the host: 16 interleaved partial results, in
 * vector registers, over blocks of at most 1024 elements; then the results of blocks in pairs,
 * so that the error of a sum grows with the logarithm of its length. */
#ifndef UMEM_DETAIL_HOST_REDUCE_HPP
#define UMEM_DETAIL_HOST_REDUCE_HPP

#include <umem/detail/host_loops.hpp>
#include <umem/functional.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
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

inline constexpr index_t reduce_lanes = 16;
inline constexpr index_t reduce_block = 1024;

/* Joins 16 partial results in pairs. All their numbers are constants: so compilers keep them in registers. */
template <class R, class Op> R join_lanes(Op &op, R *lane) {
  for (index_t l = 0; l < 8; l++) lane[l] = static_cast<R>(op(lane[l], lane[l + 8]));
  for (index_t l = 0; l < 4; l++) lane[l] = static_cast<R>(op(lane[l], lane[l + 4]));
  for (index_t l = 0; l < 2; l++) lane[l] = static_cast<R>(op(lane[l], lane[l + 2]));
  return static_cast<R>(op(lane[0], lane[1]));
}

/* Elements that follow each other in memory; elsewhere, a function of their number. */
template <class T> struct InLine {
  T const *data;
  T const &operator()(index_t i) const { return data[i]; }
};

/* The same elements from number begin on. */
template <class Get> auto from_number(Get const &get, index_t begin) {
  return [&get, begin](index_t i) { return get(begin + i); };
}
template <class T> InLine<T> from_number(InLine<T> const &get, index_t begin) {
  return {get.data + begin};
}

/* Extremes of floating-point numbers, which keep NaN. */
template <class R, class Op> inline constexpr bool is_extreme = false;
template <> inline constexpr bool is_extreme<float, minimum> = true;
template <> inline constexpr bool is_extreme<float, maximum> = true;
template <> inline constexpr bool is_extreme<double, minimum> = true;
template <> inline constexpr bool is_extreme<double, maximum> = true;

/* The extreme of groups * 16 or 8 numbers that follow each other. Processors compute the larger of two numbers in one
 * instruction that loses NaN, and find NaN in another; compilers use these instructions only in code with vectors. */
template <class R, class Op> struct ExtremesOf {
  using Vector [[gnu::vector_size(16)]] = R;
  using Mask [[gnu::vector_size(16)]] =
      std::int32_t; /* GCC makes scalar code of masks of 64 bits */
  static constexpr index_t width = 16 / sizeof(R), vectors = 4, group = width * vectors;

  /* first: any of the numbers. */
  static R of(R const *x, index_t groups, R first) {
    return of(x, groups, first, std::make_integer_sequence<int, vectors>());
  }

private:
  UMEM_ALWAYS_INLINE static void join(Vector &best, Mask &nan, R const *x) {
    Vector value;
    std::memcpy(&value, x, sizeof value);
    auto const is_nan = value != value;
    Mask mask;
    std::memcpy(&mask, &is_nan, sizeof mask);
    nan |= mask;
    if constexpr (std::is_same_v<Op, minimum>)
      best = value < best ? value : best;
    else
      best = value > best ? value : best;
  }

  /* Written out, so that all vectors are in registers. */
  template <int... V>
  static R of(R const *x, index_t groups, R first, std::integer_sequence<int, V...>) {
    Vector best[vectors];
    Mask nan[2] = {};
    R all[static_cast<std::size_t>(group)];
    for (R &value : all) value = first;
    std::memcpy(best, all, sizeof best);
    for (; groups > 0; groups--, x += group) (join(best[V], nan[V % 2], x + V * width), ...);
    Mask const any = nan[0] | nan[1];
    for (int l = 0; l < 4; l++)
      if (any[l]) return std::numeric_limits<R>::quiet_NaN();
    std::memcpy(all, best, sizeof all);
    Op op;
    R result = all[0];
    for (R const value : all) result = op(result, value);
    return result;
  }
};

/* get(0), ... for i < n in line: where they are, or in a buffer. */
template <class R, class Op, class Get> R host_reduce_extremes(index_t n, Get const &get) {
  constexpr index_t group = ExtremesOf<R, Op>::group;
  if constexpr (std::is_same_v<Get, InLine<R>>) {
    return ExtremesOf<R, Op>::of(get.data, n / group, get.data[0]);
  } else {
    R buffer[reduce_block];
    R const first = get(index_t(0));
    buffer[0] = first;
    for (index_t i = 1; i < n; i++) buffer[i] = get(i);
    return ExtremesOf<R, Op>::of(buffer, n / group, first);
  }
}

/* Over get(0), ..., get(n - 1); n > 0. */
template <class R, class Op, class Get> R host_reduce_block(Op &op, index_t n, Get const &get) {
  R result;
  index_t i = 0;
  if (n < 2 * reduce_lanes) {
    result = get(i++);
  } else if constexpr (is_extreme<R, Op>) {
    i = n / ExtremesOf<R, Op>::group * ExtremesOf<R, Op>::group;
    result = host_reduce_extremes<R, Op>(i, get);
  } else {
    R lane[reduce_lanes];
    for (; i < reduce_lanes; i++) lane[i] = get(i);
    for (; i + reduce_lanes <= n; i += reduce_lanes)
      for (index_t l = 0; l < reduce_lanes; l++) lane[l] = static_cast<R>(op(lane[l], get(i + l)));
    result = join_lanes<R>(op, lane);
  }
  for (; i < n; i++) result = static_cast<R>(op(result, get(i)));
  return result;
}

/* The middle of a range of count > unit items, at a multiple of unit. */
inline index_t middle(index_t count, index_t unit) noexcept {
  return (count / unit + (count % unit != 0)) / 2 * unit;
}

/* Over begin <= i < end, in pairs of blocks. */
template <class R, class Op, class Get>
R host_reduce_row(Op &op, index_t begin, index_t end, Get const &get) {
  if (end - begin <= reduce_block)
    return host_reduce_block<R>(op, end - begin, from_number(get, begin));
  index_t half = begin + middle(end - begin, reduce_block);
  R first = host_reduce_row<R>(op, begin, half, get);
  return static_cast<R>(op(first, host_reduce_row<R>(op, half, end, get)));
}

/* ---- over elements ---- */

template <class R, class Op, class F, class... T>
R host_reduce_elements(Op &op, F &f, index_t n, T *...element) {
  if constexpr (std::is_same_v<std::tuple<F, T...>, std::tuple<Identity, R const>>)
    return host_reduce_row<R>(op, 0, n, InLine<R>{element...});
  else
    return host_reduce_row<R>(op, 0, n,
                              [&](index_t i) { return static_cast<R>(f(element[i]...)); });
}

/* Loops K to N - 1, all of whose extents are positive. */
template <int K, class R, int N, class Op, class F, class... T, int... M>
R host_reduce_nest(Op &op, F &f, LoopLayout<N, sizeof...(T)> const &loops, index_t begin,
                   index_t end, std::integer_sequence<int, M...> all, T *...element) {
  if constexpr (K == N - 1) {
    index_t const stride[] = {loops.strides[M].at[K]...};
    if (((stride[M] == 1) && ...))
      return host_reduce_elements<R>(op, f, end - begin, (element + begin)...);
    return host_reduce_row<R>(op, begin, end, [&, stride](index_t i) {
      return static_cast<R>(f(element[i * stride[M]]...));
    });
  } else {
    if (end - begin == 1)
      return host_reduce_nest<K + 1, R>(op, f, loops, 0, loops.extents.at[K + 1], all,
                                        element + begin * loops.strides[M].at[K]...);
    index_t half = begin + middle(end - begin, 1);
    R first = host_reduce_nest<K, R>(op, f, loops, begin, half, all, element...);
    return static_cast<R>(
        op(first, host_reduce_nest<K, R>(op, f, loops, half, end, all, element...)));
  }
}

/* Joins reduce(begin, end) of the chunks of a cut, in their order. */
template <class R, class Op, class Reduce>
Partial<R> host_reduce_parts(Cut const &cut, Op &op, Reduce const &reduce) {
  std::vector<Partial<R>> parts(static_cast<std::size_t>(cut.chunks));
  on_threads(cut.chunks, [&](index_t n) {
    index_t begin = cut.begin(n), end = cut.begin(n + 1);
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
  return host_reduce_parts<R>(cut, op, [&](index_t begin, index_t end) {
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
template <class Index> inline constexpr index_t reduce_strip = largest<Index> < 256 ? 64 : 256;

template <class R, class Index, class Op, class F, class... I>
R host_reduce_strips(Op &op, F &f, index_t begin, index_t end, I... before) {
  constexpr index_t strip = reduce_strip<Index>;
  R value[static_cast<std::size_t>(strip)];
  R result{};
  for (index_t first = begin; first < end; first += strip) {
    index_t n = end - first < strip ? end - first : strip;
    Index const low = static_cast<Index>(first), count = static_cast<Index>(n);
    for (Index i = 0; i < count; i++)
      value[i] = static_cast<R>(f(before..., static_cast<Index>(low + i)));
    R part = host_reduce_block<R>(op, n, InLine<R>{value});
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
    for (index_t i = begin.at[K]; i < end.at[K]; i++) {
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
      return host_reduce_parts<R>(cut, op, [&](index_t first, index_t last) {
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
      return f(view.data[offset(std::make_integer_sequence<int, N>(), static_cast<index_t>(i)...)],
               i...);
    else
      return f(view(i...), i...);
  }

private:
  template <int... K, class... I>
  index_t offset(std::integer_sequence<int, K...>, I... i) const noexcept {
    return ((i * (K == N - 1 ? 1 : view.strides.at[K])) + ... + index_t(0));
  }
};

/* The same for f(element, i, j, ...), where the element is that of a view in column-major order. */
template <class Index, class R, class T, int N, class Op, class F>
Partial<R> host_sweep_columns(HostPlace place, Op &op, F &f, View<T, N> const &view,
                              Extents<N> const &begin, Extents<N> const &end) {
  using Reversed = reversed_indices<N, F, T>;
  CallWithElement<true, T, N, Reversed> call{Reversed{f}, view.transpose()};
  return host_index_reduce<Index, R>(place, op, call, reversed(begin), reversed(end));
}

/* The same in C order. */
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
