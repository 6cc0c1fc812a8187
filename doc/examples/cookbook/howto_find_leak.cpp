/* A block that is still there, with its label. */
#include <cstdio>
#include <umem.hpp>
#include <umem/adaptors.hpp>

int main() {
  umem::Track tracked{umem::Host()}; // the rest of the program uses tracked
  umem::Buffer table(tracked, 1000);
  umem::set_block_label(tracked, table.adr(), "table");
  { umem::Buffer freed(tracked, 24); } // ends here

  tracked.for_each([](umemTrackBlock const &block) {
    std::printf("block %d: %zu bytes of %s\n", static_cast<int>(block.number), block.nbytes,
                umem::find(block.adr)->block_label.c_str());
  });
}
