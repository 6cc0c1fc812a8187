// refused: the elements of a read-only array cannot be written
#include <umem/c_array_numbers.hpp>

#ifdef REFUSED
using T = double const;
#else
using T = double;
#endif
void use(umem::Part<T, 1> const &part) { umem::random_uniform(part, 0, 1, 7); }
