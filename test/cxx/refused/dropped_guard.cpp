// refused: nodiscard
#include <umem/array.hpp>

inline void drop(umem::Array<double, 1> &u) {
  auto guard = u.host(umem::write);
#ifdef REFUSED
  u.host(umem::write); /* ends at once: who wants to wait for the elements copies or synchronizes */
#endif
}
