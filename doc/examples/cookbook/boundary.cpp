/* Give each side of an array a boundary condition of its own. */
#include <iostream>
#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/fill_ghosts.hpp>
#include <umem/print.hpp>

int main() {
  umem::ArrayOptions<2> options;
  options.ghosts = {{2, 1}, {0, 1}}; /* two rows before, none after; a column on both sides */
  umem::Array<int, 2> u({3, 3}, umem::Host(), options);
  umem::iota(u, 1);
  umem::fill_ghosts(u, {umem::reflect, umem::sides(umem::constant(0), umem::edge)});
  std::cout << u.host(umem::read)->with_ghosts() << '\n';
}
