/* Loads a part of a file to a GPU, or to RAM where there is none, and names the way of the bytes. */
#include <cstdio>
#include <fstream>
#include <umem.hpp>
#include <umem/ledger.hpp>

static umem::Context gpu() {
  try {
    return umem::Cuda(0);
  } catch (umem::not_supported_error const &) {
    return umem::Host();
  }
}

int main() {
  std::ofstream("data.bin") << "umemdata";
  umem::File file("data.bin", "r");
  umem::Buffer bytes(file, 8), there(gpu(), 4);
  umemRoute const route =
      umem::copy_with_route(file, bytes.adr() + 4, there.context(), there.adr(), 4);
  std::fprintf(stderr, "%s\n", umem::text(route).c_str());
  std::printf("4 bytes are loaded\n");
}
