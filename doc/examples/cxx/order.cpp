/* Arrays in column-major order, and arrays that get other extents. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  /* [order] */
  umem::Array<double, 2> a({2, 3}, umem::column_major); /* as in Fortran, BLAS and MATLAB */
  umem::iota(a, 0);
  std::cout << a << '\n' << a.strides()[0] << ' ' << a.strides()[1] << '\n';
  umem::Array<double, 2> rows({2, 3});
  umem::copy(a, rows); /* the same elements in another order of memory */
  std::cout << (rows.get(1, 2) == a.get(1, 2)) << '\n';
  /* [/order] */

  /* [reshape] */
  umem::Array<double, 1> values = std::move(a).reshape(umem::Extents{6});
  std::cout << values << '\n'; /* in the order of the memory */
  rows.reshape({3, 2});
  std::cout << rows << '\n';
  /* [/reshape] */

  /* [resize] */
  rows.resize({4, 3}, -1); /* the new elements are -1 */
  std::cout << rows << '\n';
  rows.resize({2, 2});
  std::cout << rows << '\n';
  /* [/resize] */
}
