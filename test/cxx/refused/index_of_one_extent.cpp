// refused: f takes a number that is no integer where it gets an index
#include <umem/array.hpp>
#include <umem/for_each.hpp>

void use(umem::Array<double, 1> &a) {
#ifdef REFUSED
  umem::for_each_indexed(a, [](double &x, umem::Extents<1> at) { x = double(at[0]); });
#else
  umem::for_each_indexed(a, [](double &x, auto i) { x = double(i); });
#endif
}
