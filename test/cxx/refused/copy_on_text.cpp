// refused at once: on another context, such as umem::open\(text\)
#include <umem.hpp>
#include <umem/open.hpp>

umem::Array<double, 1> use(umem::Array<double, 1> const &a) {
#ifdef REFUSED
  return umem::Array<double, 1>(a, "cuda:0");
#else
  return umem::Array<double, 1>(a, umem::open("cuda:0"));
#endif
}
