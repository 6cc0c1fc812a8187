// refused: nodiscard
#include <umem/array.hpp>

inline void drop(umem::Array<double, 1> &u) {
  auto lock = u.lock();
#ifdef REFUSED
  u.lock(); /* ends at once */
#endif
}
