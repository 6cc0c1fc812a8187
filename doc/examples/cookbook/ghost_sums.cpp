/* Sum an array with and without its ghost cells. */
#include <iostream>
#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/reduce.hpp>

int main() {
  auto u = umem::Array<int, 2>::full({6, 6}, 1);
  u.set_ghosts({1, 1}); /* the outermost cells become ghost cells */
  std::cout << umem::sum(u) << " of " << umem::sum(u.part().with_ghosts()) << '\n';
}
