/* umem/view_error.hpp - the exceptions of checked access to views. Host only. */
#ifndef UMEM_VIEW_ERROR_HPP
#define UMEM_VIEW_ERROR_HPP

#include <umem/config.hpp>
#include <umem/error.hpp>

namespace umem {
namespace detail {

/* Index i of dimension k is not in [low, high). */
[[noreturn]] void raise_index(index i, int k, index low, index high);

/* There is no dimension k. */
[[noreturn]] void raise_dimension(int k, int rank);

/* The slice begin, end, step is not within [low, high). */
[[noreturn]] void raise_slice(index begin, index end, index step, int k, index low, index high);

/* There are not so many cells in dimension k that they could be ghost cells. */
[[noreturn]] void raise_ghosts(index below, index above, int k, index cells);

[[noreturn]] void raise_value(char const *message);

} // namespace detail
} // namespace umem

#if !defined(UMEM_COMPILED)
#include <umem/detail/view_error_functions.hpp>
#endif

#endif
