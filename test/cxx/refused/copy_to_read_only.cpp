// refused: the elements of the destination are read-only
#include <umem/part.hpp>

void use(umem::Part<int, 2> const &src, umem::Part<int const, 2> const &dst) {
#ifdef REFUSED
  copy(src, dst);
#else
  copy(dst, src);
#endif
}
