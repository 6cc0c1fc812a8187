/* laplace.cpp - the Laplace equation on the unit square by point-Jacobi, as in "SimpleArray between
 * Python and C++" (Yung-Yu Chen, PyCon Taiwan 2023): u(1, y) = sin(pi y), 0 on the other sides,
 * until no point changes by 1e-5.
 *
 *     laplace [NX [LARGE]]
 *
 * Prints the steps that NX points in each direction take (51 of them: 2097), then how fast sweeps
 * over a grid of LARGE (2048) points in each are, which also find the largest change. Compiled by
 * nvcc (laplace.cu) it does both on the GPU, too: only the context differs.
 *
 * Exit code: 0; 1 when a call failed or NX or LARGE is too small. */
#include "jacobi.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

using Grid = umem::Array<double, 2>;

/* The values on the sides, and 0 inside. */
static void set_sides(Grid &u) {
  double const pi = 3.14159265358979323846;
  double const step = 1.0 / static_cast<double>(u.extent(1) - 1);
  umem::fill(u, 0.0);
  umem::for_each_indexed(
      umem::on_host, u.host(umem::write).part(umem::end - 1, umem::full_extent),
      [=](double &x, umem::index_t j) { x = std::sin(pi * static_cast<double>(j) * step); });
}

static void solve(umem::Context const &context, umem::index_t nx) {
  Grid u({nx, nx}, context);
  set_sides(u);
  Grid next = u;
  int steps = 0;
  double change;
  do {
    change = jacobi_step(u, next, umem::interior(u));
    std::swap(u, next);
    steps++;
  } while (change >= 1e-5);
  umem::index_t const i = 3 * (nx - 1) / 4, j = (nx - 1) / 2;
  double const width = static_cast<double>(nx - 1);
  std::printf("%s: %d steps at nx=%td, u(%g, %g) = %.6f\n", context.name(), steps, nx,
              static_cast<double>(i) / width, static_cast<double>(j) / width, u.get(i, j));
}

/* ---- speed ---- */

/* Seconds of the fastest of some calls. */
template <class F> static double fastest(int calls, F const &f) {
  double best = 1e300;
  for (int call = 0; call < calls; call++) {
    auto start = std::chrono::steady_clock::now();
    f();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::min(best, seconds.count());
  }
  return best;
}

/* The sweep with pointers. */
static double raw_sweep(double const *u, double *next, std::ptrdiff_t nx, std::ptrdiff_t ny) {
  double norm = 0;
  for (std::ptrdiff_t i = 1; i < nx - 1; i++)
    for (std::ptrdiff_t j = 1; j < ny - 1; j++) {
      double const *at = u + i * ny + j;
      double const value = 0.25 * (at[ny] + at[-ny] + at[1] + at[-1]);
      double const change = std::fabs(value - *at);
      next[i * ny + j] = value;
      if (change > norm) norm = change;
    }
  return norm;
}

/* On the CPU compared with the loop with pointers, on a GPU with a copy of a grid, which moves
 * as many bytes. */
static void measure(umem::Context const &context, umem::index_t nx, umem::index_t ny) {
  Grid u({nx, ny}, context), next = Grid::zeros({nx, ny}, context);
  set_sides(u);
  double const gigabytes = 16e-9 * static_cast<double>(nx) * static_cast<double>(ny);
  double other = 1e300, own = 1e300, raw_norm = 0, norm = 0;
  for (int turn = 0; turn < 5; turn++) {
    other = std::min(other, fastest(2, [&] {
                       if (context.is_cpu_accessible())
                         raw_norm = raw_sweep(u.device(umem::read)->data,
                                              next.device(umem::write)->data, nx, ny);
                       else
                         umem::copy(context, u.adr(), context, next.adr(), u.nbytes());
                     }));
    own = std::min(own, fastest(2, [&] { norm = jacobi_step(u, next, umem::interior(u)); }));
  }
  if (context.is_cpu_accessible() && norm != raw_norm)
    throw umem::runtime_error("the norms of the two loops differ");
  std::printf("%s: sweep of %td x %td with its norm: %.1f GB/s, %.2f times the speed of %s\n",
              context.name(), nx, ny, gigabytes / own, other / own,
              context.is_cpu_accessible() ? "a loop with pointers" : "copying it");
}

int main(int argc, char **argv) {
  umem::index_t const nx = argc > 1 ? std::atol(argv[1]) : 51;
  umem::index_t const large = argc > 2 ? std::atol(argv[2]) : 2048;
  if (nx < 3 || large < 3) {
    std::fprintf(stderr, "usage: laplace [NX [LARGE]], with at least 3 points\n");
    return 1;
  }
  try {
    solve(umem::Host(), nx);
    measure(umem::Host(), large, large);
#if defined(__CUDACC__)
    try {
      solve(umem::Cuda(), nx);
      measure(umem::Cuda(), 16384, 8192);
    } catch (umem::not_supported_error const &error) {
      std::printf("not on a GPU: %s\n", error.message());
    }
#endif
  } catch (umem::error const &error) {
    std::fprintf(stderr, "laplace: %s\n", error.message());
    return 1;
  }
  return 0;
}
