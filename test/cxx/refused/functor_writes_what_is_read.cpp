// refused: elements that are only read are const
#include <umem/array.hpp>
#include <umem/for_each.hpp>

void use(umem::Array<double, 1> &to, umem::Array<double, 1> &from) {
  auto const exchange = [](double &x, double &y) { y = x; };
#ifdef REFUSED
  umem::for_each(exchange, to, umem::read(from));
#else
  umem::for_each(exchange, to, umem::write(from));
#endif
}
