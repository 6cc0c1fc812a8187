// refused: views have no home: name the place of the loop before them
#include <umem/for_each.hpp>

struct Twice {
  void operator()(int &x) const { x *= 2; }
};
void use(umem::View<int, 1> const &view) {
#ifdef REFUSED
  umem::for_each(view, Twice());
#else
  umem::for_each(umem::on_host, view, Twice());
#endif
}
