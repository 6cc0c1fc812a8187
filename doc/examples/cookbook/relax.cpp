/* Relax until nothing changes: a stencil and its largest change in one pass */
#include <cmath>
#include <iostream>
#include <umem.hpp>
#include <umem/sweep.hpp>

struct Relax {
  umem::View<double const, 1> u;
  UMEM_FUNCTION double operator()(double &value, umem::index_t i) const {
    value = 0.5 * (u(i - 1) + u(i + 1));
    return std::fabs(value - u(i));
  }
};

int main() {
  umem::Array<double, 1> u({11}), next({11});
  umem::fill(u, 0);
  u.set(10, 10);
  umem::copy(u, next);
  double change = 1;
  while (change > 1e-6) {
    {
      auto const from = umem::guard_at_home(u, umem::read);
      change = umem::sweep(next, umem::interior(next), 0.0, umem::maximum(), Relax{*from});
    }
    swap(u, next);
  }
  for (umem::index_t i = 0; i < 11; i++)
    std::cout << std::lround(u.get(i)) << (i < 10 ? ' ' : '\n');
}
