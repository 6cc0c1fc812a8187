/* halo.cpp - one grid in two halves on two contexts. Each half has a row of ghost cells at the
 * cut, which umem::exchange_ghosts fills after each step of point-Jacobi.
 *
 * The halves are in RAM and in a mapped file; compiled by nvcc (halo.cu), in RAM and on the GPU.
 * The result is compared with that of the whole grid in one piece.
 *
 * Exit code: 0; 1 when a number differs or a call failed. */
#include "jacobi.hpp"

#include <umem/exchange.hpp>

#include <cstdio>
#include <utility>

using Grid = umem::Array<double, 2>;

static constexpr umem::index_t rows = 64, columns = 96; /* of the whole grid */
static constexpr umem::index_t cut = 40;                /* rows of the upper half */
static constexpr int steps = 200;

/* Number n of the rows of the whole grid. */
static double start_of(umem::index_t n, umem::index_t j) {
  return static_cast<double>((n * 37 + j * 11) % 101);
}

/* Two grids in turn: the current step and the next one. */
struct Half {
  Grid u, next;

  /* Rows [first, first + count) of the whole grid, with ghost cells around them. */
  Half(umem::Context const &context, umem::index_t first, umem::index_t count)
      : u({count, columns}, context, {{1, 0}, {}, 0}),
        next({count, columns}, context, {{1, 0}, {}, 0}) {
    {
      auto view = u.host(umem::discard);
      umem::for_each_index(
          umem::on_host, umem::Range<2>({-1, 0}, {count + 1, columns}),
          [&](umem::index_t i, umem::index_t j) { (*view)(i, j) = start_of(first + i, j); });
    }
    next = u; /* the sides, which do not change */
  }

  /* Rows [begin, end) of the half, without the first and the last column. */
  void step(umem::index_t begin, umem::index_t end) {
    jacobi_step(u, next, umem::Range<2>({begin, 1}, {end, columns - 1}));
    std::swap(u, next);
  }
};

static bool run(umem::Context const &one, umem::Context const &other) {
  auto halves = umem::Decomposition<2>::at({{0, cut, rows}, {0, columns}});
  Half upper(one, 0, cut), lower(other, cut, rows - cut), whole(umem::Host(), 0, rows);
  for (int step = 0; step < steps; step++) {
    upper.step(1, cut);
    lower.step(0, rows - cut - 1);
    umem::exchange_ghosts(halves, {upper.u.part(), lower.u.part()});
    whole.step(1, rows - 1);
  }
  umem::index_t differences = 0;
  auto a = upper.u.host(umem::read), b = lower.u.host(umem::read), c = whole.u.host(umem::read);
  umem::for_each_index(umem::on_host, umem::Extents<2>{rows, columns},
                       [&](umem::index_t i, umem::index_t j) {
                         differences += (i < cut ? a(i, j) : b(i - cut, j)) != c(i, j);
                       });
  std::printf("%s and %s: %d steps in two halves, %td of %td points differ\n", one.name(),
              other.name(), steps, differences, rows * columns);
  return differences == 0;
}

int main() {
  try {
    bool right = run(umem::Host(), umem::MMap::scratch());
#if defined(__CUDACC__)
    try {
      right &= run(umem::Host(), umem::Cuda());
    } catch (umem::not_supported_error const &error) {
      std::printf("not on a GPU: %s\n", error.message());
    }
#endif
    return right ? 0 : 1;
  } catch (umem::error const &error) {
    std::fprintf(stderr, "halo: %s\n", error.message());
    return 1;
  }
}
