/* Arrays of C++ as DLPack tensors, and tensors as arrays. */
#include <cstdio>
#include <umem.hpp>
#include <umem/dlpack.hpp>

int main() {
  /* [export] */
  auto u = umem::Array<double, 2>::full({2, 3}, 1.5);
  umem::DLPackTensor tensor = umem::to_dlpack(u, umem::write); // the elements of u, no copy
  umemDLTensor const &dl = tensor.get()->dl_tensor;
  static_cast<double *>(dl.data)[0] = 4; // stands for a consumer
  /* [/export] */
  std::printf("%d dimensions\n", static_cast<int>(dl.ndim));

  /* [import] */
  auto v = umem::from_dlpack<double, 2>(umem::Host(), std::move(tensor));
  std::printf("%g %g\n", v.get(0, 0), v.get(1, 2));
  v = {}; // calls the deleter: now u may be used again
  std::printf("%g\n", u.get(0, 0));
  /* [/import] */
}
