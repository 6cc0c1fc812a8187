/* Count the elements in bins: a histogram. */
#include <algorithm>
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<double, 1> u({1000});
  int seed = 1;
  for (double &x : u.host(umem::discard)) x = (seed = seed * 5 % 1009) / 1009.0;

  auto counts = umem::Array<int, 1>::zeros({5}); /* of the values in [0, 1) */
  auto count = counts.host(umem::write);
  for (double value : u.host(umem::read)) count(std::min(4, static_cast<int>(5 * value)))++;
  std::cout << *count << '\n';
}
