/* Compare arrays with a tolerance, and say where they differ */
#include <iostream>
#include <umem.hpp>
#include <umem/array_of.hpp>
#include <umem/compare.hpp>

int main() {
  auto expected = umem::array_of({{1., 2.}, {3., 4.}});
  auto found = umem::array_of({{1.f, 2.f}, {3.f, 4.00001f}}, umem::File::scratch());
  std::cout << std::boolalpha << umem::all_close(umem::on_host, found, expected) << '\n';
  std::cout << umem::difference(found, expected, umem::Tolerance{1e-7, 0}) << '\n';
}
