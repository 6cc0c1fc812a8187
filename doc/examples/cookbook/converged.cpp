/* Repeat until an array stops to change */
#include <iostream>
#include <umem.hpp>
#include <umem/compare.hpp>
#include <utility>

int main() { /* the square roots of 1, 2, 3, 4 by the method of Newton */
  umem::Array<double, 1> u({4}), next({4});
  umem::fill(u, 1);
  int steps = 0;
  for (;; steps++) {
    umem::for_each_indexed([](double &to, double x,
                              umem::index_t i) { to = 0.5 * (x + static_cast<double>(i + 1) / x); },
                           next, u);
    if (umem::all_close(next, u, umem::Tolerance{1e-12, 0})) break;
    std::swap(u, next);
  }
  std::cout << steps << " steps, " << next.get(1) << '\n';
}
