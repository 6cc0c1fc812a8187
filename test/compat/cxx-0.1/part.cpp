/* Rows, columns and steps of arrays in different places. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  /* [parts] */
  auto u = umem::Array<int, 2>::full({3, 4}, 1, umem::File::scratch());
  auto v = umem::Array<int, 2>::zeros({4, 3});
  umem::copy(u.part().select(1, 3), v.part().select(0, 0)); /* a column to a row */
  umem::copy(u.part().slice(1, 0, 4, 3).transpose(), v.part().slice(0, 2, 4)); /* every third */
  std::cout << v << '\n';
  /* [/parts] */

  /* [memory] */
  int const numbers[] = {7, 8, 9};
  umem::View<int const, 1> view(numbers, {3});
  umem::copy(umem::part(view), v.part().select(0, 1));
  std::cout << v.get(1, 2) << '\n';
  /* [/memory] */
}
