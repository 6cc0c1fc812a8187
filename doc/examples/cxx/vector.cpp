/* Work arrays and single values on any context. */
#include <cstdio>
#include <numeric>
#include <vector>
#include <umem.hpp>

static double run(umem::Context const &place) {
  /* [vector] */
  umem::Vector<double> work(place, 1000); /* not initialised */
  work.copy_from(std::vector<double>(1000, 0.5));
  work.set(999, 2.5);

  std::vector<double> back = work.to_vector();
  /* [/vector] */

  /* [scalar] */
  umem::Scalar<double> sum(place, 0.0);
  sum.set_value(std::accumulate(back.begin(), back.end(), 0.0));
  return sum.value();
  /* [/scalar] */
}

int main() {
  std::printf("%g %g\n", run(umem::Host()), run(umem::File::scratch()));

  /* [view] */
  umem::Vector<int> numbers = umem::Vector<int>::zeroed(umem::Host(), 4);
  for (int &number : numbers) number = 7; /* where the CPU has access */
  umem::View<int, 1> view = numbers.view();
  std::printf("%d\n", view(3));
  /* [/view] */
}
