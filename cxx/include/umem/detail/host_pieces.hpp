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

/* Loops Dim to Rank - 1. The strides of the second operand are those of the numbers. */
template <int Dim, class Result, int Rank, class Op, class Leaf, class Type>
void host_pieces(Op &op, Leaf &leaf, LoopLayout<Rank, 2> const &loops, Type const *first,
                 index_t number, Partial<Result> &result) {
  index_t const extent = loops.extents.at[Dim];
  index_t const stride = loops.strides[0].at[Dim], step = loops.strides[1].at[Dim];
  if constexpr (Dim < Rank - 1) {
    for (index_t i = 0; i < extent; i++)
      host_pieces<Dim + 1>(op, leaf, loops, first + i * stride, number + i * step, result);
  } else {
    for (index_t begin = 0; begin < extent; begin += reduce_block) {
      index_t const n = extent - begin < reduce_block ? extent - begin : reduce_block;
      Type const *const piece = first + begin * stride;
      index_t const low = number + begin * step;
      InLine<Type> const in_line{piece};
      auto strided = [piece, stride](index_t i) -> Type const & { return piece[i * stride]; };
      Result part =
          stride == 1 ? leaf(n, in_line, low, step, result) : leaf(n, strided, low, step, result);
      result = combine(op, result, Partial<Result>{part, true});
    }
  }
}

/* op over leaf(n, get, number, step, so_far) of all pieces: element get(i), for i < n, has the number number + i * step
 * in C order, and so_far is the result over earlier pieces. Threads have copies of leaf. */
template <class Result, class Op, class Leaf, class Type, int Rank>
Partial<Result> host_reduce_pieces(HostPlace place, Op op, Leaf const &leaf,
                                   View<Type, Rank> const &view) {
  if (view.size() == 0) return {};
  auto loops = loops_of(view, View<Type, Rank>(nullptr, view.extents));
  simplify(loops);
  if (place.threads == 1) {
    Partial<Result> result;
    Leaf own = leaf;
    host_pieces<0>(op, own, loops, view.data, 0, result);
    return result;
  }
  Cut const cut = cut_for(parts_of(place), loops.extents);
  int const k = cut.dimension;
  return host_reduce_parts<Result>(cut, op, [&](index_t begin, index_t end) {
    auto part = loops;
    part.extents.at[k] = end - begin;
    Partial<Result> result;
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
  template <class Get, class Type>
  Located<Type> operator()(index_t n, Get const &get, index_t number, index_t step,
                           Partial<Located<Type>> const &so_far) const {
    std::conditional_t<largest_value, maximum, minimum> op;
    Type const value = host_reduce_block<Type>(op, n, get);
    if (so_far.any) { /* most pieces end here: their best element is no candidate */
      FirstExtreme<largest_value> better;
      Located<Type> const lowest{value, number};
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
  template <class Get, class Type>
  MinMax<Type> operator()(index_t n, Get const &get, index_t, index_t,
                          Partial<MinMax<Type>> const &) const {
    minimum low;
    maximum high;
    return {host_reduce_block<Type>(low, n, get), host_reduce_block<Type>(high, n, get)};
  }
};

/* Whether functor holds for any element. Stops when another piece, also of another thread, has one. */
template <class Function> struct FindAny {
  Function functor;
  std::atomic<bool> *found;

  template <class Get>
  bool operator()(index_t n, Get const &get, index_t, index_t, Partial<bool> const &) {
    if (found->load(std::memory_order_relaxed)) return true;
    bool any = false;
    for (index_t i = 0; i < n; i++) any |= functor(get(i)) ? true : false;
    if (any) found->store(true, std::memory_order_relaxed);
    return any;
  }
};

} // namespace detail
} // namespace umem

#endif
