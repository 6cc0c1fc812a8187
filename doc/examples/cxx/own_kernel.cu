/* Your own kernel takes a view. */
#include <cstdio>
#include <umem.hpp>

/* [kernel] */
__global__ void scale(umem::View<double, 1> x, double factor) {
  umem::index_t i = blockIdx.x * static_cast<umem::index_t>(blockDim.x) + threadIdx.x;
  if (i < x.size()) x(i) *= factor;
}

static void twice(umem::Array<double, 1> &array) {
  auto x = array.device(umem::write); /* the elements are on the GPU now */
  scale<<<static_cast<unsigned>((x.size() + 255) / 256), 256>>>(*x, 2);
  if (cudaGetLastError() != cudaSuccess) throw umem::runtime_error("scale is not launched");
}
/* [/kernel] */

int main() {
  auto array = umem::Array<double, 1>::full({1000}, 4.5, umem::Cuda());
  twice(array);
  std::printf("%g\n", array.get(999));
}
