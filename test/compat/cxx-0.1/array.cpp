/* Arrays: how they are made, ghost cells, copies, foreign memory. */
#include <cstdio>
#include <utility>
#include <vector>
#include <umem.hpp>

int main() {
  /* [make] */
  umem::Array<double, 2> u({3, 4}); /* in RAM, not initialised */
  auto v = umem::Array<double, 2>::zeros({3, 4}, umem::File::scratch());
  auto w = umem::Array<float, 1>::full({1000}, 1.5F, umem::MMap::scratch());
  /* [/make] */

  /* [element] */
  v.set(7, 2, 3);
  std::printf("%g %g\n", v.get(2, 3), static_cast<double>(w.get(999)));
  /* [/element] */

  /* [ghosts] */
  umem::Array<double, 2>::Options options;
  options.ghosts = {1, 1};
  auto inner = umem::Array<double, 2>::zeros({3, 4}, umem::Host(), options);
  inner.set(5, -1, 0); /* a ghost cell */
  std::printf("%td elements in %zu bytes\n", inner.size(), inner.nbytes());
  /* [/ghosts] */

  /* [copies] */
  u = v;     /* copies the elements into the memory of u */
  inner = v; /* copies the elements; the ghost cells of inner stay */
  umem::Array<double, 2> in_ram(v, umem::Host());            /* a deep copy in another place */
  umem::Array<double const, 2> finished = std::move(in_ram); /* read-only */
  std::printf("%g %g %g\n", u.get(2, 3), inner.get(-1, 0), finished.get(2, 3));
  /* [/copies] */

  /* [wrap] */
  std::vector<double> memory(6, 0.25);
  auto wrapped = umem::Array<double, 2>::wrap_unowned(memory.data(), {2, 3});
  wrapped.set(2, 1, 2);
  std::printf("%g\n", memory[5]);
  /* [/wrap] */
}
