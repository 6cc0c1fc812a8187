// refused: read-only|not assignable|const-qualified
#include <umem/view.hpp>

#ifdef REFUSED
void write(umem::View<double const, 1> view) { view(0) = 1; }
#else
void write(umem::View<double, 1> view) { view(0) = 1; }
#endif
