/* Copy an array, or a part of it, to another place */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<int, 2> u({3, 4}), v({3, 4}, umem::File::scratch());
  umem::iota(u, 0);
  umem::copy(u, v); /* all elements, to a file */

  umem::Array<int, 1> column({3});
  umem::copy(v.part().select(1, 2), column);
  std::cout << column << '\n';

  int numbers[] = {-1, -2, -3, -4};
  umem::copy(umem::View<int, 1>(numbers, {4}), v.part().select(0, 1));
  std::cout << v << '\n';
}
