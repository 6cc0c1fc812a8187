// refused at once: include.*umem.*print
#include <umem.hpp>

#include <iostream>

void use(umem::Array<double, 1> &a) {
#ifdef REFUSED
  std::cout << a;
#else
  std::cout << a.size();
#endif
}
