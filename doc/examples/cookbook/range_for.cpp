/* Loop over all elements of an array. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<double, 2> u({2, 3});
  double next = 0;
  for (double &x : umem::elements(u.host(umem::discard))) x = next++;

  auto guard = u.host(umem::write);
  for (double &x : guard->select(1, 0)) x += 100; /* a column */
  std::cout << *guard << '\n';
}
