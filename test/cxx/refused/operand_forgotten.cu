// refused: f takes a number that is no integer where it gets an index: is an operand missing
#include <umem/for_each.hpp>

struct Add {
  UMEM_FUNCTION void operator()(double &x, double y) const { x += y; }
};
void use(umem::View<double, 1> const &view) {
#ifdef REFUSED
  umem::for_each(umem::on_device(), view, Add());
#else
  umem::for_each(umem::on_device(), Add(), view, view);
#endif
}
