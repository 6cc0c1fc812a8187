// refused: passing .const|discards qualifiers|not marked const|no matching
#include <umem/array.hpp>

void use(umem::Array<double, 1> const &array) {
#ifdef REFUSED
  array.host(umem::write);
#else
  static_cast<void>(array.host(umem::read));
#endif
}
