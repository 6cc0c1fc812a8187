// refused: the type of indices is a signed integer
#include <umem/for_each.hpp>

#ifdef REFUSED
using Index = unsigned;
#else
using Index = int;
#endif
void use(umem::View<double, 1> const &view) {
  umem::for_each_indexed<Index>(umem::on_host, view, [](double &x, Index i) { x = i; });
}
