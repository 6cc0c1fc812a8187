// refused: the bytes of a file may be no bool: map unsigned char, or load the file
#include <umem/npy.hpp>

#ifdef REFUSED
using T = bool const;
#else
using T = unsigned char const;
#endif
void use() { auto array = umem::map_npy<T, 1>("file.npy"); }
