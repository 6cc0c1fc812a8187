/* Eliminate a column: loops over rows of one array */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  double const numbers[] = {2, 4, 6, 1, 5, 9, 3, 3, 4};
  umem::Array<double, 2> a({3, 3}, umem::File::scratch());
  umem::copy(umem::View<double const, 2>(numbers, {3, 3}), a);

  for (umem::index_t i = 1; i < 3; i++) {
    double const factor = a.get(i, 0) / a.get(0, 0);
    umem::for_each([=](double &to, double pivot) { to -= factor * pivot; }, a.part().select(0, i),
                   a.part().select(0, 0));
  }
  std::cout << a << '\n';
}
