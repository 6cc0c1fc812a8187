// refused: passing .const|discards qualifiers|no viable overloaded|lvalue
#include <umem/array.hpp>

void use(umem::Array<double, 1> &array, umem::Array<double, 1> &other) {
#ifdef REFUSED
  array.part() = other.part();
#else
  copy(other.part(), array.part());
#endif
}
