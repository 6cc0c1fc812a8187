// One tensor of a safetensors file on a GPU. On a machine without a GPU, in RAM.
#include <cstdio>
#include <iostream>
#include <umem.hpp>
#include <umem/formats.hpp>

static umem::Context open_gpu() {
  try {
    return umem::Cuda(0);
  } catch (umem::not_supported_error const &error) {
    std::cerr << "no GPU: " << error.what() << '\n';
    return umem::Host();
  }
}

int main() {
  // A small file, which stands for one of 50 GB.
  auto bias = umem::Array<float, 1>::zeros({4});
  auto made = umem::Array<float, 2>::full({4, 3}, 7.0f);
  umem::save_archive("model.safetensors", {{"layer.0.bias", umem::c_array(bias)},
                                           {"layer.0.weight", umem::c_array(made)}});

  umem::Archive const model("model.safetensors");                         // reads the header
  auto const weight = model.load<float, 2>("layer.0.weight", open_gpu()); // reads these bytes
  std::cout << weight.size() << " elements\n";
  std::remove("model.safetensors");
}
