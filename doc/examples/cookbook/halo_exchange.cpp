/* Cut a grid into blocks and exchange their ghost cells. */
#include <iostream>
#include <umem.hpp>
#include <umem/exchange.hpp>
#include <umem/fill.hpp>
#include <umem/print.hpp>
#include <vector>

int main() {
  umem::Decomposition<2> grid({4, 4}, {2, 2}, {0, 1}); /* periodic from left to right */
  std::vector<umem::Array<int, 2>> blocks;
  umem::Context places[] = {umem::Host(), umem::MMap::scratch(), umem::File::scratch(),
                            umem::Host()};
  for (umem::index_t n = 0; n < grid.size(); n++) {
    blocks.emplace_back(grid.extents(n), places[n], umem::ArrayOptions<2>{{1, 1}, {}, 0});
    umem::fill(blocks.back(), n);
  }
  umem::exchange_ghosts(grid, blocks, umem::constant(-1)); /* -1 outside of the grid */
  std::cout << blocks[3].host(umem::read)->with_ghosts() << '\n';
}
