// refused: nodiscard
#include <umem/array.hpp>
#include <umem/place_guard.hpp>

#ifdef REFUSED
void use(umem::Array<double, 1> &array) { umem::guard_at(umem::on_host, array, umem::write); }
#else
void use(umem::Array<double, 1> &array) {
  auto guard = umem::guard_at(umem::on_host, array, umem::write);
}
#endif
