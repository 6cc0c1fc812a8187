// refused: the matrices must have the same type of elements
#include <umem/blas.hpp>

#ifdef REFUSED
using Other = float;
#else
using Other = double;
#endif
int rows(umem::View<double, 2> a, umem::View<Other const, 2> b) { return umem::to_gemm(a, b, a).m; }
