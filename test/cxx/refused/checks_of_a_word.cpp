// refused: ON
#ifdef REFUSED
#define UMEM_CHECKS ON
#endif
#include <umem/config.hpp>
