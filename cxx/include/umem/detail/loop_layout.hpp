/* umem/detail/loop_layout.hpp - chooses the order of loops over the elements of several views,
 * for functions that may be called in any order. Host only. */
#ifndef UMEM_DETAIL_LOOP_LAYOUT_HPP
#define UMEM_DETAIL_LOOP_LAYOUT_HPP

#include <umem/extents.hpp>
#include <umem/view.hpp>

#include <cstddef>
#include <string>

namespace umem {
namespace detail {

/* The extents of a nest of loops and, for each of M operands, the strides of its dimensions. The
 * last loop is the innermost. */
template <int N, int M> struct LoopLayout {
  static_assert(N > 0 && M > 0);
  Extents<N> extents;
  Extents<N> strides[static_cast<std::size_t>(M)];

  /* Elements follow each other in all operands: one loop with stride 1. */
  bool is_contiguous() const noexcept {
    for (int k = 0; k < N - 1; k++)
      if (extents.at[k] != 1) return false;
    for (Extents<N> const &stride : strides)
      if (stride.at[N - 1] != 1) return false;
    return true;
  }
};

template <int N, int M> void swap_loops(LoopLayout<N, M> &loops, int a, int b) noexcept {
  auto swap = [=](Extents<N> &values) {
    index_t value = values.at[a];
    values.at[a] = values.at[b];
    values.at[b] = value;
  };
  swap(loops.extents);
  for (Extents<N> &stride : loops.strides) swap(stride);
}

/* Whether loop a, of the first operand, belongs inside of loop b: it has the shorter stride. Loops
 * that run once are outermost. */
template <int N, int M> bool belongs_inside(LoopLayout<N, M> const &loops, int a, int b) noexcept {
  if (loops.extents.at[a] == 1 || loops.extents.at[b] == 1)
    return loops.extents.at[a] != 1 && loops.extents.at[b] == 1;
  index_t one = loops.strides[0].at[a], other = loops.strides[0].at[b];
  return (one < 0 ? -one : one) < (other < 0 ? -other : other);
}

/* Whether loop `outer` around loop `inner` can become one loop, for all operands. */
template <int N, int M> bool are_one(LoopLayout<N, M> const &loops, int outer, int inner) noexcept {
  for (Extents<N> const &stride : loops.strides)
    if (stride.at[outer] != stride.at[inner] * loops.extents.at[inner]) return false;
  return true;
}

/* Makes fewer and longer loops of the same elements, with the shortest strides innermost. Loops
 * that are no longer needed run once and come first. No extent may be 0. */
template <int N, int M> void simplify(LoopLayout<N, M> &loops) noexcept {
  for (int k = 1; k < N; k++)
    for (int j = k; j > 0 && belongs_inside(loops, j - 1, j); j--) swap_loops(loops, j - 1, j);
  int to = N - 1; /* the outermost remaining loop; those between k and it run once */
  for (int k = N - 2; k >= 0; k--) {
    if (loops.extents.at[k] == 1) continue;
    if (are_one(loops, k, to)) {
      loops.extents.at[to] *= loops.extents.at[k];
      loops.extents.at[k] = 1;
    } else {
      if (to - 1 > k) swap_loops(loops, k, to - 1);
      to--;
    }
  }
  if (loops.extents.at[N - 1] == 1) /* its stride is never used */
    for (Extents<N> &stride : loops.strides) stride.at[N - 1] = 1;
}

/* The numbers of the dimensions in reversed order. */
template <int N> Extents<N> reversed(Extents<N> const &values) noexcept {
  Extents<N> result;
  for (int k = 0; k < N; k++) result.at[k] = values.at[N - 1 - k];
  return result;
}

/* Rank 0 has one element, and one loop. */
template <int N> inline constexpr int loop_rank = N > 0 ? N : 1;

/* The loops over the interiors of views with the same extents. */
template <class T, int N, class... A>
LoopLayout<loop_rank<N>, 1 + sizeof...(A)> loops_of(View<T, N> const &view,
                                                    View<A, N> const &...others) {
  LoopLayout<loop_rank<N>, 1 + sizeof...(A)> loops;
  if constexpr (N == 0) {
    loops.extents = {1};
    for (auto &stride : loops.strides) stride = {1};
  } else {
    loops.extents = view.extents;
    int m = 0;
    loops.strides[m++] = view.strides;
    ((loops.strides[m++] = others.strides), ...);
  }
  return loops;
}

/* Throws umem::value_error if extents differ. */
template <int N, class... E>
void check_extents(char const *function, Extents<N> const &extents, E const &...others) {
  [[maybe_unused]] auto check = [&](Extents<N> const &other) {
    if (other != extents)
      raise_text(umemValueError, "%s: the extents %s and %s differ", function,
                 in_words(extents).text, in_words(other).text);
  };
  (check(others), ...);
}

} // namespace detail
} // namespace umem

#endif
