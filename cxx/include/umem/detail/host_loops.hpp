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
template <class Function, class... Types>
using InRow =
    std::conditional_t<std::is_trivially_copyable_v<Function> && sizeof(Function) <= 128 &&
                           std::is_invocable_v<Function const &, Types &...>,
                       Function const, Function &>;

template <class Function, class... Types>
void host_row(Function &functor, index_t n, Types *...element) {
  InRow<Function, Types...> invoke = functor;
  for (index_t i = 0; i < n; i++) invoke(element[i]...);
}

template <class Function, class... Types, int... Nth>
void host_strided_row(Function &functor, index_t n, index_t const *stride,
                      std::integer_sequence<int, Nth...>, Types *...element) {
  InRow<Function, Types...> invoke = functor;
  index_t const s[] = {stride[Nth]...};
  for (index_t i = 0; i < n; i++) invoke(element[i * s[Nth]]...);
}

/* Rows in which one operand has another stride than 1, as a constant for the compiler which: the loops that a program
 * would write for such a layout. */
template <int Step, class Function, class... Types, int... Nth>
void host_row_but_one(Function &functor, index_t n, index_t stride,
                      std::integer_sequence<int, Nth...>, Types *...element) {
  InRow<Function, Types...> invoke = functor;
  for (index_t i = 0; i < n; i++) invoke(element[Nth == Step ? i * stride : i]...);
}

/* The same where all elements of the row share one of the operand, which is only read. */
template <bool is_shared, class Type> struct RowElement {
  Type *row;
  UMEM_ALWAYS_INLINE Type &operator[](index_t i) const noexcept { return row[i]; }
};
template <class Type> struct RowElement<true, Type const> {
  Type const value; /* nothing else can write to it */
  explicit RowElement(Type const *row) noexcept : value(*row) {}
  UMEM_ALWAYS_INLINE Type const &operator[](index_t) const noexcept { return value; }
};
template <class Function, class... Arrays>
void host_shared_row(Function &functor, index_t n, Arrays const... element) {
  InRow<Function, decltype(element[0])...> invoke = functor;
  for (index_t i = 0; i < n; i++) invoke(element[i]...);
}

/* Rows whose strides are not all 1. Loops for rows with one such operand, if there are few: Step, Step + 1, ...
 * may be it. */
template <int Step, class Function, class... Types, int... Nth>
void host_rows_with_gaps(Function &functor, index_t n, index_t const *stride,
                         std::integer_sequence<int, Nth...> all, Types *...element) {
  constexpr int count = sizeof...(Types);
  if constexpr (Step == count || count == 1 || count > 4) {
    host_strided_row(functor, n, stride, all, element...);
  } else {
    if (!((Nth == Step || stride[Nth] == 1) && ...))
      return host_rows_with_gaps<Step + 1>(functor, n, stride, all, element...);
    using Operand = std::tuple_element_t<static_cast<std::size_t>(Step), std::tuple<Types...>>;
    if constexpr (std::is_const_v<Operand> && std::is_copy_constructible_v<Operand>)
      if (stride[Step] == 0)
        return host_shared_row(functor, n, RowElement<Nth == Step, Types>{element}...);
    host_row_but_one<Step>(functor, n, stride[Step], all, element...);
  }
}

/* Loops Dim to Rank - 1. */
template <int Dim, int Rank, class Function, class... Types, int... Nth>
void host_nest(Function &functor, LoopLayout<Rank, sizeof...(Types)> const &loops,
               std::integer_sequence<int, Nth...> all, Types *...element) {
  if constexpr (Dim < Rank - 1) {
    for (index_t i = 0; i < loops.extents.at[Dim]; i++)
      host_nest<Dim + 1>(functor, loops, all, element + i * loops.strides[Nth].at[Dim]...);
  } else {
    index_t const stride[] = {loops.strides[Nth].at[Dim]...};
    if (((stride[Nth] == 1) && ...))
      host_row(functor, loops.extents.at[Dim], element...);
    else
      host_rows_with_gaps<0>(functor, loops.extents.at[Dim], stride, all, element...);
  }
}

/* Calls functor(element of each operand) for all elements, in any order. Threads get copies of functor. */
template <int Rank, class Function, class... Types, int... Nth>
void host_map(HostPlace place, Function &functor, LoopLayout<Rank, sizeof...(Types)> const &loops,
              std::integer_sequence<int, Nth...> all, Types *...element) {
  if (place.threads == 1) return host_nest<0>(functor, loops, all, element...);
  Cut const cut = cut_for(threads_of(place), loops.extents);
  int const k = cut.dimension;
  on_threads(cut, [&](index_t begin, index_t end) {
    LoopLayout<Rank, sizeof...(Types)> part = loops;
    part.extents.at[k] = end - begin;
    Function own = functor;
    host_nest<0>(own, part, all, element + begin * loops.strides[Nth].at[k]...);
  });
}

/* The same for views with equal extents. */
template <class Function, class Type, int Rank, class... Operands>
UMEM_ALWAYS_INLINE void host_map(HostPlace place, Function &functor, View<Type, Rank> const &view,
                                 View<Operands, Rank> const &...others) {
  if (view.size() == 0) return;
  auto loops = loops_of(view, others...);
  simplify(loops);
  host_map(place, functor, loops, std::make_integer_sequence<int, 1 + sizeof...(Operands)>(),
           view.data, others.data...);
}

/* ---- indices ---- */

/* Loops Dim to Rank - 1 over [begin, end), in C order, with the indices of the outer loops before.
 * All loops become one function, like loops that are written out: a compiler that calls the
 * inner ones reads the functor from memory again for each row. */
template <int Dim, int Rank, class Index, class Function, class... Indices>
UMEM_ALWAYS_INLINE void host_index_nest(Function &functor, Extents<Rank> const &begin,
                                        Extents<Rank> const &end, Indices... before) {
  if constexpr (Dim == Rank) {
    functor(before...);
  } else {
    Index const last = static_cast<Index>(end.at[Dim]);
    for (Index i = static_cast<Index>(begin.at[Dim]); i < last; i++)
      host_index_nest<Dim + 1, Rank, Index>(functor, begin, end, before..., i);
  }
}

/* The elements of several operands at some indices. */
template <int Count, class Type> struct OperandElement { Type *at; };

template <class All, class... Types> struct OperandElements;
template <int... Nth, class... Types>
struct OperandElements<std::integer_sequence<int, Nth...>, Types...>
    : OperandElement<Nth, Types>... {
  /* Those i further in dimension k. unit: there all strides are 1. */
  template <bool unit, int Rank>
  UMEM_ALWAYS_INLINE OperandElements moved(index_t i, int k,
                                           Extents<Rank> const *strides) const noexcept {
    return {{OperandElement<Nth, Types>::at + i * (unit ? 1 : strides[Nth].at[k])}...};
  }
  template <class Function, class... Indices>
  UMEM_ALWAYS_INLINE decltype(auto) invoke(Function &functor, Indices... i) const {
    return functor(*OperandElement<Nth, Types>::at..., i...);
  }
};

/* A nest that calls functor(element of each operand, i, j, ...); row: the elements with the indices
 * before, and 0 from Dim on. */
template <bool unit, int Dim, class Index, class Function, class Elements, int Rank,
          class... Indices>
UMEM_ALWAYS_INLINE void host_element_nest(Function &functor, Elements const row,
                                          Extents<Rank> const *strides, Extents<Rank> const &begin,
                                          Extents<Rank> const &end, Indices... before) {
  if constexpr (Dim == Rank) {
    row.invoke(functor, before...);
  } else {
    Index const last = static_cast<Index>(end.at[Dim]);
    for (Index i = static_cast<Index>(begin.at[Dim]); i < last; i++)
      host_element_nest<unit, Dim + 1, Index>(
          functor,
          row.template moved < unit && Dim == Rank - 1 > (static_cast<index_t>(i), Dim, strides),
          strides, begin, end, before..., i);
  }
}

/* Calls run(begin, end) once for [begin, end), or for one part per thread. */
template <int Rank, class Run>
UMEM_ALWAYS_INLINE void host_share(HostPlace place, Extents<Rank> const &begin,
                                   Extents<Rank> const &end, Run const &run) {
  Extents<Rank> extents;
  for (int k = 0; k < Rank; k++) {
    extents.at[k] = end.at[k] - begin.at[k];
    if (extents.at[k] <= 0) return;
  }
  if constexpr (Rank > 0) {
    if (place.threads != 1) {
      Cut const cut = cut_for(threads_of(place), extents);
      int const k = cut.dimension;
      on_threads(cut, [&](index_t first, index_t last) {
        Extents<Rank> low = begin, high = end;
        low.at[k] = begin.at[k] + first;
        high.at[k] = begin.at[k] + last;
        run(low, high);
      });
      return;
    }
  }
  run(begin, end);
}

/* Calls functor(i, j, ...) for begin <= (i, j, ...) < end, with a copy of functor for each thread: no other
 * code can see the copy, so it may be in registers. */
template <class Index, int Rank, class Function>
UMEM_ALWAYS_INLINE void host_indices(HostPlace place, Function const &functor,
                                     Extents<Rank> const &begin, Extents<Rank> const &end) {
  host_share(
      place, begin,
      end, [&](Extents<Rank> const low, Extents<Rank> const high) __attribute__((always_inline)) {
        Function own = functor;
        host_index_nest<0, Rank, Index>(own, low, high);
      });
}

/* Calls functor(element of each view, i, j, ...) for begin <= (i, j, ...) < end. unit: all strides
 * of the last dimension are 1, as a constant for the compiler. */
template <bool unit, class Index, int Rank, class Function, class... Types>
UMEM_ALWAYS_INLINE void host_indexed_rows(HostPlace place, Function const &functor,
                                          Extents<Rank> const &begin, Extents<Rank> const &end,
                                          View<Types, Rank> const &...views) {
  using Elements = OperandElements<std::make_integer_sequence<int, sizeof...(Types)>, Types...>;
  host_share(
      place, begin,
      end, [&](Extents<Rank> const low, Extents<Rank> const high) __attribute__((always_inline)) {
        Function own = functor;
        Extents<Rank> const strides[] = {views.strides...};
        host_element_nest<unit, 0, Index>(own, Elements{{views.data}...}, strides, low, high);
      });
}

/* functor(element of each operand, i, j, ...) for loops over transposed views: it gets the indices
 * in reversed order. */
template <class Function, class All, class... Types> struct ReversedIndices;
template <class Function, int... Dims, class... Types>
struct ReversedIndices<Function, std::integer_sequence<int, Dims...>, Types...> {
  Function functor;

  template <class... Indices>
  UMEM_ALWAYS_INLINE decltype(auto) operator()(Types &...elements, Indices... i) {
    std::common_type_t<Indices...> const at[] = {i...};
    return functor(elements..., at[sizeof...(Dims) - 1 - Dims]...);
  }
};
template <int Rank, class Function, class... Types>
using reversed_indices = ReversedIndices<Function, std::make_integer_sequence<int, Rank>, Types...>;

template <class Index, int Rank, class Function, class... Types>
UMEM_ALWAYS_INLINE void host_indexed(HostPlace place, Function const &functor,
                                     Extents<Rank> const &begin, Extents<Rank> const &end,
                                     View<Types, Rank> const &...views) {
  if constexpr (Rank > 0) {
    if (((views.strides.at[Rank - 1] == 1) && ...))
      return host_indexed_rows<true, Index>(place, functor, begin, end, views...);
  }
  if constexpr (Rank > 1) {
    if (((views.strides.at[0] == 1) && ...)) /* column-major */
      return host_indexed_rows<true, Index>(place,
                                            reversed_indices<Rank, Function, Types...>{functor},
                                            reversed(begin), reversed(end), views.transpose()...);
  }
  host_indexed_rows<false, Index>(place, functor, begin, end, views...);
}

} // namespace detail
} // namespace umem

#endif
