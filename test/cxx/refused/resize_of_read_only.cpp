// refused: Array::resize: a read-only array keeps its elements
#include <umem/array.hpp>

#ifdef REFUSED
using Element = double const;
#else
using Element = double;
#endif
void to_three(umem::Array<Element, 1> &array) { array.resize({3}); }
