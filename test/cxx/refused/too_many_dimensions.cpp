// refused: at most 8 dimensions
#include <umem/dynamic_view.hpp>

#ifdef REFUSED
umem::DynamicView<double> any(umem::View<double, 9> view) { return view; }
#else
umem::DynamicView<double> any(umem::View<double, 8> view) { return view; }
#endif
