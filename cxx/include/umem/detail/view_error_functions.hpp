/* umem/detail/view_error_functions.hpp - what view_error.hpp declares. */
#ifndef UMEM_DETAIL_VIEW_ERROR_FUNCTIONS_HPP
#define UMEM_DETAIL_VIEW_ERROR_FUNCTIONS_HPP

#include <umem/view_error.hpp>

namespace umem {
namespace detail {

UMEM_INLINE void raise_index(index i, int k, index low, index high) {
  raise_text(umemIndexError, "index %td is outside the range [%td, %td) of dimension %d", i, low,
             high, k);
}

UMEM_INLINE void raise_dimension(int k, int rank) {
  raise_text(umemIndexError, "there is no dimension %d in a view of rank %d", k, rank);
}

UMEM_INLINE void raise_slice(index begin, index end, index step, int k, index low, index high) {
  if (step < 1) raise_text(umemValueError, "the step %td of a slice is not positive", step);
  raise_text(umemIndexError, "the slice [%td, %td) is outside the range [%td, %td) of dimension %d",
             begin, end, low, high, k);
}

UMEM_INLINE void raise_ghosts(index below, index above, int k, index cells) {
  if (below < 0 || above < 0)
    raise_text(umemValueError, "a number of ghost cells, %td, is negative",
               below < 0 ? below : above);
  raise_text(umemValueError, "%td and %td ghost cells are more than the %td cells of dimension %d",
             below, above, cells, k);
}

UMEM_INLINE void raise_value(char const *message) { raise_text(umemValueError, "%s", message); }

} // namespace detail
} // namespace umem

#endif
