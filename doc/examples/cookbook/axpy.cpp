/* Compute z = a x + y in one pass over memory */
#include <iostream>
#include <umem.hpp>
#include <umem/ledger.hpp>
#include <umem/reduce.hpp>

int main() {
  umem::Array<double, 1> x({1000}, umem::File::scratch()), y({1000}), z({1000});
  double const a = 2;
  umem::iota(x, 0);
  umem::fill(y, 1);
  x.release_host(); /* now x is in the file alone */

  umem::Ledger ledger;
  umem::for_each([=](double &to, double from, double add) { to = a * from + add; }, z, x, y);

  std::cout << "sum " << umem::sum(z) << ", the bytes that moved are those of x:";
  for (auto const &record : umem::Ledger::read()) std::cout << ' ' << record.bytes;
  std::cout << '\n';
}
