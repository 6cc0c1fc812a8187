/* umem/detail/view_error_functions.hpp - what view_error.hpp declares. */
#ifndef UMEM_DETAIL_VIEW_ERROR_FUNCTIONS_HPP
#define UMEM_DETAIL_VIEW_ERROR_FUNCTIONS_HPP

#include <umem/extents.hpp>
#include <umem/view_error.hpp>

namespace umem {
namespace detail {

UMEM_INLINE void raise_index(index_t i, int k, index_t low, index_t high) {
  raise_text(umemIndexError, "index %td is outside the range [%td, %td) of dimension %d", i, low,
             high, k);
}

UMEM_INLINE void raise_dimension(int k, int rank) {
  raise_text(umemIndexError, "there is no dimension %d in a view of rank %d", k, rank);
}

UMEM_INLINE void raise_slice(index_t begin, index_t end, index_t step, int k, index_t low,
                             index_t high) {
  if (step < 1) raise_text(umemValueError, "the step %td of a slice is not positive", step);
  raise_text(umemIndexError, "the slice [%td, %td) is outside the range [%td, %td) of dimension %d",
             begin, end, low, high, k);
}

UMEM_INLINE void raise_slice_index(index_t i, int k, index_t low, index_t high,
                                   index_t const *extents, int rank) {
  raise_text(umemIndexError,
             "part: index %td is outside the range [%td, %td) of dimension %d of the extents %s", i,
             low, high, k, InWords(extents, extents + rank).text);
}

UMEM_INLINE void raise_range(index_t first, index_t last, index_t step, int k, index_t low,
                             index_t high, index_t const *extents, int rank) {
  if (step == 0)
    raise_text(umemValueError, "part: the step of the range %td to %td in dimension %d is 0", first,
               last, k);
  raise_text(umemIndexError,
             "part: the range %td to %td with step %td leaves the range [%td, %td) of dimension %d "
             "of the extents %s",
             first, last, step, low, high, k, InWords(extents, extents + rank).text);
}

UMEM_INLINE void raise_reshape_size(index_t const *extents, int rank, index_t const *shape,
                                    int shape_rank) {
  raise_text(umemValueError, "reshape: the extents %s and %s have different numbers of elements",
             InWords(extents, extents + rank).text, InWords(shape, shape + shape_rank).text);
}

UMEM_INLINE void raise_reshape(index_t const *extents, index_t const *strides, int rank,
                               index_t const *shape, int shape_rank, Order order) {
  raise_text(umemValueError,
             "reshape: elements with extents %s and strides %s cannot get the extents %s in "
             "%s-major order without a copy: copy them to an array first",
             InWords(extents, extents + rank).text, InWords(strides, strides + rank).text,
             InWords(shape, shape + shape_rank).text, order == row_major ? "row" : "column");
}

UMEM_INLINE void raise_ghosts(index_t below, index_t above, int k, index_t cells) {
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
