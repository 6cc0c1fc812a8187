/* Loads a file into the memory of a GPU. On a machine without a GPU, into RAM. */
#include <cstdio>
#include <umem.hpp>
#include <umem/npy.hpp>

static umem::Context open_place() {
  try {
    return umem::Cuda();
  } catch (umem::not_supported_error const &) { /* its message() names what is missing */
    return umem::Host();
  }
}

int main() {
  umem::Array<float, 1> numbers({1000000}, umem::Host());
  umem::iota(numbers, 0);
  umem::save_npy("samples.npy", numbers);

  auto samples = umem::load_npy<float, 1>("samples.npy", open_place());
  std::printf("%td numbers, the last is %.0f\n", samples.size(), double(samples.get(999999)));
}
