/* Arrays in .npy files, and printed to streams. */
#include <iostream>
#include <umem.hpp>
#include <umem/npy.hpp>
#include <umem/npy_c_array.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<float, 2> u({2, 3});
  {
    auto x = u.host(umem::discard);
    for (umem::index_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i) / 2;
  }
  /* [npy] */
  umem::save_npy("u.npy", u);
  auto v = umem::load_npy<float, 2>("u.npy", umem::File::scratch()); /* or any other context */
  std::cout << v << '\n';
  /* [/npy] */

  /* [refused] */
  try {
    umem::load_npy<double, 2>("u.npy");
  } catch (umem::type_error const &failure) {
    std::cout << failure.message() << '\n';
  }
  /* [/refused] */

  /* [into] */
  auto rows = umem::Array<float, 2>::zeros({4, 3});
  umem::load_npy_into("u.npy", rows.part().slice(0, 1, 3));
  std::cout << rows.get(2, 2) << '\n';
  /* [/into] */

  /* [map] */
  {
    auto m = umem::map_npy<float, 2>("u.npy");
    m.host(umem::write)(0, 0) = 9; /* changes the file */
    m.flush();                     /* makes that durable */
  }
  std::cout << umem::map_npy<float const, 2>("u.npy").get(0, 0) << '\n';
  /* [/map] */

  /* [any] */
  umem::CArray any = umem::load_npy("u.npy");
  umem::visit(any, umem::read, [](auto const &view) { std::cout << view.size() << '\n'; });
  umem::Array<double, 2> doubles({2, 3});
  umem::load_npy_converted("u.npy", doubles);
  std::cout << doubles << '\n';
  /* [/any] */

  /* [part] */
  umem::save_npy("column.npy", u.part().select(1, 2));
  std::cout << umem::load_npy<float, 1>("column.npy") << '\n';
  /* [/part] */

  /* [large] */
  std::cout << umem::Array<int, 2>::full({1000, 1000}, 7) << '\n';
  /* [/large] */
}
