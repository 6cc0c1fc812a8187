// refused: the elements of a read-only array cannot be written
#include <umem/array.hpp>
#include <umem/for_each.hpp>

#ifdef REFUSED
using Array = umem::Array<double, 1> const;
#else
using Array = umem::Array<double, 1>;
#endif
void use(Array &array) {
  umem::for_each([](auto &x) { x = 1; }, umem::discard(array));
}
