/* Transposes a matrix on the GPU if there is one, and in RAM otherwise. */
#include <cstdio>
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

/* [place] */
/* No other function knows which place it is. */
static umem::Context open_place() {
  try {
    return umem::Cuda();
  } catch (umem::error const &failure) {
    std::fprintf(stderr, "in RAM: %s\n", failure.message());
    return umem::Host();
  }
}
/* [/place] */

/* [transpose] */
static umem::Array<double, 2> transposed(umem::Array<double, 2> const &a) {
  umem::Array<double, 2> b({a.extent(1), a.extent(0)}, a.context());
  umem::copy(a.part().transpose(), b.part());
  return b;
}
/* [/transpose] */

int main() {
  umem::Array<double, 2> a({2, 3}, open_place());
  {
    auto host = a.host(umem::discard);
    for (umem::index i = 0; i < host.size(); i++) host[i] = static_cast<double>(i + 1);
  }
  std::cout << transposed(a) << '\n';
}
