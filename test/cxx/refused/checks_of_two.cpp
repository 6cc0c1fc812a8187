// refused: UMEM_CHECKS is 1, for bounds checks, or 0
#ifdef REFUSED
#define UMEM_CHECKS 2
#endif
#include <umem/config.hpp>
