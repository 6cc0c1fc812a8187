/* A stencil that runs wherever its arrays are. */
#include <umem.hpp>

#include <cstdio>

/* [functor] */
struct Smooth {
  umem::View<double const, 1> u; /* the elements that the functor reads */
  UMEM_FUNCTION void operator()(double &value, umem::index i) const {
    value = 0.5 * (u(i - 1) + u(i + 1));
  }
};
/* [/functor] */

/* [step] */
void step(umem::Array<double, 1> const &u, umem::Array<double, 1> &next) {
  auto from = umem::guard_at_home(u, umem::read);
  umem::for_each_indexed(next, umem::interior(next), Smooth{*from});
}
/* [/step] */

int main() {
  for (umem::Context const &place :
       {umem::Context(umem::Host()), umem::Context(umem::File::scratch())}) {
    umem::Array<double, 1> u({5}, place), next({5}, place);
    umem::iota(u, 0);
    u.set(10, 2); /* value first */
    umem::fill(next, 0);
    step(u, next);
    std::printf("%s: %g %g %g\n", place.name(), next.get(1), next.get(2), next.get(3));
  }
  return 0;
}
