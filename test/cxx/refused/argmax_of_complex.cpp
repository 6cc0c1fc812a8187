// refused: complex numbers have no smallest and largest one
#include <umem/reductions.hpp>

#include <complex>

#ifdef REFUSED
using Element = std::complex<double>;
#else
using Element = double;
#endif
void use(umem::View<Element, 1> const &view) { umem::argmax(umem::on_host, view); }
