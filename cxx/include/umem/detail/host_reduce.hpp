/* umem/detail/host_reduce.hpp - reductions on the host: 16 interleaved partial results, in
 * vector registers, over blocks of at most 1024 elements; then the results of blocks in pairs,
 * so that the error of a sum grows with the logarithm of its length. */
#ifndef UMEM_DETAIL_HOST_REDUCE_HPP
#define UMEM_DETAIL_HOST_REDUCE_HPP

#include <umem/detail/host_loops.hpp>
#include <umem/functional.hpp>

namespace umem::detail {

/* The result over some elements. Over no elements there is none. */
template <class Result> struct Partial {
  Result value{};
  bool any = false;
};

template <class Result, class Op>
UMEM_FUNCTION Partial<Result> combine(Op &op, Partial<Result> const &a, Partial<Result> const &b) {
  if (!a.any) return b;
  if (!b.any) return a;
  return {static_cast<Result>(op(a.value, b.value)), true};
}

inline constexpr index_t reduce_lanes = 16;
inline constexpr index_t reduce_block = 1024;

/* Joins 16 partial results in pairs. All their numbers are constants: so compilers keep them in
 * registers. */
template <class Result, class Op> Result join_lanes(Op &op, Result *lane) {
  for (index_t l = 0; l < 8; l++) lane[l] = static_cast<Result>(op(lane[l], lane[l + 8]));
  for (index_t l = 0; l < 4; l++) lane[l] = static_cast<Result>(op(lane[l], lane[l + 4]));
  for (index_t l = 0; l < 2; l++) lane[l] = static_cast<Result>(op(lane[l], lane[l + 2]));
  return static_cast<Result>(op(lane[0], lane[1]));
}

/* Elements that follow each other in memory, converted to Result; elsewhere, a function of their
 * number. */
template <class Result, class Type = Result> struct InLine {
  Type const *data;
  Result operator()(index_t i) const { return static_cast<Result>(data[i]); }
};

/* The elements of get from number begin on. */
template <class Get> auto from_number(Get const &get, index_t begin) {
  return [&get, begin](index_t i) { return get(begin + i); };
}
template <class Result, class Type>
InLine<Result, Type> from_number(InLine<Result, Type> const &get, index_t begin) {
  return {get.data + begin};
}

template <class Get> inline constexpr bool is_in_line = false;
template <class Result, class Type> inline constexpr bool is_in_line<InLine<Result, Type>> = true;

template <class Op>
inline constexpr bool finds_extreme = std::is_same_v<Op, minimum> || std::is_same_v<Op, maximum>;

/* Extremes of floating-point numbers, which keep NaN, and of int where they are in memory. */
template <class Result, class Op, class Get>
inline constexpr bool
    is_extreme = finds_extreme<Op> &&
                 (std::is_same_v<Result, float> || std::is_same_v<Result, double> ||
                  (std::is_same_v<Result, std::int32_t> && std::is_same_v<Get, InLine<Result>>));

/* Whether compilers make the best of a plain loop: for integers, where no order changes the result.
 * GCC does better with lanes if it need not compute the elements. */
template <class Result, class Op, class Get>
inline constexpr bool is_plain_loop = std::is_integral_v<Result> && !is_extreme<Result, Op, Get> &&
                                      (std::is_same_v<Op, plus> || finds_extreme<Op>)
#if !defined(__clang__)
                                      &&!is_in_line<Get>
#endif
    ;

/* The extreme of groups * 16 or 8 numbers that follow each other. Processors compute the larger of
 * two numbers in one instruction that loses NaN, and find NaN in another; compilers use these
 * instructions only in code with vectors. */
template <class Result, class Op> struct ExtremesOf {
#if defined(__AVX2__)
  static constexpr int bytes = 32;
#else
  static constexpr int bytes = 16;
#endif
  using Vector [[gnu::vector_size(bytes)]] = Result;
  using Mask [[gnu::vector_size(bytes)]] =
      std::int32_t; /* GCC makes scalar code of masks of 64 bits */
  static constexpr index_t width = bytes / sizeof(Result), vectors = 4, group = width * vectors;

  /* first: any of the numbers. */
  static Result of(Result const *x, index_t groups, Result first) {
    return of(x, groups, first, std::make_integer_sequence<int, vectors>());
  }

private:
  UMEM_ALWAYS_INLINE static void join(Vector &best, Mask &nan, Result const *x) {
    Vector value;
    std::memcpy(&value, x, sizeof value);
    if constexpr (!std::is_integral_v<Result>) {
      auto const is_nan = value != value;
      Mask mask;
      std::memcpy(&mask, &is_nan, sizeof mask);
      nan |= mask;
    }
    if constexpr (std::is_same_v<Op, minimum>)
      best = value < best ? value : best;
    else
      best = value > best ? value : best;
  }

  /* Written out, so that all vectors are in registers. */
  template <int... Lanes>
  static Result of(Result const *x, index_t groups, Result first,
                   std::integer_sequence<int, Lanes...>) {
    Vector best[vectors];
    Mask nan[2] = {};
    Result all[static_cast<std::size_t>(group)];
    for (Result &value : all) value = first;
    std::memcpy(best, all, sizeof best);
    for (; groups > 0; groups--, x += group)
      (join(best[Lanes], nan[Lanes % 2], x + Lanes * width), ...);
    Mask const any = nan[0] | nan[1];
    for (int l = 0; l < bytes / 4; l++)
      if (any[l]) return std::numeric_limits<Result>::quiet_NaN();
    std::memcpy(all, best, sizeof all);
    Op op;
    Result result = all[0];
    for (Result const value : all) result = op(result, value);
    return result;
  }
};

/* get(0), ... for i < n in line: where they are, or in a buffer. */
template <class Result, class Op, class Get>
Result host_reduce_extremes(index_t n, Get const &get) {
  constexpr index_t group = ExtremesOf<Result, Op>::group;
  if constexpr (std::is_same_v<Get, InLine<Result>>) {
    return ExtremesOf<Result, Op>::of(get.data, n / group, get.data[0]);
  } else {
    alignas(vector_bytes) Result buffer[reduce_block];
    Result const first = get(index_t(0));
    buffer[0] = first;
    for (index_t i = 1; i < n; i++) buffer[i] = get(i);
    return ExtremesOf<Result, Op>::of(buffer, n / group, first);
  }
}

/* Over get(0), ..., get(n - 1); n > 0. */
template <class Result, class Op, class Get>
Result host_reduce_block(Op &op, index_t n, Get const &get) {
  Result result;
  index_t i = 0;
  if (is_plain_loop<Result, Op, Get> || n < 2 * reduce_lanes) {
    result = get(i++);
  } else if constexpr (is_extreme<Result, Op, Get>) {
    i = n / ExtremesOf<Result, Op>::group * ExtremesOf<Result, Op>::group;
    result = host_reduce_extremes<Result, Op>(i, get);
  } else {
    Result lane[reduce_lanes];
    for (; i < reduce_lanes; i++) lane[i] = get(i);
    for (; i + reduce_lanes <= n; i += reduce_lanes)
      for (index_t l = 0; l < reduce_lanes; l++)
        lane[l] = static_cast<Result>(op(lane[l], get(i + l)));
    result = join_lanes<Result>(op, lane);
  }
  for (; i < n; i++) result = static_cast<Result>(op(result, get(i)));
  return result;
}

/* The middle of a range of count > unit items, at a multiple of unit. */
inline index_t middle(index_t count, index_t unit) noexcept {
  return (count / unit + (count % unit != 0)) / 2 * unit;
}

/* Over begin <= i < end, in pairs of blocks. */
template <class Result, class Op, class Get>
Result host_reduce_row(Op &op, index_t begin, index_t end, Get const &get) {
  constexpr bool is_whole =
      is_plain_loop<Result, Op, Get> || (std::is_integral_v<Result> && is_extreme<Result, Op, Get>);
  if (is_whole || end - begin <= reduce_block)
    return host_reduce_block<Result>(op, end - begin, from_number(get, begin));
  index_t half = begin + middle(end - begin, reduce_block);
  Result first = host_reduce_row<Result>(op, begin, half, get);
  return static_cast<Result>(op(first, host_reduce_row<Result>(op, half, end, get)));
}

/* ---- over elements ---- */

template <class Result, class Op, class Function, class... Types>
Result host_reduce_elements(Op &op, Function &functor, index_t n, Types *...element) {
  if constexpr (sizeof...(Types) == 1 && std::is_same_v<Function, Identity>)
    return host_reduce_row<Result>(op, 0, n,
                                   InLine<Result, std::remove_const_t<Types>...>{element...});
  else
    return host_reduce_row<Result>(
        op, 0, n, [&](index_t i) { return static_cast<Result>(functor(element[i]...)); });
}

/* Loops Dim to Rank - 1, all of whose extents are positive. */
template <int Dim, class Result, int Rank, class Op, class Function, class... Types, int... Nth>
Result host_reduce_nest(Op &op, Function &functor, LoopLayout<Rank, sizeof...(Types)> const &loops,
                        index_t begin, index_t end, std::integer_sequence<int, Nth...> all,
                        Types *...element) {
  if constexpr (Dim == Rank - 1) {
    index_t const stride[] = {loops.strides[Nth].at[Dim]...};
    if (((stride[Nth] == 1) && ...))
      return host_reduce_elements<Result>(op, functor, end - begin, (element + begin)...);
    return host_reduce_row<Result>(op, begin, end, [&, stride](index_t i) {
      return static_cast<Result>(functor(element[i * stride[Nth]]...));
    });
  } else {
    if (end - begin == 1)
      return host_reduce_nest<Dim + 1, Result>(op, functor, loops, 0, loops.extents.at[Dim + 1],
                                               all,
                                               element + begin * loops.strides[Nth].at[Dim]...);
    index_t half = begin + middle(end - begin, 1);
    Result first = host_reduce_nest<Dim, Result>(op, functor, loops, begin, half, all, element...);
    return static_cast<Result>(
        op(first, host_reduce_nest<Dim, Result>(op, functor, loops, half, end, all, element...)));
  }
}

/* Joins reduce(begin, end) of the chunks of a cut, in their order. */
template <class Result, class Op, class Reduce>
Partial<Result> host_reduce_parts(Cut const &cut, Op &op, Reduce const &reduce) {
  std::vector<Partial<Result>> parts(static_cast<std::size_t>(cut.chunks));
  on_threads(cut.chunks, [&](index_t n) {
    index_t begin = cut.begin(n), end = cut.begin(n + 1);
    if (begin < end) parts[static_cast<std::size_t>(n)] = {reduce(begin, end), true};
  });
  Partial<Result> result;
  for (Partial<Result> const &part : parts) result = combine(op, result, part);
  return result;
}

template <class Result, int Rank, class Op, class Function, class... Types, int... Nth>
Partial<Result> host_reduce_loops(HostPlace place, Op &op, Function &functor,
                                  LoopLayout<Rank, sizeof...(Types)> const &loops,
                                  std::integer_sequence<int, Nth...> all, Types *...element) {
  if (place.threads == 1)
    return {
        host_reduce_nest<0, Result>(op, functor, loops, 0, loops.extents.at[0], all, element...),
        true};
  Cut const cut = cut_for(parts_of(place), loops.extents);
  int const k = cut.dimension;
  return host_reduce_parts<Result>(cut, op, [&](index_t begin, index_t end) {
    LoopLayout<Rank, sizeof...(Types)> part = loops;
    part.extents.at[k] = end - begin;
    Function own = functor;
    Op own_op = op;
    return host_reduce_nest<0, Result>(own_op, own, part, 0, part.extents.at[0], all,
                                       element + begin * loops.strides[Nth].at[k]...);
  });
}

/* Over functor(element of each view). */
template <class Result, class Op, class Function, class Type, int Rank, class... Operands>
Partial<Result> host_reduce(HostPlace place, Op &op, Function &functor,
                            View<Type, Rank> const &view, View<Operands, Rank> const &...others) {
  if (view.size() == 0) return {};
  auto loops = loops_of(view, others...);
  simplify(loops);
  return host_reduce_loops<Result>(place, op, functor, loops,
                                   std::make_integer_sequence<int, 1 + sizeof...(Operands)>(),
                                   view.data, others.data...);
}

/* ---- over indices ---- */

/* Stores the values of functor for a strip of indices and then reduces them: so the compiler
 * vectorises both loops, even if functor itself stores. Index counts the indices of a strip, so a
 * strip is no longer than the largest Index. */
template <class Index> inline constexpr index_t reduce_strip = largest<Index> < 256 ? 64 : 256;

template <class Result, class Index, class Op, class Function, class... Indices>
Result host_reduce_strips(Op &op, Function &functor, index_t begin, index_t end,
                          Indices... before) {
  constexpr index_t strip = reduce_strip<Index>;
  alignas(vector_bytes) alignas(Result) Result value[static_cast<std::size_t>(strip)];
  Result result{};
  for (index_t first = begin; first < end; first += strip) {
    index_t n = end - first < strip ? end - first : strip;
    Index const low = static_cast<Index>(first), count = static_cast<Index>(n);
    for (Index i = 0; i < count; i++)
      value[i] = static_cast<Result>(functor(before..., static_cast<Index>(low + i)));
    Result part = host_reduce_block<Result>(op, n, InLine<Result>{value});
    result = first == begin ? part : static_cast<Result>(op(result, part));
  }
  return result;
}

/* Loops Dim to Rank - 1 with the indices of the outer loops before. Each loop runs at least
 * once. */
template <int Dim, class Result, class Index, int Rank, class Op, class Function, class... Indices>
Result host_reduce_index_nest(Op &op, Function &functor, Extents<Rank> const &begin,
                              Extents<Rank> const &end, Indices... before) {
  if constexpr (Rank == 0) {
    return static_cast<Result>(functor());
  } else if constexpr (Dim == Rank - 1) {
    return host_reduce_strips<Result, Index>(op, functor, begin.at[Dim], end.at[Dim], before...);
  } else {
    Result result{};
    for (index_t i = begin.at[Dim]; i < end.at[Dim]; i++) {
      Result part = host_reduce_index_nest<Dim + 1, Result, Index>(
          op, functor, begin, end, before..., static_cast<Index>(i));
      result = i == begin.at[Dim] ? part : static_cast<Result>(op(result, part));
    }
    return result;
  }
}

/* Over functor(i, j, ...) for begin <= (i, j, ...) < end. */
template <class Index, class Result, int Rank, class Op, class Function>
Partial<Result> host_index_reduce(HostPlace place, Op &op, Function &functor,
                                  Extents<Rank> const &begin, Extents<Rank> const &end) {
  Extents<Rank> extents;
  for (int k = 0; k < Rank; k++) {
    extents.at[k] = end.at[k] - begin.at[k];
    if (extents.at[k] <= 0) return {};
  }
  if constexpr (Rank > 0) {
    if (place.threads != 1) {
      Cut const cut = cut_for(parts_of(place), extents);
      int const k = cut.dimension;
      return host_reduce_parts<Result>(cut, op, [&](index_t first, index_t last) {
        Extents<Rank> low = begin, high = end;
        low.at[k] = begin.at[k] + first;
        high.at[k] = begin.at[k] + last;
        Function own = functor;
        Op own_op = op;
        return host_reduce_index_nest<0, Result, Index>(own_op, own, low, high);
      });
    }
  }
  return {host_reduce_index_nest<0, Result, Index>(op, functor, begin, end), true};
}

/* functor(element of a view, i, j, ...) as a function of indices alone. unit: the stride of the
 * last dimension is 1, as a constant for the compiler. */
template <bool unit, class Type, int Rank, class Function> struct CallWithElement {
  Function functor;
  View<Type, Rank> view;

  template <class... Indices> decltype(auto) operator()(Indices... i) {
    if constexpr (unit)
      return functor(
          view.data[offset(std::make_integer_sequence<int, Rank>(), static_cast<index_t>(i)...)],
          i...);
    else
      return functor(view(i...), i...);
  }

private:
  template <int... Nth, class... Indices>
  index_t offset(std::integer_sequence<int, Nth...>, Indices... i) const noexcept {
    return ((i * (Nth == Rank - 1 ? 1 : view.strides.at[Nth])) + ... + index_t(0));
  }
};

/* Reduces functor(element, i, j, ...), where the element is that of a view in column-major
 * order. */
template <class Index, class Result, class Type, int Rank, class Op, class Function>
Partial<Result> host_sweep_columns(HostPlace place, Op &op, Function &functor,
                                   View<Type, Rank> const &view, Extents<Rank> const &begin,
                                   Extents<Rank> const &end) {
  using Reversed = reversed_indices<Rank, Function, Type>;
  CallWithElement<true, Type, Rank, Reversed> invoke{Reversed{functor}, view.transpose()};
  return host_index_reduce<Index, Result>(place, op, invoke, reversed(begin), reversed(end));
}

/* Reduces the elements in C order. */
template <class Index, class Result, class Type, int Rank, class Op, class Function>
Partial<Result> host_sweep(HostPlace place, Op &op, Function &functor, View<Type, Rank> const &view,
                           Extents<Rank> const &begin, Extents<Rank> const &end) {
  if constexpr (Rank > 0) {
    if (view.strides.at[Rank - 1] == 1) {
      CallWithElement<true, Type, Rank, Function> invoke{functor, view};
      return host_index_reduce<Index, Result>(place, op, invoke, begin, end);
    }
  }
  CallWithElement<false, Type, Rank, Function> invoke{functor, view};
  return host_index_reduce<Index, Result>(place, op, invoke, begin, end);
}

} // namespace umem::detail

#endif
