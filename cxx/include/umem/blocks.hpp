/* umem/blocks.hpp - loops, reductions and stencils over the blocks of arrays that are larger than
 * memory.
 *
 *     double total = umem::sum(umem::blocks(x, place, options));
 *     double dot = umem::transform_reduce(umem::blocks(x, place, options),
 *                                         umem::blocks(y, place, options), 0.0, umem::plus(),
 *                                         umem::multiplies());
 *     umem::for_each(umem::blocks(x, umem::write, place, options), Scale{2});
 *     umem::transform(umem::blocks(x, y, place, options), Square());
 *     double change = umem::sweep(umem::blocks(u, next, place, options), 1, 0.0, umem::maximum(),
 *                                 Jacobi());
 *
 * Each is a loop over block.hpp's blocks, whose elements it hands to the function of the same name
 * in for_each.hpp, transform.hpp, reduce.hpp or sweep.hpp; see these for functors, places and
 * failures. Calls return when all is in the destination.
 *
 * Reductions join the results of blocks in the order of the blocks. So the last digits of a sum of
 * floating-point numbers also depend on the number of rows of a block. Results of loops and
 * stencils do not: they are, bit for bit, those of the array in one piece. */
#ifndef UMEM_BLOCKS_HPP
#define UMEM_BLOCKS_HPP

#include <umem/block.hpp>
#include <umem/reduce.hpp>
#include <umem/sweep.hpp>
#include <umem/transform.hpp>

namespace umem {

namespace detail {

/* Calls functor with the indices in the array of an element of a block. */
template <class Function> struct FromRow {
  Function functor;
  index_t first;
  template <class Type, class... Indices>
  UMEM_FUNCTION constexpr void operator()(Type &value, index_t i, Indices... others) const {
    functor(value, first + i, others...);
  }
};

template <class Index, class Function, int Rank, class Type> constexpr bool takes_element_at() {
  using Call = indexed_call<Index, Function, Rank, Type>;
  static_assert(Call::fits || Call::hides,
                "for_each_indexed of blocks: f takes an element and one index per dimension");
  static_assert(!Call::fits || Call::with_indices, UMEM_INTEGER_INDEX);
  return Call::with_indices || Call::hides;
}

/* Two passages that keep step. */
template <class One, class Other> void check_step(One const &one, Other const &other) {
  if (one.size() != other.size() || one.rows() != other.rows())
    throw value_error("two arrays whose blocks have " + std::to_string(one.rows()) + " and " +
                      std::to_string(other.rows()) + " rows: give both the same rows");
}

} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* f(element) for every element. */
template <class In, class Out, int Rank, int OutRank, class Function>
void for_each(Blocks<In, Out, Rank, OutRank> &&blocks, Function f) {
  static_assert(std::is_void_v<Out>,
                "for_each of blocks for another array: transform gives them values");
  constexpr bool fits =
      std::is_invocable_v<Function &, In &> || detail::hides_parameters<Function>();
  static_assert(fits,
                "for_each of blocks: f takes an element; for_each_indexed gives it the indices");
  if constexpr (fits)
    for (auto const &block : blocks) for_each(block.place(), block.in().interior(), f);
}

/* f(element, i, j, ...) for every element with its indices in the array. */
template <class In, class Out, int Rank, int OutRank, class Function>
void for_each_indexed(Blocks<In, Out, Rank, OutRank> &&blocks, Function f) {
  static_assert(std::is_void_v<Out>, "for_each_indexed of blocks for another array");
  if constexpr (detail::takes_element_at<index_t, Function, Rank, In>())
    for (auto const &block : blocks)
      for_each_indexed(block.place(), block.in().interior(),
                       detail::FromRow<Function>{f, block.first()});
}

/* out = f(in) for every element, where both arrays have the same extents. */
template <class In, class Out, int Rank, class Function>
void transform(Blocks<In, Out, Rank, Rank> &&blocks, Function f) {
  for (auto const &block : blocks) transform(block.place(), block.in().interior(), block.out(), f);
}

/* ---- one value ---- */

/* op over init and f(element) of every element. */
template <class In, int Rank, class Result, class Op, class Function>
Result transform_reduce(Blocks<In, void, Rank, Rank> &&blocks, Result init, Op op, Function f) {
  for (auto const &block : blocks)
    init = transform_reduce(block.place(), block.in().interior(), init, op, f);
  return init;
}

/* op over init and f(element of one, element of two), where both have the same extents, and blocks
 * of the same number of rows: set options.rows, or for arrays of one element type, the same budget.
 * Both places are the same. */
template <class Operand, class Second, int Rank, class Result, class Op, class Function>
Result transform_reduce(Blocks<Operand, void, Rank, Rank> &&one,
                        Blocks<Second, void, Rank, Rank> &&two, Result init, Op op, Function f) {
  detail::check_extents("transform_reduce", one.extents(), two.extents());
  detail::check_step(one, two);
  auto other = two.begin();
  for (auto const &block : one) {
    init =
        transform_reduce(block.place(), block.in().interior(), other->in().interior(), init, op, f);
    ++other;
  }
  return init;
}

/* op over init and every element. */
template <class In, int Rank, class Result, class Op>
Result reduce(Blocks<In, void, Rank, Rank> &&blocks, Result init, Op op) {
  return transform_reduce(std::move(blocks), init, op, detail::Identity());
}

/* The sum of all elements, of type accumulator<T>. */
template <class In, int Rank> auto sum(Blocks<In, void, Rank, Rank> &&blocks) {
  return reduce(std::move(blocks), accumulator<std::remove_const_t<In>>(), plus());
}

/* The smallest and the largest element; umem::value_error where there are none. */
template <class In, int Rank> auto min(Blocks<In, void, Rank, Rank> &&blocks) {
  using Type = std::remove_const_t<In>;
  if (blocks.size() == 0) throw value_error("min of no elements");
  return reduce(std::move(blocks), detail::limit_of<Type>(true), minimum());
}
template <class In, int Rank> auto max(Blocks<In, void, Rank, Rank> &&blocks) {
  using Type = std::remove_const_t<In>;
  if (blocks.size() == 0) throw value_error("max of no elements");
  return reduce(std::move(blocks), detail::limit_of<Type>(false), maximum());
}

/* ---- stencils ---- */

/* Gives new values to the elements that are at least margin away from the ends of the array, and
 * returns op over init and the results. stencil(in) makes the functor of sweep.hpp from a view of
 * the old elements: f(value, i, j, ...) writes the new value of element (i, j, ...) of that view;
 * it may read up to options.ghosts rows before and after. All other elements keep their values.
 * Both arrays have the same extents and element type; they may be the same array.
 *
 *     struct Jacobi {
 *       umem::View<double const, 2> u;
 *       UMEM_FUNCTION double operator()(double &value, umem::index_t i, umem::index_t j) const;
 *     };
 *     umem::sweep(umem::blocks(u, next, place, options), 1, 0.0, umem::maximum(),
 *                 [](umem::View<double const, 2> const &in) { return Jacobi{in}; });
 *
 * The indices that f gets are those within the block: block.first() less than in the array, in the
 * first dimension. */
template <class In, class Out, int Rank, class Result, class Op, class Stencil>
Result sweep(Blocks<In, Out, Rank, Rank> &&blocks, index_t margin, Result init, Op op,
             Stencil stencil) {
  static_assert(std::is_same_v<std::remove_const_t<In>, Out>,
                "sweep: both arrays have one type of elements");
  for (auto const &block : blocks) {
    auto const old = block.in().interior();
    detail::transform_uses("sweep", block.place(), detail::Identity(),
                           detail::use(block.out(), discard), detail::use(old, read));
    init = sweep(block.place(), block.out(), block.interior(margin), init, op, stencil(block.in()));
  }
  return init;
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
