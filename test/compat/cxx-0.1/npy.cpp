/* Arrays in .npy files, and printed to streams. */
#include <iostream>
#include <umem.hpp>
#include <umem/npy.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<float, 2> u({2, 3});
  {
    auto x = u.host(umem::discard);
    for (umem::index i = 0; i < x.size(); i++) x[i] = static_cast<float>(i) / 2;
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

  /* [part] */
  umem::save_npy("column.npy", u.part().select(1, 2));
  std::cout << umem::load_npy<float, 1>("column.npy") << '\n';
  /* [/part] */

  /* [large] */
  std::cout << umem::Array<int, 2>::full({1000, 1000}, 7) << '\n';
  /* [/large] */
}
