/* umem/view_error.hpp - the exceptions of checked access to views. Host only. */
#ifndef UMEM_VIEW_ERROR_HPP
#define UMEM_VIEW_ERROR_HPP

#include <umem/config.hpp>
#include <umem/error.hpp>
#include <umem/extents.hpp>

namespace umem {
namespace detail {

/* Index i of dimension k is not in [low, high). */
[[noreturn]] void raise_index(index_t i, int k, index_t low, index_t high);

/* There is no dimension k. */
[[noreturn]] void raise_dimension(int k, int rank);

/* The slice begin, end, step is not within [low, high). */
[[noreturn]] void raise_slice(index_t begin, index_t end, index_t step, int k, index_t low,
                              index_t high);

/* The same for a slice of an array of rank extents, and for a range that is not within [low, high) or has step 0. */
[[noreturn]] void raise_slice_index(index_t i, int k, index_t low, index_t high,
                                    index_t const *extents, int rank);
[[noreturn]] void raise_range(index_t first, index_t last, index_t step, int k, index_t low,
                              index_t high, index_t const *extents, int rank);

/* The extents have not as many elements as the shape. */
[[noreturn]] void raise_reshape_size(index_t const *extents, int rank, index_t const *shape,
                                     int shape_rank);

/* The elements are not where they would be in the shape. */
[[noreturn]] void raise_reshape(index_t const *extents, index_t const *strides, int rank,
                                index_t const *shape, int shape_rank, Order order);

/* There are not so many cells in dimension k that they could be ghost cells. */
[[noreturn]] void raise_ghosts(index_t below, index_t above, int k, index_t cells);

[[noreturn]] void raise_value(char const *message);

} // namespace detail
} // namespace umem

#if !defined(UMEM_COMPILED)
#include <umem/detail/view_error_functions.hpp>
#endif

#endif
