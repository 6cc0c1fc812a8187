// refused at once: for a text umem::open\(text\)
#include <umem.hpp>
#include <umem/open.hpp>

umem::Array<double, 2> use() {
#ifdef REFUSED
  return umem::Array<double, 2>({3, 4}, "cuda:0");
#else
  return umem::Array<double, 2>({3, 4}, umem::open("cuda:0"));
#endif
}
