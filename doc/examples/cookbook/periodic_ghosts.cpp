/* Make an array periodic. */
#include <iostream>
#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/fill_ghosts.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<int, 2> u({2, 3}, umem::Host(), {{1, 1}, {}, 0}); /* one ghost cell on each side */
  umem::iota(u, 1);
  umem::fill_ghosts(u, umem::periodic);
  std::cout << u.host(umem::read)->with_ghosts() << '\n';
}
