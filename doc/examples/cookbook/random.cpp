/* Fill arrays with the same random numbers on every place */
#include <iostream>
#include <umem.hpp>
#include <umem/c_array_numbers.hpp>
#include <umem/compare.hpp>

int main() {
  umem::Array<double, 2> here({100, 3}), there({100, 3}, umem::File::scratch());
  umem::random_normal(here, 0, 1, 42); /* 42: the seed */
  umem::random_normal(there, 0, 1, 42);
  std::cout << "differences: " << umem::difference(here, there).size() << '\n';
  umem::random_uniform(there.part().select(1, 0), 5, 6, 7); /* one column */
  std::cout << (there.get(99, 0) >= 5) << ' ' << (there.get(99, 1) == here.get(99, 1)) << '\n';
}
