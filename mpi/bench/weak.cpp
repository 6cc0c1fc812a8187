/* weak.cpp - weak scaling of the Laplace equation: each rank has as many points, however many ranks
 * there are.
 *
 *     mpirun -n 2 weak [ROWS]
 *
 * Writes JSON to stdout: microseconds of a step of ROWS x 1024 points for each rank, of its
 * exchange of ghost cells, and of its reduction. */
#include "jacobi.hpp"

#include <umem/mpi_blocks.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

using Clock = std::chrono::steady_clock;

/* The middle one of some calls, in microseconds. */
template <class F> static double middle(F const &f) {
  std::vector<double> times;
  for (int call = 0; call < 51; call++) {
    auto const start = Clock::now();
    f();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count() * 1e6);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  try {
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    umem::index_t const rows = argc > 1 ? std::atol(argv[1]) : 1024, columns = 1024;
    umem::Decomposition<2> const grid({rows * ranks, columns}, {ranks, 1});
    umem::mpi::Blocks<double, 2> u(MPI_COMM_WORLD, grid, {{1, 1}}),
        next(MPI_COMM_WORLD, grid, {{1, 1}});
    umem::fill(u.array(), 1.0);
    umem::fill(next.array(), 1.0);
    auto const range = u.own({{1, 1}, {rows * ranks - 1, columns - 1}});
    double const exchange = middle([&] { u.exchange(); });
    double const reduction = middle([&] { u.reduce(1.0, umem::maximum()); });
    double const step = middle([&] {
      u.exchange();
      u.reduce(jacobi_step(u.array(), next.array(), range), umem::maximum());
      std::swap(u, next);
    });
    if (u.rank() == 0)
      std::printf(
          "{\"ranks\": %d, \"step_us\": %.1f, \"exchange_us\": %.1f, \"reduction_us\": %.1f}\n",
          ranks, step, exchange, reduction);
  } catch (umem::error const &error) {
    std::fprintf(stderr, "weak: %s\n", error.message());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
