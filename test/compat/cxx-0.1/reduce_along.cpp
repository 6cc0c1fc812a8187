/* Reductions along one dimension: sums of rows and columns, and of what a functor makes of them. */
#include <iostream>
#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/print.hpp>
#include <umem/reduce_along.hpp>

/* [functors] */
struct Square {
  UMEM_FUNCTION double operator()(float x) const { return static_cast<double>(x) * x; }
};
struct Product {
  UMEM_FUNCTION double operator()(float x, float y) const { return static_cast<double>(x) * y; }
};
/* [/functors] */

int main() {
  umem::Array<float, 2> a({2, 3}), b({2, 3});
  umem::iota(a, 1);
  umem::fill(b, 2);

  /* [along] */
  umem::Array<double, 1> rows({2}), columns({3});
  umem::sum_along(a, 1, rows); /* along dimension 1: one sum for each row */
  std::cout << rows << '\n';
  umem::transform_reduce_along(a, 0, columns, 0.0, umem::plus(), Square());
  std::cout << columns << '\n';
  umem::transform_reduce_along(a, b, 1, rows, 0.0, umem::plus(), Product()); /* dot products */
  std::cout << rows << '\n';
  /* [/along] */
}
