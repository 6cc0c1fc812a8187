/* umem/detail/monoids.hpp - what the reductions of reductions.hpp join, on host and device: values
 * with their positions, two extremes at once, sums of squares, products. Every operation is
 * associative and commutative. */
#ifndef UMEM_DETAIL_MONOIDS_HPP
#define UMEM_DETAIL_MONOIDS_HPP

#include <umem/detail/functors.hpp>
#include <umem/detail/host_reduce.hpp>

#include <cmath>

namespace umem::detail {

/* ---- values with their positions ---- */

/* A value and its number; becomes the number where a loop stores it. */
template <class Type> struct Located {
  Type value;
  index_t number;

  template <class OtherType, class = std::enable_if_t<std::is_arithmetic_v<OtherType>>>
  UMEM_FUNCTION explicit constexpr operator OtherType() const {
    return static_cast<OtherType>(number);
  }
};

/* The smaller, or larger, value; a NaN before all others; of equal ones, that with the lower
 * number. */
template <bool largest_value> struct FirstExtreme {
  template <class Type>
  UMEM_FUNCTION constexpr Located<Type> operator()(Located<Type> const &a,
                                                   Located<Type> const &b) const {
    bool const a_nan = !(a.value == a.value), b_nan = !(b.value == b.value);
    bool const better = largest_value ? b.value > a.value : b.value < a.value;
    bool const same = a.value == b.value || (a_nan && b_nan);
    return (b_nan && !a_nan) || (better && !a_nan) || (same && b.number < a.number) ? b : a;
  }
};

/* No element comes after it. */
template <class Type> Located<Type> last_extreme(bool largest_value) {
  return {limit_of<Type>(!largest_value), largest<index_t>};
}

/* The element with its number in C order, from its indices: for loops over indices. */
template <class Type, int Rank> struct LocatedElement {
  View<Type, Rank> view;
  Extents<Rank> numbers; /* c_strides of the extents */

  template <class... Indices>
  UMEM_FUNCTION Located<std::remove_const_t<Type>> operator()(Indices... i) const {
    return {view.data[offset_of(view.strides, i...)], offset_of(numbers, i...)};
  }
};

/* The element with its position: for reductions along a dimension, which give functor the position
 * after the elements where functor has the member takes_position. */
struct LocatedAlong {
  static constexpr bool takes_position = true;
  template <class Type>
  UMEM_FUNCTION Located<Type> operator()(Type const &value, index_t position) const {
    return {value, position};
  }
};

template <class Function, class = void> inline constexpr bool takes_position = false;
template <class Function>
inline constexpr bool takes_position<Function, std::void_t<decltype(Function::takes_position)>> =
    true;

/* ---- both extremes ---- */

struct JoinMinMax {
  template <class Type>
  UMEM_FUNCTION constexpr MinMax<Type> operator()(MinMax<Type> const &a,
                                                  MinMax<Type> const &b) const {
    return {minimum()(a.min, b.min), maximum()(a.max, b.max)};
  }
};
struct BothOf {
  template <class Type> UMEM_FUNCTION constexpr MinMax<Type> operator()(Type const &value) const {
    return {value, value};
  }
};

/* ---- conditions ---- */

/* Whether an element is not zero: NaN is not. */
struct IsTrue {
  template <class Type> UMEM_FUNCTION constexpr bool operator()(Type const &value) const {
    if constexpr (std::is_same_v<Type, bool>)
      return value;
    else
      return !(value == Type());
  }
};

/* Function may also return a number, as functions of C do. */
template <class Result, class Function> struct CountOf {
  Function functor;
  template <class Type> UMEM_FUNCTION Result operator()(Type const &value) {
    return functor(value) ? Result(1) : Result(0);
  }
};
template <class Function> struct Negated {
  Function functor;
  template <class Type> UMEM_FUNCTION bool operator()(Type const &value) {
    return functor(value) ? false : true;
  }
};

template <class Result, class Function> struct CalledBy<CountOf<Result, Function>> {
  using type = Function;
};
template <class Function> struct CalledBy<Negated<Function>> { using type = Function; };

template <class Result, class Function>
inline constexpr bool is_for_device<CountOf<Result, Function>> = is_for_device<Function>;
template <class Function>
inline constexpr bool is_for_device<Negated<Function>> = is_for_device<Function>;

/* ---- products ---- */

/* The sum of products of Operand and Other. */
template <class Operand, class Other>
using product_sum = accumulator<std::common_type_t<Operand, Other>>;

/* a * b in Result; conjugates: that of the complex conjugate of a. The product of complex numbers
 * is the plain formula: the operator of std::complex also treats infinite numbers as the C standard
 * wants, which takes ten times as long. */
template <class Result, bool conjugates> struct ProductOf {
  template <class Operand, class Other>
  UMEM_FUNCTION constexpr Result operator()(Operand const &a, Other const &b) const {
    Result const x = static_cast<Result>(a), y = static_cast<Result>(b);
    if constexpr (is_complex<Result>) {
      auto const sign = static_cast<complex_part_t<Result>>(conjugates ? -1 : 1);
      auto const re = x.real(), im = sign * x.imag();
      return Result(re * y.real() - im * y.imag(), re * y.imag() + im * y.real());
    } else {
      return static_cast<Result>(x * y);
    }
  }
};

/* ---- norms ---- */

/* The type of norms of Type: that of its sums, but double for integers, and a real number for
 * complex ones. */
template <class Type>
using norm_of = std::conditional_t<
    std::is_integral_v<Type>, double,
    std::conditional_t<is_complex<Type>, complex_part_t<accumulator<Type>>, accumulator<Type>>>;

/* functor of the square, or of the squares of both parts of a complex number, added. */
template <class Result, class Square> struct SquareOf {
  template <class Type> UMEM_FUNCTION constexpr Square operator()(Type const &x) const {
    if constexpr (is_complex<Type>)
      return Square::of(static_cast<Result>(x.real())) + Square::of(static_cast<Result>(x.imag()));
    else
      return Square::of(static_cast<Result>(x));
  }
};

/* A sum of squares; becomes its root where a loop stores it. */
template <class Result> struct Squares {
  Result sum;

  UMEM_FUNCTION static constexpr Squares of(Result x) { return {x * x}; }
  UMEM_FUNCTION friend constexpr Squares operator+(Squares const &a, Squares const &b) {
    return {a.sum + b.sum};
  }
  template <class OtherType> UMEM_FUNCTION explicit operator OtherType() const {
    return static_cast<OtherType>(std::sqrt(sum));
  }
};

/* A sum of squares without overflow and underflow: three sums, of the squares of large numbers,
 * scaled down, of small ones, scaled up, and of all others. J. L. Blue, A portable Fortran program
 * to find the Euclidean norm of a vector, ACM TOMS 4 (1978); with the constants for double. */
struct ScaledSquares {
  double large, middle, small;

  static constexpr double from_large = 0x1p486, scale_large = 0x1p-538;
  static constexpr double to_small = 0x1p-511, scale_small = 0x1p537;

  UMEM_FUNCTION static constexpr ScaledSquares of(double x) {
    double const size = x < 0 ? -x : x, down = size * scale_large, up = size * scale_small;
    if (size > from_large) return {down * down, 0, 0};
    if (size < to_small) return {0, 0, up * up};
    return {0, size * size, 0};
  }
  UMEM_FUNCTION friend constexpr ScaledSquares operator+(ScaledSquares const &a,
                                                         ScaledSquares const &b) {
    return {a.large + b.large, a.middle + b.middle, a.small + b.small};
  }
  template <class OtherType> UMEM_FUNCTION explicit operator OtherType() const {
    return static_cast<OtherType>(root());
  }

private:
  UMEM_FUNCTION double root() const {
    double const root_middle = std::sqrt(middle); /* a NaN is among these */
    if (large > 0) return std::sqrt(large + (middle * scale_large) * scale_large) / scale_large;
    if (!(small > 0)) return root_middle;
    double const root_small = std::sqrt(small) / scale_small;
    double const low = root_middle < root_small ? root_middle : root_small;
    double const high = root_middle < root_small ? root_small : root_middle;
    return high * std::sqrt(1 + (low / high) * (low / high));
  }
};

/* What norms of Type add: doubles can be too large for their squares, floats in a double cannot. */
template <class Type>
using squares_of =
    std::conditional_t<std::is_same_v<norm_of<Type>, double> && !std::is_integral_v<Type> &&
                           !std::is_same_v<Type, float> &&
                           !std::is_same_v<complex_part_t<Type>, float>,
                       ScaledSquares, Squares<norm_of<Type>>>;

/* Reductions on the host that know the numbers of the elements: by pieces of rows, which
 * are short enough to be read twice from a cache. The loops run in the order of memory. */

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

/* op over leaf(n, get, number, step, so_far) of all pieces: element get(i), for i < n, has the
 * number number + i * step in C order, and so_far is the result over earlier pieces. Threads have
 * copies of leaf. */
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

/* Both extremes: two loops over a piece in a cache, which compilers vectorise, are faster than one
 * for both. */
struct FindMinMax {
  template <class Get, class Type>
  MinMax<Type> operator()(index_t n, Get const &get, index_t, index_t,
                          Partial<MinMax<Type>> const &) const {
    minimum low;
    maximum high;
    return {host_reduce_block<Type>(low, n, get), host_reduce_block<Type>(high, n, get)};
  }
};

/* Whether functor holds for any element. Stops when another piece, also of another thread, has
 * one. */
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

} // namespace umem::detail

#endif
