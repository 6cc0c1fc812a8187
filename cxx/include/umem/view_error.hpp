/* umem/view_error.hpp - the exceptions of checked access to views. Host only. */
#ifndef UMEM_VIEW_ERROR_HPP
#define UMEM_VIEW_ERROR_HPP

#include <umem/config.hpp>
#include <umem/error.hpp>

namespace umem {
namespace detail {

/* Index i of dimension k is not in [low, high). */
[[noreturn]] inline void raise_index(index i, int k, index low, index high) {
  raise_text(umemIndexError, "index %td is outside the range [%td, %td) of dimension %d", i, low,
             high, k);
}

/* There is no dimension k. */
[[noreturn]] inline void raise_dimension(int k, int rank) {
  raise_text(umemIndexError, "there is no dimension %d in a view of rank %d", k, rank);
}

/* The slice begin, end, step is not within [low, high). */
[[noreturn]] inline void raise_slice(index begin, index end, index step, int k, index low,
                                     index high) {
  if (step < 1) raise_text(umemValueError, "the step %td of a slice is not positive", step);
  raise_text(umemIndexError,
             "the slice [%td, %td) is outside the range [%td, %td) of dimension %d", begin, end,
             low, high, k);
}

[[noreturn]] inline void raise_value(char const *message) { raise_text(umemValueError, "%s", message); }

} // namespace detail
} // namespace umem

#endif
