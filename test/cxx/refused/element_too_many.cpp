// refused: for_each_indexed: f takes a reference to an element of each operand
#include <umem/array.hpp>
#include <umem/for_each.hpp>

void use(umem::Array<double, 1> &a) {
#ifdef REFUSED
  umem::for_each_indexed(a, [](double &x, double const &y, umem::index_t i) { x = y + double(i); });
#else
  umem::for_each_indexed([](double &x, double y, umem::index_t i) { x = y + double(i); }, a, a);
#endif
}
