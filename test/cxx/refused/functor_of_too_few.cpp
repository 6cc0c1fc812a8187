// refused: f takes a reference to an element of each operand, in their order
#include <umem/array.hpp>
#include <umem/for_each.hpp>

void use(umem::Array<double, 2> &to, umem::Array<double, 2> const &from) {
#ifdef REFUSED
  umem::for_each([](double &x) { x = 1; }, to, from);
#else
  umem::for_each([](double &x, double, umem::index_t, umem::index_t) { x = 1; }, to, from);
#endif
}
