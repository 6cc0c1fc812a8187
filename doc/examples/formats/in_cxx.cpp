#include <cstdio>
#include <iostream>
#include <umem.hpp>
#include <umem/formats.hpp>

int main() {
  // [save]
  auto made = umem::Array<float, 2>::full({4, 3}, 1.5f);
  auto bias = umem::Array<double, 1>::zeros({5});
  umem::save_archive("model.safetensors",
                     {{"embed.weight", umem::c_array(made)}, {"head.bias", umem::c_array(bias)}});
  // [/save]

  // [get]
  umem::Archive const model("model.safetensors");
  for (std::string const &name : model.names())
    std::cout << name << ": " << model.info(name).nbytes << " bytes\n";

  auto const table = model.get<float, 2>("embed.weight");  // in the mapped file
  auto const there = model.load<float, 2>("embed.weight"); // a copy; umem::Cuda(): on a GPU
  umem::Host const ram;
  auto const all = model.load(model.names(), ram); // all, in one call
  // [/get]
  std::cout << table.get(1, 0) << ", " << there.size() << " elements, " << all.size()
            << " arrays\n";
  std::remove("model.safetensors");
}
