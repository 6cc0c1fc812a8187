/* laplace.cpp - examples/laplace.cpp on several ranks: the Laplace equation on the unit square by
 * point-Jacobi, u(1, y) = sin(pi y), 0 on the other sides, until no point changes by 1e-5.
 *
 *     mpirun -n 4 laplace [NX [FILE.npy]]
 *
 * Prints the steps that NX points in each direction take (51 of them: 2097), and how long; any
 * number of ranks gives the same bits. With a file, each rank writes its part of the result. */
#include "jacobi.hpp"

#include <umem/mpi_blocks.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

using Grid = umem::mpi::Blocks<double, 2>;

/* The values on the sides, and 0 inside. */
static void set_sides(Grid &u) {
  double const pi = 3.14159265358979323846;
  umem::index_t const nx = u.extents()[0];
  double const step = 1.0 / static_cast<double>(nx - 1);
  umem::fill(u.array(), 0.0);
  umem::Range<2> const last = u.own({{nx - 1, 0}, {nx, nx}});
  umem::index_t const first = u.box().begin[1];
  auto view = u.array().host(umem::write);
  for (umem::index_t i = last.begin[0]; i < last.end[0]; i++)
    for (umem::index_t j = last.begin[1]; j < last.end[1]; j++)
      view(i, j) = std::sin(pi * static_cast<double>(first + j) * step);
}

static void solve(umem::index_t nx, char const *path) {
  Grid u(MPI_COMM_WORLD, {nx, nx}, {{1, 1}}), next(MPI_COMM_WORLD, {nx, nx}, {{1, 1}});
  set_sides(u);
  set_sides(next);
  umem::Range<2> const interior = u.own({{1, 1}, {nx - 1, nx - 1}});
  auto const start = std::chrono::steady_clock::now();
  int steps = 0;
  double change;
  do {
    u.exchange();
    change = u.reduce(jacobi_step(u.array(), next.array(), interior), umem::maximum());
    std::swap(u, next);
    steps++;
  } while (change >= 1e-5);
  std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - start;
  double const sum = u.sum();
  if (u.rank() == 0)
    std::printf("%d ranks: %d steps at nx=%td, the sum is %.9f; %.3f s\n", u.ranks(), steps, nx,
                sum, seconds.count());
  if (path) u.save_npy(path);
}

int main(int argc, char **argv) {
  int status = 0;
  MPI_Init(&argc, &argv);
  try {
    solve(argc > 1 ? std::atol(argv[1]) : 51, argc > 2 ? argv[2] : nullptr);
  } catch (umem::error const &error) {
    std::fprintf(stderr, "laplace: %s\n", error.message());
    status = 1;
    MPI_Abort(MPI_COMM_WORLD, status);
  }
  MPI_Finalize();
  return status;
}
