/* Use a .npy file in place, or load it into a part of an array. */
#include <iostream>
#include <umem.hpp>
#include <umem/array_of.hpp>
#include <umem/npy.hpp>
#include <umem/print.hpp>

int main() {
  umem::save_npy("rows.npy", umem::array_of({{1.0, 2.0}, {3.0, 4.0}}));
  umem::map_npy<double, 2>("rows.npy").host(umem::write)(1, 0) = 7; /* changes the file */
  auto u = umem::Array<double, 2>::zeros({3, 2});
  umem::load_npy_into("rows.npy", u.part().slice(0, 1, 3));
  std::cout << u << '\n';
}
