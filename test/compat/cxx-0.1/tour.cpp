/* A context, a buffer, an array, a kernel and a file. */
#include <cstdio>
#include <iostream>
#include <umem.hpp>
#include <umem/npy.hpp>
#include <umem/print.hpp>
#include <umem/reduce.hpp>

/* [functor] */
struct AddIndices {
  UMEM_FUNCTION void operator()(double &x, umem::index i, umem::index j) const {
    x += static_cast<double>(10 * i + j);
  }
};
/* [/functor] */

int main() {
  /* [context] */
  umem::Host ram;
  umem::File file("tour.bin", "w+");
  /* [/context] */

  /* [buffer] */
  umem::Buffer buffer(file, 800); /* 800 bytes of the file */
  double const numbers[] = {1, 2, 3};
  buffer.copy_from(numbers, sizeof numbers);

  double second = 0;
  buffer.copy_to(&second, 8, 8); /* 8 bytes from offset 8 on */
  std::printf("%g\n", second);
  /* [/buffer] */

  /* [array] */
  umem::Array<double, 2> u({3, 4}, ram);
  {
    auto x = u.host(umem::discard); /* a guard: it ends with this block */
    for (umem::index i = 0; i < u.extent(0); i++)
      for (umem::index j = 0; j < u.extent(1); j++) x(i, j) = 0.5;
  }
  std::cout << u << '\n';
  /* [/array] */

  /* [kernel] */
  umem::for_each_indexed(u, AddIndices());
  std::cout << u << '\n' << umem::sum(u) << '\n';
  /* [/kernel] */

  /* [file] */
  umem::save_npy("u.npy", u);
  auto v = umem::load_npy<double, 2>("u.npy", file);
  std::cout << v.context().name() << ": " << v.get(2, 3) << '\n';
  /* [/file] */
}
