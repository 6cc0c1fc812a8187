// refused: all operands of a loop have the same rank
#include <umem/array.hpp>
#include <umem/for_each.hpp>

#ifdef REFUSED
using Row = umem::Array<double, 1>;
#else
using Row = umem::Array<double, 2>;
#endif
void use(umem::Array<double, 2> &to, Row const &from) {
  umem::for_each([](double &x, double y) { x = y; }, to, from);
}
