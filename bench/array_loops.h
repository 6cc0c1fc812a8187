/* array_loops.h - loops over the elements of arrays, compiled as users compile: with plain -O2 and
 * with each UMEM_CHECKS, for any type of this build. */
#ifndef UMEM_BENCH_ARRAY_LOOPS_H
#define UMEM_BENCH_ARRAY_LOOPS_H

#include <umem/array.hpp>

namespace bench {

using Square = umem::Array<double, 2>;

/* The elements of an array with ghost cells, as a program without umem has them. */
struct Raw {
  double *data;         /* element (0, 0) */
  umem::index_t n, row; /* extents of the interior, elements from one row to the next */
};

/* Each makes v from u: twice every element, and the mean of four neighbours. */
namespace plain { /* -O2 */
void elements(Square &v, Square const &u);
void stencil(Square &v, Square const &u);
void raw_elements(Raw v, Raw u);
void raw_stencil(Raw v, Raw u);
} // namespace plain
namespace checked { /* -O2 -DUMEM_CHECKS=1 */
void elements(Square &v, Square const &u);
void stencil(Square &v, Square const &u);
} // namespace checked

} // namespace bench

#endif
