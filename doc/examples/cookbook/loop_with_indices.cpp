/* Use the indices of elements in a loop over two arrays */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<double, 2> u({3, 4}), v({3, 4});
  umem::fill(u, 100);
  umem::fill(v, 0);
  auto const mark = [](double &to, double from, umem::index_t i, umem::index_t j) {
    to = from + static_cast<double>(10 * i + j);
  };
  umem::for_each(mark, v, u);
  std::cout << v << '\n';
  umem::fill(v, 0);
  umem::for_each(mark, umem::interior(v), v, u); /* all but the outermost elements */
  std::cout << v << '\n';
}
