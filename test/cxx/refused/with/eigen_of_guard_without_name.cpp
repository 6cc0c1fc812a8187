// refused: the guard would end before the map
#include <umem/array.hpp>
#include <umem/with/eigen.hpp>

void use(umem::Array<double, 2> &array) {
#ifdef REFUSED
  auto matrix = umem::to_eigen(array.host(umem::write));
#else
  auto guard = array.host(umem::write);
  auto matrix = umem::to_eigen(guard);
#endif
  matrix.setZero();
}
