/* Keep a matrix in the order of Fortran, and hand it to Fortran code without a copy. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

/* As a routine of LAPACK: n by n elements, ld from one column to the next. */
void scale_columns(int n, double *a, int ld, double const *factors) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) a[i + j * ld] *= factors[j];
}

int main() {
  umem::Array<double, 2> a({3, 3}, umem::column_major);
  umem::fill(a, 1);
  double const factors[] = {1, 2, 3};
  scale_columns(3, a.host(umem::write)->data, 3, factors);
  std::cout << a << '\n';
}
