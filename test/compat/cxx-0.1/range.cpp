/* Loops over some of the elements. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

/* [functor] */
struct Add {
  int value;
  UMEM_FUNCTION void operator()(int &x) const { x += value; }
};
/* [/functor] */

int main() {
  /* [range] */
  auto u = umem::Array<int, 2>::zeros({4, 6});
  umem::for_each(u, umem::interior(u), Add{1});   /* all elements except the edges */
  umem::for_each(u, {{1, 2}, {3, 4}}, Add{1});    /* from (1, 2) to before (3, 4) */
  umem::for_each(u, umem::Extents{1, 3}, Add{9}); /* from (0, 0) to before (1, 3) */
  std::cout << u << '\n';
  /* [/range] */
}
