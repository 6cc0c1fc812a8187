// refused at once: write for_each\(a, f\) or for_each\(f, a, b, c\).*operands are
#include <umem.hpp>

#include <vector>

void use(std::vector<double> &v) {
#ifdef REFUSED
  umem::for_each(v, [](double &x) { x = 1; });
#else
  umem::View<double, 1> const view(v.data(), v.size());
  umem::for_each(umem::on_host, view, [](double &x) { x = 1; });
#endif
}
