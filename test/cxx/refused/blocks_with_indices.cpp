// refused: for_each of blocks: f takes an element; for_each_indexed gives it the indices
#include <umem/array.hpp>
#include <umem/blocks.hpp>

void use(umem::Array<double, 1> &a) {
  auto const set = [](double &x, umem::index_t i) { x = double(i); };
#ifdef REFUSED
  umem::for_each(umem::blocks(a, umem::write, umem::on_host, {}), set);
#else
  umem::for_each_indexed(umem::blocks(a, umem::write, umem::on_host, {}), set);
#endif
}
