/* Ghost cells: widths for each side, rules for what is beyond the boundary, and exchange between blocks. */
#include <iostream>
#include <umem.hpp>
#include <umem/exchange.hpp>
#include <umem/fill.hpp>
#include <umem/fill_ghosts.hpp>
#include <umem/print.hpp>
#include <vector>

int main() {
  /* [widths] */
  umem::ArrayOptions<1> options;
  options.ghosts = {{2}, {1}}; /* two cells before, one after; {1} is one on both sides */
  umem::Array<int, 1> u({4}, umem::Host(), options);
  auto v = umem::Array<int, 1>::full({6}, 5);
  v.set_ghosts({1}); /* the first and the last element become ghost cells */
  std::cout << v << ", indices from " << v.host(umem::read)->low(0) << '\n';
  /* [/widths] */
  umem::iota(u, 1);
  auto print = [&] { std::cout << u.host(umem::read)->with_ghosts() << '\n'; };
  /* [fill] */
  umem::fill_ghosts(u, umem::periodic);
  print();
  umem::fill_ghosts(u, umem::reflect);
  print();
  umem::fill_ghosts(u, umem::sides(umem::constant(0), umem::edge)); /* before; after */
  print();
  /* [/fill] */
  /* [exchange] */
  umem::Decomposition<2> grid({4, 4}, {2, 1}); /* two blocks of two rows */
  std::vector<umem::Array<int, 2>> blocks;
  for (umem::index_t n = 0; n < grid.size(); n++) {
    blocks.emplace_back(grid.extents(n), umem::Host(), umem::ArrayOptions<2>{{1, 0}, {}, 0});
    umem::fill(blocks.back(), n + 1);
  }
  umem::exchange_ghosts(grid, blocks, umem::constant(0)); /* 0 outside of the grid */
  std::cout << blocks[0].host(umem::read)->with_ghosts() << '\n';
  /* [/exchange] */
}
