/* umem/view_error.hpp - the exceptions of checked access to views. Host only. */
#ifndef UMEM_VIEW_ERROR_HPP
#define UMEM_VIEW_ERROR_HPP

#include <umem/config.hpp>
#include <umem/error.hpp>

#include <string>

namespace umem {
namespace detail {

/* Index i of dimension k is not in [low, high). */
[[noreturn]] inline void raise_index(index i, int k, index low, index high) {
  throw index_error("index " + std::to_string(i) + " is outside the range [" + std::to_string(low) +
                    ", " + std::to_string(high) + ") of dimension " + std::to_string(k));
}

/* There is no dimension k. */
[[noreturn]] inline void raise_dimension(int k, int rank) {
  throw index_error("there is no dimension " + std::to_string(k) + " in a view of rank " +
                    std::to_string(rank));
}

/* The slice begin, end, step is not within [low, high). */
[[noreturn]] inline void raise_slice(index begin, index end, index step, int k, index low,
                                     index high) {
  if (step < 1)
    throw value_error("the step " + std::to_string(step) + " of a slice is not positive");
  throw index_error("the slice [" + std::to_string(begin) + ", " + std::to_string(end) +
                    ") is outside the range [" + std::to_string(low) + ", " + std::to_string(high) +
                    ") of dimension " + std::to_string(k));
}

/* There are not so many cells in dimension k that they could be ghost cells. */
[[noreturn]] inline void raise_ghosts(index below, index above, int k, index cells) {
  if (below < 0 || above < 0)
    throw value_error("a number of ghost cells, " + std::to_string(below < 0 ? below : above) +
                      ", is negative");
  throw value_error(std::to_string(below) + " and " + std::to_string(above) +
                    " ghost cells are more than the " + std::to_string(cells) +
                    " cells of dimension " + std::to_string(k));
}

[[noreturn]] inline void raise_value(char const *message) { throw value_error(message); }

} // namespace detail
} // namespace umem

#endif
