/* Arrays: sides, ghost cells, locks, parts, foreign memory. */
#include <cstdio>
#include <utility>
#include <vector>
#include <umem.hpp>

/* [sides] */
/* Doubles the elements of an array wherever it lives. */
static void twice(umem::Array<double, 2> &array) {
  auto x = array.host(umem::write); /* brings them to the CPU, where they are not */
  for (umem::index i = 0; i < x.extent(0); i++)
    for (umem::index j = 0; j < x.extent(1); j++) x(i, j) *= 2;
} /* the CPU's side is current; whoever asks for the other one gets it brought up to date */
/* [/sides] */

int main() {
  auto u = umem::Array<double, 2>::full({3, 4}, 1.5, umem::File::scratch());
  twice(u);
  /* [element] */
  std::printf("%g %d\n", u.get(2, 3), u.current() == umem::Side::host);
  u.sync_to_device();
  std::printf("%d\n", u.current() == umem::Side::both);
  /* [/element] */

  /* [ghosts] */
  umem::Array<double, 2>::Options options;
  options.ghosts = {1, 1};
  auto inner = umem::Array<double, 2>::zeros({3, 4}, umem::Host(), options);
  inner.set(5, -1, 0); /* a ghost cell */
  std::printf("%td elements in %zu bytes\n", inner.size(), inner.nbytes());
  /* [/ghosts] */

  /* [parts] */
  umem::copy(u.part().select(0, 2), inner.part().select(0, -1)); /* a row, into ghost cells */
  std::printf("%g\n", inner.get(-1, 0));
  /* [/parts] */

  /* [lock] */
  {
    auto mine = u.lock();
    mine.set(7, 0, 0);
    try {
      u.get(0, 0);
    } catch (umem::locked_error const &) {
      std::printf("locked\n");
    }
  }
  std::printf("%g\n", u.get(0, 0));
  /* [/lock] */

  /* [copies] */
  umem::Array<double, 2> in_ram(u, umem::Host());            /* a deep copy in another place */
  umem::Array<double const, 2> finished = std::move(in_ram); /* can only be read */
  std::printf("%g\n", finished.get(0, 0));
  /* [/copies] */

  /* [wrap] */
  std::vector<double> memory(6, 0.25);
  auto wrapped = umem::Array<double, 2>::wrap_unowned(memory.data(), {2, 3});
  wrapped.set(1, 1, 2);
  std::printf("%g\n", memory[5]);
  /* [/wrap] */
}
