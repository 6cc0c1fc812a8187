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

/* The extents of a nest of loops and, for each of Count operands, the strides of its dimensions. The
 * last loop is the innermost. */
template <int Rank, int Count> struct LoopLayout {
  static_assert(Rank > 0 && Count > 0);
  Extents<Rank> extents;
  Extents<Rank> strides[static_cast<std::size_t>(Count)];

  /* Elements follow each other in all operands: one loop with stride 1. */
  bool is_contiguous() const noexcept {
    for (int k = 0; k < Rank - 1; k++)
      if (extents.at[k] != 1) return false;
    for (Extents<Rank> const &stride : strides)
      if (stride.at[Rank - 1] != 1) return false;
    return true;
  }
};

template <int Rank, int Count>
void swap_loops(LoopLayout<Rank, Count> &loops, int a, int b) noexcept {
  auto swap = [=](Extents<Rank> &values) {
    index_t value = values.at[a];
    values.at[a] = values.at[b];
    values.at[b] = value;
  };
  swap(loops.extents);
  for (Extents<Rank> &stride : loops.strides) swap(stride);
}

/* Whether loop a, of the first operand, belongs inside of loop b: it has the shorter stride. Loops
 * that run once are outermost. */
template <int Rank, int Count>
bool belongs_inside(LoopLayout<Rank, Count> const &loops, int a, int b) noexcept {
  if (loops.extents.at[a] == 1 || loops.extents.at[b] == 1)
    return loops.extents.at[a] != 1 && loops.extents.at[b] == 1;
  index_t one = loops.strides[0].at[a], other = loops.strides[0].at[b];
  return (one < 0 ? -one : one) < (other < 0 ? -other : other);
}

/* Whether loop `outer` around loop `inner` can become one loop, for all operands. */
template <int Rank, int Count>
bool are_one(LoopLayout<Rank, Count> const &loops, int outer, int inner) noexcept {
  for (Extents<Rank> const &stride : loops.strides)
    if (stride.at[outer] != stride.at[inner] * loops.extents.at[inner]) return false;
  return true;
}

/* Makes fewer and longer loops of the same elements, with the shortest strides innermost. Loops
 * that are no longer needed run once and come first. No extent may be 0. */
template <int Rank, int Count> void simplify(LoopLayout<Rank, Count> &loops) noexcept {
  for (int k = 1; k < Rank; k++)
    for (int j = k; j > 0 && belongs_inside(loops, j - 1, j); j--) swap_loops(loops, j - 1, j);
  int to = Rank - 1; /* the outermost remaining loop; those between k and it run once */
  for (int k = Rank - 2; k >= 0; k--) {
    if (loops.extents.at[k] == 1) continue;
    if (are_one(loops, k, to)) {
      loops.extents.at[to] *= loops.extents.at[k];
      loops.extents.at[k] = 1;
    } else {
      if (to - 1 > k) swap_loops(loops, k, to - 1);
      to--;
    }
  }
  if (loops.extents.at[Rank - 1] == 1) /* its stride is never used */
    for (Extents<Rank> &stride : loops.strides) stride.at[Rank - 1] = 1;
}

/* The numbers of the dimensions in reversed order. */
template <int Rank> Extents<Rank> reversed(Extents<Rank> const &values) noexcept {
  Extents<Rank> result;
  for (int k = 0; k < Rank; k++) result.at[k] = values.at[Rank - 1 - k];
  return result;
}

/* Rank 0 has one element, and one loop. */
template <int Rank> inline constexpr int loop_rank = Rank > 0 ? Rank : 1;

/* The loops over the interiors of views with the same extents. */
template <class Type, int Rank, class... Operands>
LoopLayout<loop_rank<Rank>, 1 + sizeof...(Operands)>
loops_of(View<Type, Rank> const &view, View<Operands, Rank> const &...others) {
  LoopLayout<loop_rank<Rank>, 1 + sizeof...(Operands)> loops;
  if constexpr (Rank == 0) {
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
template <int Rank, class... Others>
void check_extents(char const *function, Extents<Rank> const &extents, Others const &...others) {
  [[maybe_unused]] auto check_one = [&](Extents<Rank> const &other) {
    if (other != extents)
      raise_text(umemValueError, "%s: the extents %s and %s differ", function,
                 in_words(extents).text, in_words(other).text);
  };
  (check_one(others), ...);
}

} // namespace detail
} // namespace umem

#endif
