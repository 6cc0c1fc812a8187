/* umem/ghosts.hpp - how many ghost cells there are around the elements of an array.
 *
 *     umem::Array<double, 2> u({50, 50}, context, {{1, 1}});     // one cell on all four sides
 *     umem::Ghosts<2> upwind({2, 0}, {1, 0});                    // two rows before, one after */
#ifndef UMEM_GHOSTS_HPP
#define UMEM_GHOSTS_HPP

#include <umem/extents.hpp>

namespace umem {

/* Cells before and after the elements of each dimension: index k is in [-below[k], extents[k] +
 * above[k]). Trivially copyable; for host and device. */
template <int Rank> struct Ghosts {
  Extents<Rank> below, above; /* not negative */

  /* None. */
  constexpr Ghosts() noexcept = default;

  /* As many before as after. */
  UMEM_FUNCTION constexpr Ghosts(Extents<Rank> const &both) noexcept : below(both), above(both) {}

  /* As many cells before as after, by one integer per dimension. */
  template <class... Indices, class = std::enable_if_t<(sizeof...(Indices) == Rank && Rank > 0) &&
                                                       (detail::is_index<Indices> && ...)>>
  UMEM_FUNCTION constexpr Ghosts(Indices... both) noexcept : Ghosts(Extents<Rank>(both...)) {}

  /* The first numbers are those of the cells before, the second those of the cells after. */
  UMEM_FUNCTION constexpr Ghosts(Extents<Rank> const &below_, Extents<Rank> const &above_) noexcept
      : below(below_), above(above_) {}

  /* In 0.1 there were always as many cells before as after. */
  [[deprecated("write below[k] or above[k]")]] UMEM_FUNCTION constexpr index_t
  operator[](int k) const noexcept {
    return below[k];
  }

  /* Whether there is none. */
  UMEM_FUNCTION constexpr bool is_empty() const noexcept { return *this == Ghosts(); }

  UMEM_FUNCTION friend constexpr bool operator==(Ghosts const &one, Ghosts const &other) noexcept {
    return one.below == other.below && one.above == other.above;
  }
  UMEM_FUNCTION friend constexpr bool operator!=(Ghosts const &one, Ghosts const &other) noexcept {
    return !(one == other);
  }
};

namespace detail {

/* The extents of elements and ghost cells together, which must not overflow. */
template <int Rank>
UMEM_FUNCTION constexpr Extents<Rank> all_cells(Extents<Rank> const &extents,
                                                Ghosts<Rank> const &ghosts) noexcept {
  Extents<Rank> all = extents;
  for (int k = 0; k < Rank; k++) all.at[k] += ghosts.below.at[k] + ghosts.above.at[k];
  return all;
}

/* As "(1, 0)", or as "(2, 0) before and (1, 0) after"; for messages. */
template <int Rank> InWords in_words(Ghosts<Rank> const &ghosts) {
  InWords words = in_words(ghosts.below);
  if (ghosts.below != ghosts.above)
    words.add(" before and ").add(in_words(ghosts.above).text).add(" after");
  return words;
}

} // namespace detail
} // namespace umem

#endif
