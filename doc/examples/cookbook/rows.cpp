/* Find the largest element and the length of each row. */
#include <iostream>
#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/print.hpp>
#include <umem/reductions_along.hpp>

int main() {
  umem::Array<int, 2> u({3, 2});
  umem::iota(u, 3);
  u.set(-8, 1, 0);
  umem::Array<umem::index_t, 1> where({3});
  umem::Array<double, 1> lengths({3});
  umem::argmax_along(u, 1, where); /* the column of the largest element */
  umem::norm_along(u, 1, lengths);
  std::cout << u << '\n' << where << '\n' << lengths << '\n';
}
