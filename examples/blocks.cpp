/* blocks.cpp - arrays in files that are four times as large as the memory that the program may use:
 * the dot product of two vectors, and 50 steps of point-Jacobi on a grid, block by block
 * (umem/blocks.hpp).
 *
 *     blocks [MIB]
 *
 * MIB: of each array; 64 if not given. In RAM and, compiled by nvcc (blocks.cu), on the GPU: only
 * the context of the blocks differs. Both results are compared with those of the arrays in one
 * piece in RAM, which is the only time that these are in memory. A umemStats counts the memory of
 * the blocks.
 *
 * Exit code: 0; 1 when a number differs, the memory exceeds the budget, a call failed or MIB is
 * too small. */
#include "jacobi.hpp"

#include <umem/adaptors.hpp>
#include <umem/blocks.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

using Vector = umem::Array<double, 1>;
using Grid = umem::Array<double, 2>;

static constexpr umem::index_t columns = 1024;
static constexpr int steps = 50;

/* ---- values that are easy to check: every sum of them is exact ---- */

struct Remainder {
  umem::index_t divisor;
  UMEM_FUNCTION void operator()(double &x, umem::index_t i) const {
    x = static_cast<double>(i % divisor);
  }
};

struct Start {
  UMEM_FUNCTION void operator()(double &u, umem::index_t i, umem::index_t j) const {
    u = static_cast<double>((i * 37 + j * 11) % 101);
  }
};

/* ---- the same twice: block by block, and in one piece ---- */

/* In half of the budget for each vector. */
static double dot(umem::Context const &place, Vector const &x, Vector const &y,
                  umem::BlocksOptions options) {
  options.budget /= 2;
  return umem::transform_reduce(umem::blocks(x, place, options), umem::blocks(y, place, options),
                                0.0, umem::plus(), umem::multiplies());
}

static double dot(Vector const &x, Vector const &y) {
  return umem::transform_reduce(umem::on_host, x, y, 0.0, umem::plus(), umem::multiplies());
}

/* Each block has a ghost row on either side. Returns the change of the last step. */
static double relax(umem::Context const &place, Grid &u, Grid &next, umem::BlocksOptions options) {
  options.ghosts = 1;
  double change = 0;
  for (int step = 0; step < steps; step++) {
    change = umem::sweep(umem::blocks(u, next, place, options), 1, 0.0, umem::maximum(),
                         [](umem::View<double const, 2> const &in) { return Jacobi{in}; });
    std::swap(u, next);
  }
  return change;
}

static double relax(Grid &u) {
  Grid next = u;
  double change = 0;
  for (int step = 0; step < steps; step++) {
    change = jacobi_step(u, next, umem::interior(u));
    std::swap(u, next);
  }
  return change;
}

/* ---- one run ---- */

static umem::index_t differences(Grid const &blocks, Grid const &whole) {
  umem::index_t count = 0;
  auto right = whole.host(umem::read);
  for (auto const &block : umem::blocks(blocks, umem::on_host))
    umem::for_each_index(umem::on_host, block.in().extents, [&](umem::index_t i, umem::index_t j) {
      count += block.in()(i, j) != right(block.first() + i, j);
    });
  return count;
}

/* Whether the memory of the blocks stayed below the budget, and what it was. */
static bool within(umem::Stats const &stats, std::size_t budget) {
  auto peak = static_cast<std::size_t>(stats.figures().peak_bytes);
  std::printf("  memory of the blocks: %.1f %% of the budget%s\n",
              100 * static_cast<double>(peak) / static_cast<double>(budget),
              peak <= budget ? "" : ", WRONG");
  return peak <= budget;
}

static bool run(umem::Context const &context, umem::index_t mib) {
  umem::index_t const size = mib << 17, rows = size / columns;
  umem::Stats const place(context);
  umem::BlocksOptions options;
  options.budget = static_cast<std::size_t>(size) * sizeof(double) / 4;

  Vector x({size}, umem::File::scratch()), y({size}, umem::File::scratch());
  umem::for_each_indexed(umem::blocks(x, umem::write, umem::on_host), Remainder{7});
  umem::for_each_indexed(umem::blocks(y, umem::write, umem::on_host), Remainder{5});
  Grid u({rows, columns}, umem::File::scratch()), next({rows, columns}, umem::File::scratch());
  umem::for_each_indexed(umem::blocks(u, umem::write, umem::on_host), Start());

  double const product = dot(place, x, y, options);
  double const change = relax(place, u, next, options);

  Grid whole({rows, columns});
  umem::for_each_indexed(umem::on_host, whole, Start());
  double const expected = dot(x, y), expected_change = relax(whole);
  umem::index_t const wrong = differences(u, whole);
  std::printf("%s: dot product %.0f%s\n", context.name(), product,
              product == expected ? "" : ", WRONG");
  std::printf("%s: %d steps, last change %.6f%s, %td of %td points differ\n", context.name(), steps,
              change, change == expected_change ? "" : ", WRONG", wrong, u.size());
  bool right = within(place, options.budget);
  return right && product == expected && change == expected_change && wrong == 0;
}

int main(int argc, char **argv) {
  umem::index_t const mib = argc > 1 ? std::atol(argv[1]) : 64;
  if (mib < 1) {
    std::fprintf(stderr, "usage: blocks [MIB], with at least 1 MiB\n");
    return 1;
  }
  try {
    bool right = run(umem::Host(), mib);
#if defined(__CUDACC__)
    try {
      right &= run(umem::Cuda(), mib);
    } catch (umem::not_supported_error const &error) {
      std::printf("not on a GPU: %s\n", error.message());
    }
#endif
    return right ? 0 : 1;
  } catch (umem::error const &error) {
    std::fprintf(stderr, "blocks: %s\n", error.message());
    return 1;
  }
}
