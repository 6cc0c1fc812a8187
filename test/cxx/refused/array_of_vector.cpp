// refused at once: of a std::vector they are umem::Shape
#include <umem.hpp>

#include <vector>

umem::Array<double, 2> use(std::vector<umem::index_t> const &v) {
#ifdef REFUSED
  return umem::Array<double, 2>(v);
#else
  return umem::Array<double, 2>(umem::Shape(v.data(), v.data() + v.size()).to<2>());
#endif
}
