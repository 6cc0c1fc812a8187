/* Compute dot products and norms. */
#include <complex>
#include <iostream>
#include <umem.hpp>
#include <umem/reductions.hpp>

int main() {
  auto x = umem::Array<double, 1>::full({4}, 3.0);
  auto y = umem::Array<double, 1>::full({4}, 0.5);
  std::cout << umem::dot(x, y) << ", norms " << umem::norm(x) << " and " << umem::norm(y) << '\n';
  auto z = umem::Array<std::complex<double>, 1>::full({2}, {1, 2});
  std::cout << umem::dot(z, z) << ", conjugated " << umem::vdot(z, z) << '\n';
}
