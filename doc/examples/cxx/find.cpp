/* Finds the block of a pointer. */
#include <iostream>
#include <umem.hpp>
#include <umem/adaptors.hpp>

int main() {
  umem::Track track((umem::Host()));
  track.set_label("ocean");
  umem::Buffer salinity(track, 800);

  /* [find] */
  void *pointer = reinterpret_cast<char *>(salinity.adr()) + 272;
  if (auto found = umem::find(pointer))
    std::cout << found->offset << " bytes into a block of " << found->size << " bytes of the "
              << found->name << " \"" << found->label << "\"\n";
  if (!umem::find(&pointer)) std::cout << "not a block of umem\n";
  /* [/find] */

  /* [label] */
  umem::set_block_label(track, salinity.adr(), "salinity");
  std::cout << umem::find(pointer)->block_label << '\n';
  /* [/label] */
}
