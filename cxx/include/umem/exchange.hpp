/* umem/exchange.hpp - fills the ghost cells of the blocks of a decomposition with elements of their
 * neighbours, in one process.
 *
 *     auto halves = umem::Decomposition<2>::at({{0, 40, 64}, {0, 96}});
 *     std::vector<umem::Array<double, 2>> u = ...; // one for each block, in RAM, on GPUs, in files
 *     umem::exchange_ghosts(halves, u);
 *
 * Each array has the extents of its block, and ghost cells of its own. The copies are those of
 * umem::copy: they work on the side of each array that is current, and ordered contexts queue
 * them. */
#ifndef UMEM_EXCHANGE_HPP
#define UMEM_EXCHANGE_HPP

#include <umem/decomposition.hpp>
#include <umem/fill_ghosts.hpp>

namespace umem {

namespace detail {

/* The cells of a part in a range. */
template <class Type, int Rank>
Part<Type, Rank> cells_of(Part<Type, Rank> part, Range<Rank> const &range) {
  for (int k = 0; k < Rank; k++) part = part.slice(k, range.begin.at[k], range.end.at[k]);
  return part;
}

/* Throws what forbids the copies, before the first of them. */
template <class Type, int Rank>
void check_blocks(Decomposition<Rank> const &decomposition,
                  std::vector<Part<Type, Rank>> const &blocks) {
  auto const count = static_cast<index_t>(blocks.size());
  if (count != decomposition.size())
    raise_text(umemValueError, "exchange_ghosts: %td arrays for %td blocks", count,
               decomposition.size());
  for (index_t n = 0; n < count; n++) {
    Part<Type, Rank> const &block = blocks[static_cast<std::size_t>(n)];
    Extents<Rank> const wanted = decomposition.extents(n);
    if (block.extents() != wanted)
      raise_text(umemValueError,
                 "exchange_ghosts: the array of block %td has extents %s, the block %s", n,
                 in_words(block.extents()).text, in_words(wanted).text);
    PartMemory const &memory = PartMembers::memory(block);
    if (memory.mirror && !block.ghosts().is_empty()) memory.mirror->check_destination(memory.key);
  }
}

template <class Type, int Rank>
void exchange_parts(Decomposition<Rank> const &decomposition,
                    std::vector<Part<Type, Rank>> const &blocks) {
  check_blocks(decomposition, blocks);
  for (index_t n = 0; n < decomposition.size(); n++) {
    Part<Type, Rank> const &block = blocks[static_cast<std::size_t>(n)];
    for (GhostCopy<Rank> const &one : decomposition.ghost_copies(n, block.ghosts()))
      copy(Part<Type const, Rank>(cells_of(blocks[static_cast<std::size_t>(one.from)], one.source)),
           cells_of(block, one.target));
  }
}

template <class Blocks> auto parts_of_blocks(Blocks &blocks) {
  using PartType = decltype(as_part(*std::begin(blocks)));
  std::vector<PartType> parts;
  parts.reserve(static_cast<std::size_t>(std::distance(std::begin(blocks), std::end(blocks))));
  for (auto &block : blocks) parts.push_back(as_part(block));
  return parts;
}

} // namespace detail

/* Copies to the ghost cells of each block the elements of its neighbours, at edges and corners too,
 * and around the box where it is periodic. Ghost cells outside of the box keep their values.
 * blocks: one array or part for each block, in the order of their numbers, such as a
 * std::vector<Array<T, Rank>>, or a list of parts in braces. Throws umem::value_error if there are
 * not as many arrays as blocks, or if one has other extents than its block, and umem::locked_error
 * if a lock or guard of one lives; nothing is copied then. */
template <int Rank, class Blocks>
void exchange_ghosts(Decomposition<Rank> const &decomposition, Blocks &&blocks) {
  detail::exchange_parts(decomposition, detail::parts_of_blocks(blocks));
}
template <class Type, int Rank>
void exchange_ghosts(Decomposition<Rank> const &decomposition,
                     std::initializer_list<Part<Type, Rank>> blocks) {
  detail::exchange_parts(decomposition, std::vector<Part<Type, Rank>>(blocks));
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* Exchanges, and then fills the ghost cells outside of the box by rules, as umem::fill_ghosts would
 * those of the box in one piece; a mirror image that is neither in the block nor in its ghost cells
 * repeats what is there. Throws umem::value_error for the rule periodic in a dimension where the
 * box is not: give that to the decomposition. */
template <int Rank, class Blocks>
void exchange_ghosts(Decomposition<Rank> const &decomposition, Blocks &&blocks,
                     detail::ghost_rules_of<decltype(*std::begin(blocks))> const &rules) {

  for (int k = 0; k < Rank; k++)
    if (!decomposition.is_periodic(k) &&
        (rules.below[k].kind == periodic || rules.above[k].kind == periodic))
      throw value_error("exchange_ghosts: the rule of dimension " + std::to_string(k) +
                        " is periodic, the decomposition is not");
  auto const parts = detail::parts_of_blocks(blocks);
  detail::exchange_parts(decomposition, parts);
  index_t n = 0;
  for (auto const &part : parts) /* cells in the box are elements now */
    fill_ghosts(part.with_ghosts(decomposition.outside(n++, part.ghosts())), rules);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
