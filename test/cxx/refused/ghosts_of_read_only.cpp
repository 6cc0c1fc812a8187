// refused: the elements are read-only
#include <umem/fill_ghosts.hpp>

#ifdef REFUSED
using Element = double const;
#else
using Element = double;
#endif
void use(umem::View<Element, 1> const &view) {
  umem::fill_ghosts(umem::on_host, view, umem::periodic);
}
