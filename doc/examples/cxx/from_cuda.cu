/* Doubles numbers on a GPU, or in RAM if there is no GPU. */
#include <cstdio>
#include <umem.hpp>

static umem::Context open_place() {
  try {
    return umem::Cuda();
  } catch (umem::error const &failure) {
    std::fprintf(stderr, "in RAM: %s\n", failure.message());
    return umem::Host();
  }
}

struct Scale {
  double factor;
  UMEM_FUNCTION void operator()(double &x) const { x *= factor; }
};

int main() {
  umem::Array<double, 1> x({1000000}, open_place());
  {
    auto host = x.host(umem::discard);
    for (umem::index_t i = 0; i < host.size(); i++) host[i] = static_cast<double>(i);
  }

  umem::for_each(x, Scale{2});

  std::printf("%g\n", x.host(umem::read)(999999));
}
