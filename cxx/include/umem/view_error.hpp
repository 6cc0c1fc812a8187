/* umem/view_error.hpp - the exceptions of checked access to views. Host only. */
#ifndef UMEM_VIEW_ERROR_HPP
#define UMEM_VIEW_ERROR_HPP

#include <umem/config.hpp>
#include <umem/error.hpp>
#include <umem/extents.hpp>

namespace umem {
namespace detail {

/* Index i of dimension k is not in [low, high). */
[[noreturn]] void raise_index(index i, int k, index low, index high);

/* There is no dimension k. */
[[noreturn]] void raise_dimension(int k, int rank);

/* The slice begin, end, step is not within [low, high). */
[[noreturn]] void raise_slice(index begin, index end, index step, int k, index low, index high);

/* The same for a slice of an array of rank extents, and for a range that is not within [low, high) or has step 0. */
[[noreturn]] void raise_slice_index(index i, int k, index low, index high, index const *extents,
                                    int rank);
[[noreturn]] void raise_range(index first, index last, index step, int k, index low, index high,
                              index const *extents, int rank);

/* The extents have not as many elements as the shape. */
[[noreturn]] void raise_reshape_size(index const *extents, int rank, index const *shape,
                                     int shape_rank);

/* The elements are not where they would be in the shape. */
[[noreturn]] void raise_reshape(index const *extents, index const *strides, int rank,
                                index const *shape, int shape_rank, Order order);

/* There are not so many cells in dimension k that they could be ghost cells. */
[[noreturn]] void raise_ghosts(index below, index above, int k, index cells);

[[noreturn]] void raise_value(char const *message);

} // namespace detail
} // namespace umem

#if !defined(UMEM_COMPILED)
#include <umem/detail/view_error_functions.hpp>
#endif

#endif
