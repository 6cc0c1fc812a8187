// refused: no matching
#include <umem/extents.hpp>

#ifdef REFUSED
umem::Extents<2> extents = umem::Extents<2>(3);
#else
umem::Extents<2> extents = umem::Extents<2>(3, 4);
#endif
