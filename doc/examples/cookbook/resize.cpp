/* Make an array larger, and keep its elements. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<int, 2> u({2, 3});
  umem::iota(u, 1);
  u.resize({3, 5}, 0); /* the new elements are 0 */
  std::cout << u << '\n';
}
