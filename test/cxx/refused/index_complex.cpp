// refused: f takes a number that is no integer where it gets an index: is an operand missing
#include <complex>
#include <umem/array.hpp>
#include <umem/for_each.hpp>

using Complex = std::complex<double>;

void use(umem::Array<Complex, 1> &a, umem::Array<Complex, 1> const &b) {
  auto const add = [](Complex &x, Complex y) { x += y; };
#ifdef REFUSED
  umem::for_each(a, add);
#else
  umem::for_each(add, a, b);
#endif
}
