// refused: copy: the elements have other types: umem::convert\(from, to\)
#include <umem/copy.hpp>
#include <umem/array.hpp>

void use(umem::Array<double, 1> const &from, umem::Array<float, 1> &to,
         umem::Array<double, 1> &same) {
#ifdef REFUSED
  umem::copy(from, to);
#else
  (void)to;
  umem::copy(from, same);
#endif
}
