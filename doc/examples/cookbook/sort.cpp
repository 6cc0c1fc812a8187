/* Sort the elements of an array. */
#include <algorithm>
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<int, 2> u({2, 4});
  int seed = 1;
  for (int &x : umem::elements(u.host(umem::discard))) x = seed = seed * 5 % 17;

  auto guard = u.host(umem::write);
  std::cout << *guard << "\n\n";
  umem::visit_elements(guard, [](auto first, auto last) { std::sort(first, last); });
  std::cout << *guard << '\n';
}
