/* Copies a file of NumPy to a GPU, and one element back. On a machine without a GPU, to RAM. */
#include <cstdio>
#include <umem.hpp>
#include <umem/npy.hpp>
#include <umem/scalar.hpp>

/* The GPU, or RAM on a machine without one. */
static umem::Context gpu() {
  try {
    return umem::Cuda(0);
  } catch (umem::not_supported_error const &error) {
    std::fprintf(stderr, "no GPU: %s\n", error.message());
    return umem::Host();
  }
}

int main() {
  umem::save_npy("u.npy", umem::Array<float, 2>::full({300, 200}, 0.5f));
  auto there = umem::load_npy<float, 2>("u.npy", gpu());
  std::printf("%td numbers, the last is %g\n", there.size(), there.get({299, 199}));
}
