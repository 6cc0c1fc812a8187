// refused: could not convert|no viable conversion|conversion from
#include <umem/view.hpp>

#ifdef REFUSED
umem::View<double, 1> write(umem::View<double const, 1> view) { return view; }
#else
umem::View<double const, 1> write(umem::View<double const, 1> view) { return view; }
#endif
