/* Arrays of C++ as columns of Arrow, and columns as arrays. */
#include <cstdio>
#include <umem.hpp>
#include <umem/arrow.hpp>

int main() {
  /* [columns] */
  auto u = umem::Array<double, 1>::full({3}, 1.5);
  umem::ArrowColumn column = umem::to_arrow(umem::c_array(u, umem::read)); // no copy
  std::printf("format %s\n", column.schema()->format);
  umem::CArray array = umem::from_arrow(umem::Host().c_context(), std::move(column));
  auto v = umem::to_array<double const, 1>(array, umem::Host()); // a column is read-only
  std::printf("%g\n", v.get(2));
  /* [/columns] */
}
