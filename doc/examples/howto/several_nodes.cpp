/* The heat in a rod, whose cells are divided over all ranks: a step needs the cells of both neighbours. */
#include <cstdio>
#include <umem/mpi_blocks.hpp>
#include <utility>

using Rod = umem::mpi::Blocks<double, 1>;

static void step(Rod &rod, Rod &next) {
  rod.exchange(); /* the ghost cells -1 and n have the neighbours' cells */
  umem::Range<1> const inner = rod.own({{1}, {rod.extents()[0] - 1}});
  auto const old = rod.array().host(umem::read);
  auto cells = next.array().host(umem::write);
  for (umem::index_t i = inner.begin[0]; i < inner.end[0]; i++)
    cells(i) = old(i) / 2 + (old(i - 1) + old(i + 1)) / 4;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  try {
    Rod rod(MPI_COMM_WORLD, {1000}, {{1}}), next(MPI_COMM_WORLD, {1000}, {{1}});
    umem::fill(rod.array(), 0.0);
    umem::fill(next.array(), 0.0);
    umem::Range<1> const hot = rod.own({{450}, {550}}); /* of this rank; may be empty */
    for (umem::index_t i = hot.begin[0]; i < hot.end[0]; i++)
      rod.array().host(umem::write)(i) = 100;
    for (int n = 0; n < 1000; n++, std::swap(rod, next)) step(rod, next);
    double const heat = rod.sum(), most = rod.max();
    if (rod.rank() == 0)
      std::printf("%d ranks: heat %.0f, at most %.2f\n", rod.ranks(), heat, most);
    if (argc > 1) rod.save_npy(argv[1]); /* one file of all ranks */
  } catch (umem::error const &error) {
    std::fprintf(stderr, "%s\n", error.message());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
