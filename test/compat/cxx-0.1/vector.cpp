/* Temporary arrays on any context. */
#include <cstdio>
#include <numeric>
#include <vector>
#include <umem.hpp>

/* [vector] */
static double run(umem::Context const &place) {
  umem::Vector<double> work(place, 1000); /* not initialised */
  work.copy_from(std::vector<double>(1000, 0.5));
  work.set(999, 2.5);

  std::vector<double> back = work.to_vector();
  return std::accumulate(back.begin(), back.end(), 0.0);
}
/* [/vector] */

int main() {
  std::printf("%g %g\n", run(umem::Host()), run(umem::File::scratch()));

  /* [view] */
  umem::Vector<int> numbers = umem::Vector<int>::zeroed(umem::Host(), 4);
  for (int &number : numbers) number = 7; /* if the CPU has access */
  umem::View<int, 1> view = numbers.view();
  std::printf("%d\n", view(3));
  /* [/view] */
}
