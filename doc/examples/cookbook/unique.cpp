/* Find the different values in an array. */
#include <algorithm>
#include <iostream>
#include <umem.hpp>
#include <vector>

int main() {
  umem::Array<int, 2> u({3, 4});
  int next = 0;
  for (int &x : umem::elements(u.host(umem::discard))) x = next++ * 7 % 5;

  auto guard = u.host(umem::read);
  auto all = umem::elements(guard);
  std::vector<int> values(all.begin(), all.end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (int value : values) std::cout << value << ' ';
  std::cout << '\n';
}
