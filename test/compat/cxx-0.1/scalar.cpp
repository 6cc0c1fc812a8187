/* A value that loops read, on the CPU or on a GPU. */
#include <cstdio>
#include <umem.hpp>

/* [functor] */
struct Scale {
  umem::View<double const, 0> factor;
  UMEM_FUNCTION void operator()(double &x) const { x *= factor(); }
};
/* [/functor] */

int main() {
  /* [scalar] */
  umem::Context place = umem::Host(); /* or umem::Cuda(), umem::CudaAsync(), ... */
  auto x = umem::Array<double, 1>::full({4}, 1.5, place);
  umem::Scalar<double> factor(place, 2);
  umem::for_each(x, Scale{factor.view()});

  factor.set_value(10);
  umem::for_each(x, Scale{factor.view()});
  std::printf("%g %g\n", x.get(3), factor.value());
  /* [/scalar] */
}
