// refused: could not convert|no viable conversion|conversion from
#include <umem/view.hpp>

#ifdef REFUSED
void take(umem::View<double, 3>);
#else
void take(umem::View<double, 2>);
#endif
void give(umem::View<double, 2> view) { take(view); }
