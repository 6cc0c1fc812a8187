/* Sort each column of a matrix. */
#include <algorithm>
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<int, 2> u({3, 4});
  int seed = 1;
  for (int &x : umem::elements(u.host(umem::discard))) x = seed = seed * 5 % 17;

  auto guard = u.host(umem::write);
  for (int j = 0; j < 4; j++) {
    auto column = guard->select(1, j);
    std::sort(column.begin(), column.end());
  }
  std::cout << *guard << '\n';
}
