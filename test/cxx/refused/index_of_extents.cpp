// refused: for_each_indexed: f takes a reference to an element of each operand.*and then one index per dimension
#include <umem/array.hpp>
#include <umem/for_each.hpp>

void use(umem::Array<double, 2> &a) {
#ifdef REFUSED
  umem::for_each_indexed(a, [](double &x, umem::Extents<2> at) { x = double(at[0]); });
#else
  umem::for_each_indexed(a, [](double &x, umem::index_t i, umem::index_t) { x = double(i); });
#endif
}
