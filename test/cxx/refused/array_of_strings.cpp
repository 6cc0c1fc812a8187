// refused: the elements must be trivially copyable
#include <umem/array.hpp>

#include <string>

#ifdef REFUSED
umem::Array<std::string, 1> array(3);
#else
umem::Array<char, 1> array(3);
#endif
