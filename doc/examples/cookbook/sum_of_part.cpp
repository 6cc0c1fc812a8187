/* Reduce a row, a column, a plane, or what a guard shows */
#include <iostream>
#include <umem.hpp>
#include <umem/reduce.hpp>

int main() {
  umem::Array<double, 3> u({2, 3, 4});
  umem::iota(u, 1);
  std::cout << "plane  " << umem::sum(u.part().select(0, 1)) << '\n';
  std::cout << "row    " << umem::max(u.part().select(0, 0).select(0, 2)) << '\n';
  std::cout << "column " << umem::min(u.part().select(2, 3).select(1, 0)) << '\n';
  auto const guard = u.host(umem::read);
  std::cout << "guard  " << umem::sum(guard) << '\n';
  std::cout << "view   " << umem::sum(umem::on_host, guard->slice(2, 0, 4, 2)) << '\n';
}
