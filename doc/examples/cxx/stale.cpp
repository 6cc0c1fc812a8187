/* A view that is used after its guard: what checks print. Compile it with -DUMEM_CHECKS=1. */
#include <umem.hpp>

int main() {
  /* [stale] */
  umem::Host grid;
  umem_set_label(grid.c_context(), "grid");
  umem::Array<double, 2> u({50, 40}, grid);
  umem::View<double, 2> x = *u.host(umem::discard); /* the guard ends with the statement */
  x(3, 4) = 1;                                      /* the bug: no guard lives */
  /* [/stale] */
}
