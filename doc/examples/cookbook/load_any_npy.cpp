/* Load a .npy file of any type and rank. */
#include <iostream>
#include <umem.hpp>
#include <umem/array_of.hpp>
#include <umem/npy_c_array.hpp>

int main() {
  umem::save_npy("any.npy", umem::array_of({{1, 2, 3}, {4, 5, 6}}));
  umem::CArray u = umem::load_npy("any.npy");
  umem::visit(u, umem::read, [](auto const &view) {
    std::cout << "rank " << view.rank() << ", " << view.size() << " elements, "
              << sizeof(view.data[0]) << " bytes each\n";
  });
  umem::Array<double, 2> doubles({2, 3});
  umem::load_npy_converted("any.npy", doubles);
  std::cout << doubles.get(1, 2) / 4 << '\n';
}
