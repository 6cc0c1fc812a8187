/* umem/detail/host_pieces.hpp - reductions on the host that know the numbers of the elements: by pieces of rows, which
 * are short enough to be read twice from a cache. The loops run in the order of memory. */
#ifndef UMEM_DETAIL_HOST_PIECES_HPP
#define UMEM_DETAIL_HOST_PIECES_HPP

#include <umem/detail/host_reduce.hpp>
#include <umem/detail/monoids.hpp>

#include <atomic>
#include <type_traits>

namespace umem {
namespace detail {

/* Loops K to N - 1. The strides of the second operand are those of the numbers. */
template <int K, class R, int N, class Op, class Leaf, class T>
void host_pieces(Op &op, Leaf &leaf, LoopLayout<N, 2> const &loops, T const *first, index_t number,
                 Partial<R> &result) {
  index_t const extent = loops.extents.at[K];
  index_t const stride = loops.strides[0].at[K], step = loops.strides[1].at[K];
  if constexpr (K < N - 1) {
    for (index_t i = 0; i < extent; i++)
      host_pieces<K + 1>(op, leaf, loops, first + i * stride, number + i * step, result);
  } else {
    for (index_t begin = 0; begin < extent; begin += reduce_block) {
      index_t const n = extent - begin < reduce_block ? extent - begin : reduce_block;
      T const *const piece = first + begin * stride;
      index_t const low = number + begin * step;
      InLine<T> const in_line{piece};
      auto strided = [piece, stride](index_t i) -> T const & { return piece[i * stride]; };
      R part =
          stride == 1 ? leaf(n, in_line, low, step, result) : leaf(n, strided, low, step, result);
      result = combine(op, result, Partial<R>{part, true});
    }
  }
}

/* op over leaf(n, get, number, step, so_far) of all pieces: element get(i), for i < n, has the number number + i * step
 * in C order, and so_far is the result over earlier pieces. Threads have copies of leaf. */
template <class R, class Op, class Leaf, class T, int N>
Partial<R> host_reduce_pieces(HostPlace place, Op op, Leaf const &leaf, View<T, N> const &view) {
  if (view.size() == 0) return {};
  auto loops = loops_of(view, View<T, N>(nullptr, view.extents));
  simplify(loops);
  if (place.threads == 1) {
    Partial<R> result;
    Leaf own = leaf;
    host_pieces<0>(op, own, loops, view.data, 0, result);
    return result;
  }
  Cut const cut = cut_for(parts_of(place), loops.extents);
  int const k = cut.dimension;
  return host_reduce_parts<R>(cut, op, [&](index_t begin, index_t end) {
    auto part = loops;
    part.extents.at[k] = end - begin;
    Partial<R> result;
    Op own_op = op;
    Leaf own = leaf;
    host_pieces<0>(own_op, own, part, view.data + begin * loops.strides[0].at[k],
                   begin * loops.strides[1].at[k], result);
    return result.value;
  });
}

/* ---- leaves ---- */

/* The first of the smallest or largest elements. */
template <bool largest_value> struct FindExtreme {
  template <class Get, class T>
  Located<T> operator()(index_t n, Get const &get, index_t number, index_t step,
                        Partial<Located<T>> const &so_far) const {
    std::conditional_t<largest_value, maximum, minimum> op;
    T const value = host_reduce_block<T>(op, n, get);
    if (so_far.any) { /* most pieces end here: their best element is no candidate */
      FirstExtreme<largest_value> better;
      Located<T> const lowest{value, number};
      if (better(so_far.value, lowest).number == so_far.value.number) return so_far.value;
    }
    index_t i = 0;
    if (value == value)
      while (!(get(i) == value)) i++;
    else
      while (get(i) == get(i)) i++;
    return {value, number + i * step};
  }
};

/* Both extremes: two loops over a piece in a cache, which compilers vectorise, are faster than one for both. */
struct FindMinMax {
  template <class Get, class T>
  MinMax<T> operator()(index_t n, Get const &get, index_t, index_t,
                       Partial<MinMax<T>> const &) const {
    minimum low;
    maximum high;
    return {host_reduce_block<T>(low, n, get), host_reduce_block<T>(high, n, get)};
  }
};

/* Whether f holds for any element. Stops when another piece, also of another thread, has one. */
template <class F> struct FindAny {
  F f;
  std::atomic<bool> *found;

  template <class Get>
  bool operator()(index_t n, Get const &get, index_t, index_t, Partial<bool> const &) {
    if (found->load(std::memory_order_relaxed)) return true;
    bool any = false;
    for (index_t i = 0; i < n; i++) any |= f(get(i)) ? true : false;
    if (any) found->store(true, std::memory_order_relaxed);
    return any;
  }
};

} // namespace detail
} // namespace umem

#endif
