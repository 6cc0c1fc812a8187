/* Guards: access to the elements of an array on one side. */
#include <cstdio>
#include <umem.hpp>

/* [view] */
/* Works on a view of any memory. */
static double total(umem::View<double const, 2> x) {
  double sum = 0;
  for (umem::index i = 0; i < x.extent(0); i++)
    for (umem::index j = 0; j < x.extent(1); j++) sum += x(i, j);
  return sum;
}
/* [/view] */

int main() {
  /* [guards] */
  umem::Array<double, 2> u({3, 4}, umem::File::scratch());
  {
    auto x = u.host(umem::discard); /* the program will write every element */
    for (umem::index i = 0; i < x.size(); i++) x[i] = 0.5;
  } /* here the guard ends */

  std::printf("%g\n", total(u.host(umem::read))); /* this guard ends with the statement */
  /* [/guards] */

  /* [refused] */
  auto x = u.host(umem::write);
  x(0, 0) += 1;
  try {
    u.sync_to_device();
  } catch (umem::locked_error const &failure) {
    std::printf("%s\n", failure.message());
  }
  x.release(); /* do not use x any more */
  u.sync_to_device();
  /* [/refused] */
}
