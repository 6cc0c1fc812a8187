// refused: loops take functors by value and copy them
#include <umem/array.hpp>
#include <umem/for_each.hpp>

#include <memory>

struct Add {
#ifdef REFUSED
  std::unique_ptr<double> step;
#else
  double const *step;
#endif
  void operator()(double &x) const { x += *step; }
};
void use(umem::Array<double, 1> &array) { umem::for_each(umem::on_host, array, Add{nullptr}); }
