/* umem/decomposition.hpp - a box of indices that is cut into blocks, and which ghost cells of a
 * block are elements of which other one. Geometry alone: exchange.hpp copies the elements between
 * arrays of one process.
 *
 *     umem::Decomposition<2> grid({1000, 800}, {2, 4}, {0, 1}); // 2 x 4, periodic in dimension 1
 *     auto two = umem::Decomposition<2>::at({{0, 40, 64}, {0, 96}});  // rows [0, 40) and [40, 64)
 *
 * Blocks have numbers 0, 1, ... in C order of their positions. */
#ifndef UMEM_DECOMPOSITION_HPP
#define UMEM_DECOMPOSITION_HPP

#include <umem/range.hpp>

#include <initializer_list>

namespace umem {

/* Ghost cells of one block that are elements of another, or of the other end of the same one.
 * Indices count from the first element of each block; both ranges have the same extents. */
template <int Rank> struct GhostCopy {
  index_t from;
  Range<Rank> source; /* elements of block from */
  index_t to;
  Range<Rank> target; /* ghost cells of block to */
};

template <int Rank> class Decomposition {
  static_assert(Rank > 0, "Decomposition: a box has at least one dimension");

public:
  /* Indices below extents, in blocks[k] blocks along dimension k, which differ by at most one
   * element. wraps[k]: not 0 where the first and the last block of dimension k are neighbours.
   * Throws umem::value_error if an extent is negative or a number of blocks is not positive. */
  Decomposition(Extents<Rank> const &extents, Extents<Rank> const &blocks,
                Extents<Rank> const &wraps = {})
      : blocks_(blocks), periodic_(wraps) {
    checked_product(extents);
    for (int k = 0; k < Rank; k++) {
      if (blocks[k] < 1)
        detail::raise_text(umemValueError, "a decomposition into %s blocks",
                           detail::in_words(blocks).text);
      index_t const each = extents[k] / blocks[k], longer = extents[k] % blocks[k];
      for (index_t n = 0; n <= blocks[k]; n++)
        cuts_[k].push_back(n * each + (n < longer ? n : longer));
    }
  }

  /* For each dimension the first index of every block, and at last the extent: 0, ..., extent.
   * Throws umem::value_error if there are not Rank lists, or if one does not begin with 0 or
   * descends. */
  static Decomposition at(std::initializer_list<std::vector<index_t>> cuts,
                          Extents<Rank> const &wraps = {}) {
    if (cuts.size() != static_cast<std::size_t>(Rank))
      detail::raise_text(umemValueError, "a decomposition of %d dimensions with cuts of %zu", Rank,
                         cuts.size());
    Decomposition result({}, ones(), wraps);
    int k = 0;
    for (std::vector<index_t> const &list : cuts) {
      bool ascends = list.size() > 1 && list[0] == 0;
      for (std::size_t n = 1; n < list.size(); n++) ascends = ascends && list[n - 1] <= list[n];
      if (!ascends)
        detail::raise_text(umemValueError, "the cuts %s of dimension %d do not ascend from 0",
                           detail::InWords(list.data(), list.data() + list.size()).text, k);
      result.blocks_[k] = static_cast<index_t>(list.size()) - 1;
      result.cuts_[k++] = list;
    }
    checked_product(result.extents());
    return result;
  }

  /* ---- the box ---- */

  Extents<Rank> extents() const noexcept {
    Extents<Rank> result;
    for (int k = 0; k < Rank; k++) result.at[k] = cuts_[k].back();
    return result;
  }
  bool is_periodic(int k) const noexcept { return periodic_[k] != 0; }

  /* ---- the blocks ---- */

  /* Blocks along each dimension, and all. */
  Extents<Rank> const &blocks() const noexcept { return blocks_; }
  index_t size() const noexcept { return blocks_.product(); }

  /* The position of a block, and the number of the block at a position. umem::index_error if there
   * is none. */
  Extents<Rank> position(index_t block) const {
    if (block < 0 || block >= size())
      detail::raise_text(umemIndexError, "there is no block %td of %td", block, size());
    return detail::indices_at(block, blocks_);
  }
  index_t number(Extents<Rank> const &position) const {
    for (int k = 0; k < Rank; k++)
      if (position[k] < 0 || position[k] >= blocks_[k])
        detail::raise_text(umemIndexError, "there is no block at %s of %s",
                           detail::in_words(position).text, detail::in_words(blocks_).text);
    return detail::distance(position, c_strides(blocks_));
  }

  /* The indices of a block in the box, and how many they are. */
  Range<Rank> box(index_t block) const {
    Extents<Rank> const at = position(block);
    Range<Rank> result;
    for (int k = 0; k < Rank; k++) {
      result.begin.at[k] = cut(k, at.at[k]);
      result.end.at[k] = cut(k, at.at[k] + 1);
    }
    return result;
  }
  Extents<Rank> extents(index_t block) const {
    Range<Rank> const own = box(block);
    Extents<Rank> result;
    for (int k = 0; k < Rank; k++) result.at[k] = own.end.at[k] - own.begin.at[k];
    return result;
  }

  /* How many of the ghost cells of a block are outside of the box: none where it is periodic. */
  Ghosts<Rank> outside(index_t block, Ghosts<Rank> const &ghosts) const {
    Range<Rank> const own = box(block);
    Ghosts<Rank> result;
    for (int k = 0; k < Rank; k++) {
      if (is_periodic(k)) continue;
      index_t const below = ghosts.below.at[k] - own.begin.at[k];
      index_t const above = own.end.at[k] + ghosts.above.at[k] - cuts_[k].back();
      result.below.at[k] = below > 0 ? below : 0;
      result.above.at[k] = above > 0 ? above : 0;
    }
    return result;
  }

  /* ---- neighbours ---- */

  /* The ghost cells of a block that are elements of the box, those at edges and corners included.
   * Each cell is in one copy. Ghost cells may reach beyond the next block; where the box is
   * periodic, several times around it. */
  std::vector<GhostCopy<Rank>> ghost_copies(index_t block, Ghosts<Rank> const &ghosts) const {
    Extents<Rank> const at = position(block);
    std::vector<Piece> pieces[std::size_t(Rank)];
    for (int k = 0; k < Rank; k++)
      pieces[k] = pieces_of(k, at.at[k], ghosts.below.at[k], ghosts.above.at[k]);
    std::vector<GhostCopy<Rank>> copies;
    Extents<Rank> counts;
    for (int k = 0; k < Rank; k++) {
      counts.at[k] = static_cast<index_t>(pieces[k].size());
      if (counts.at[k] == 0) return copies;
    }
    for (index_t n = 0; n < counts.product(); n++) {
      GhostCopy<Rank> copy{0, {}, block, {}};
      Extents<Rank> from;
      bool is_own = true;
      Extents<Rank> const which = detail::indices_at(n, counts);
      for (int k = 0; k < Rank; k++) {
        Piece const &piece = pieces[k][static_cast<std::size_t>(which.at[k])];
        from.at[k] = piece.block;
        copy.source.begin.at[k] = piece.source;
        copy.source.end.at[k] = piece.source + piece.count;
        copy.target.begin.at[k] = piece.target;
        copy.target.end.at[k] = piece.target + piece.count;
        is_own = is_own && piece.is_own;
      }
      if (is_own) continue;
      copy.from = number(from);
      copies.push_back(copy);
    }
    return copies;
  }

private:
  /* Cells of a block and its ghost cells along one dimension that are elements of one block. */
  struct Piece {
    index_t block, source, target, count;
    bool is_own;
  };

  static Extents<Rank> ones() noexcept {
    Extents<Rank> result;
    for (index_t &one : result) one = 1;
    return result;
  }
  index_t cut(int k, index_t n) const noexcept { return cuts_[k][static_cast<std::size_t>(n)]; }

  std::vector<Piece> pieces_of(int k, index_t own, index_t below, index_t above) const {
    std::vector<Piece> pieces;
    index_t const first = cut(k, own), low = first - below, high = cut(k, own + 1) + above;
    index_t const extent = cuts_[k].back();
    if (extent == 0) return pieces;
    auto floor = [extent](index_t i) { return i / extent - (i % extent < 0); };
    index_t const begin = is_periodic(k) ? floor(low) : 0,
                  end = is_periodic(k) ? floor(high - 1) : 0;
    for (index_t image = begin; image <= end; image++)
      for (index_t n = 0; n < blocks_.at[k]; n++) {
        index_t const shift = image * extent;
        index_t const from = cut(k, n) + shift > low ? cut(k, n) + shift : low;
        index_t const to = cut(k, n + 1) + shift < high ? cut(k, n + 1) + shift : high;
        if (from < to)
          pieces.push_back(
              {n, from - shift - cut(k, n), from - first, to - from, n == own && image == 0});
      }
    return pieces;
  }

  Extents<Rank> blocks_, periodic_;
  std::vector<index_t> cuts_[std::size_t(Rank)];
};

} // namespace umem

#endif
